"""Who is who: the issuer, groups of cells with a key each, and askers with certificates.

Cells of one group share a key; a broken cell exposes its own group's messages and no others'.
An asker's certificate says whom answers are sealed for; cells answer nobody else.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from halfmask.errors import AuthenticationError, InputError, ParameterError
from halfmask.protocol.crypto import derive, sign, verify

SKEW = 300


class GroupKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a cell is enrolled with: its group, the group's secret, and whom to believe."""

    group: int
    secret: bytes
    issuer: bytes

    def __repr__(self) -> str:
        return f"GroupKey(group={self.group})"

    @property
    def signing(self) -> bytes:
        """The group's key for signing answers."""
        return derive(self.secret, b"", b"sign")


class Certificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The issuer's word for an asker's keys, until a day (seconds since 1970)."""

    name: str
    box: bytes
    signing: bytes
    expires: int
    signature: bytes

    def body(self) -> bytes:
        """What the issuer signs."""
        return msgspec.msgpack.encode((self.name, self.box, self.signing, self.expires))

    def check(self, issuer: bytes, now: float) -> None:
        """Believe it or not.

        Raises:
            AuthenticationError: not signed by the issuer, or out of date.
        """
        verify(issuer, self.signature, self.body(), "The asker's certificate")
        if now > self.expires + SKEW:
            raise AuthenticationError("The asker's certificate has expired: ask for a new one.")


class AskerKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An asker's certificate and secrets, and the groups' public keys."""

    certificate: Certificate
    box: bytes
    signing: bytes
    groups: dict[str, bytes]

    def __repr__(self) -> str:
        return "AskerKey()"


class Issuer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Enrolls cells and certifies askers; needed for nothing else."""

    signing: bytes
    groups: list[bytes]

    def __repr__(self) -> str:
        return f"Issuer({len(self.groups)} groups)"

    @property
    def public(self) -> bytes:
        """What everybody knows of the issuer."""
        return _public(self.signing)

    def group(self, number: int) -> GroupKey:
        """What the cells of one group are enrolled with."""
        if not 0 <= number < len(self.groups):
            raise ParameterError("group", number, f"0 to {len(self.groups) - 1}")
        return GroupKey(number, self.groups[number], self.public)

    def asker(self, name: str, expires: int) -> AskerKey:
        """Certify a new asker."""
        box, signing = os.urandom(32), os.urandom(32)
        public = X25519PrivateKey.from_private_bytes(box).public_key().public_bytes_raw()
        certificate = Certificate(name, public, _public(signing), expires, b"")
        certificate = msgspec.structs.replace(
            certificate, signature=sign(self.signing, certificate.body())
        )
        keys = {
            str(i): _public(GroupKey(i, secret, b"").signing)
            for i, secret in enumerate(self.groups)
        }
        return AskerKey(certificate, box, signing, keys)


def new_issuer(groups: int = 1) -> Issuer:
    """An issuer with fresh keys for so many groups of cells."""
    if not 1 <= groups <= 4096:
        raise ParameterError("groups", groups, "1 to 4096")
    return Issuer(os.urandom(32), [os.urandom(32) for _ in range(groups)])


def _public(signing: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(signing).public_key().public_bytes_raw()


Key = TypeVar("Key", GroupKey, AskerKey, Issuer)


def write_key(key: GroupKey | AskerKey | Issuer, path: str | Path) -> None:
    """Write a key file that its owner alone may read."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(key)) + b"\n")
    except FileExistsError:
        raise InputError(f"{Path(path).name} exists already; a key is never overwritten.") from None


def read_key(path: str | Path, kind: type[Key]) -> Key:
    """Read a key file.

    Raises:
        InputError: the file is no such key.
    """
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        what = {"GroupKey": "key file of a group of cells", "AskerKey": "key file of an asker"}
        raise InputError(
            f"{Path(path).name} cannot be read as a {what.get(kind.__name__, 'key file')}; "
            "cells keys makes them."
        ) from None
