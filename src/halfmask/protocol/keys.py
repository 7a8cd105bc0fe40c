"""Who is who: the issuer, cells with a credential each, and askers with certificates.

Cells of one group share a key to read each other's frames; a broken cell exposes its own group's
messages and no others'. The group's key makes nobody a cell: whatever a cell sends carries a proof,
its credential (signed by the issuer when it was enrolled) and its own signature.
An asker's certificate says whom answers are sealed for; cells answer nobody else.
"""

from __future__ import annotations

import hashlib
import os
import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from halfmask.errors import AuthenticationError, InputError, ParameterError, usable_path
from halfmask.ownership import read_secret, write_new
from halfmask.protocol.crypto import derive, sign, verify

SKEW = 300
SERIAL = 16
_CREDENTIAL = struct.Struct(">16s32sHq")
# A credential, the issuer's signature of it, and the cell's signature of what it sends.
PROOF = _CREDENTIAL.size + 64 + 64


class Credential(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The issuer's word that one person's cell is in a group, until a day (seconds since 1970).

    Attributes:
        serial: the same whenever this person is enrolled; only the issuer can tell whose it is.
        public: checks what this cell signs.
    """

    serial: bytes
    public: bytes
    group: int
    expires: int
    signature: bytes

    def body(self) -> bytes:
        """What the issuer signs."""
        return _CREDENTIAL.pack(self.serial, self.public, self.group, self.expires)


class CellKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a cell is enrolled with: its group's secret, whom to believe, and its own credential."""

    group: int
    secret: bytes
    issuer: bytes
    signing: bytes
    credential: Credential

    def __repr__(self) -> str:
        return f"CellKey(group={self.group})"

    def prove(self, message: bytes) -> bytes:
        """The proof that this cell sends a message."""
        own = self.credential
        return own.body() + own.signature + sign(self.signing, message)


@dataclass(frozen=True, slots=True)
class CellGroup:
    """Whose proofs count: those of the cells of one group whose credentials outlast a query."""

    issuer: bytes
    group: int
    until: int

    def serial(self, proof: bytes, message: bytes) -> bytes:
        """The serial of the cell that sent a message.

        Raises:
            AuthenticationError: no cell of this group sent it.
        """
        if len(proof) != PROOF:
            raise AuthenticationError("A message carries no credential.")
        body, rest = proof[: _CREDENTIAL.size], proof[_CREDENTIAL.size :]
        serial, public, group, expires = _CREDENTIAL.unpack(body)
        # By the end of the query, not by the time: whoever checks it, whenever, decides alike.
        if group != self.group or expires < self.until:
            raise AuthenticationError("A credential is of another group of cells, or has expired.")
        _check_credential(self.issuer, body, rest[:64])
        verify(public, rest[64:], message, "A cell's message")
        return bytes(serial)


@lru_cache(maxsize=4096)
def _check_credential(issuer: bytes, body: bytes, signature: bytes) -> None:
    verify(issuer, signature, b"credential" + body, "A cell's credential")


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
    """An asker's certificate and secrets, the issuer, and how many groups of cells there are."""

    certificate: Certificate
    box: bytes
    signing: bytes
    issuer: bytes
    groups: int

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

    def enroll(self, person: str, expires: int, group: int | None = None) -> CellKey:
        """Make a person's cell known; whoever is enrolled again stays one person.

        Args:
            person: who it is; does not leave the issuer.
            expires: until when.
            group: the group of cells; by default it follows from the person.
        """
        key = derive(self.signing, b"", b"serials")
        # By the person alone: who is enrolled twice has one serial, hence one ticket in a query.
        drawn = hashlib.blake2b(person.encode(), key=key, digest_size=SERIAL + 8).digest()
        serial, number = drawn[:SERIAL], int.from_bytes(drawn[SERIAL:]) % len(self.groups)
        number = number if group is None else group
        if not 0 <= number < len(self.groups):
            raise ParameterError("group", number, f"0 to {len(self.groups) - 1}")
        signing = os.urandom(32)
        credential = Credential(serial, _public(signing), number, expires, b"")
        credential = msgspec.structs.replace(
            credential, signature=sign(self.signing, b"credential" + credential.body())
        )
        return CellKey(number, self.groups[number], self.public, signing, credential)

    def asker(self, name: str, expires: int) -> AskerKey:
        """Certify a new asker."""
        box, signing = os.urandom(32), os.urandom(32)
        public = X25519PrivateKey.from_private_bytes(box).public_key().public_bytes_raw()
        certificate = Certificate(name, public, _public(signing), expires, b"")
        certificate = msgspec.structs.replace(
            certificate, signature=sign(self.signing, certificate.body())
        )
        return AskerKey(certificate, box, signing, self.public, len(self.groups))


def new_issuer(groups: int = 1) -> Issuer:
    """An issuer with fresh keys for so many groups of cells."""
    if not 1 <= groups <= 4096:
        raise ParameterError("groups", groups, "1 to 4096")
    return Issuer(os.urandom(32), [os.urandom(32) for _ in range(groups)])


def _public(signing: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(signing).public_key().public_bytes_raw()


Key = TypeVar("Key", CellKey, AskerKey, Issuer)
_FILES = {
    "CellKey": ("a cell's credential", "cells enroll makes one per person"),
    "AskerKey": ("the key file of an asker", "cells keys makes them"),
    "Issuer": ("the key file of an issuer", "cells keys makes them"),
}


def write_key(key: CellKey | AskerKey | Issuer, path: str | Path) -> None:
    """Write a key file that its owner alone may read."""
    try:
        write_new(path, msgspec.json.format(msgspec.json.encode(key)) + b"\n")
    except FileExistsError:
        raise InputError(f"{Path(path).name} exists already; a key is never overwritten.") from None


def read_key(path: str | Path, kind: type[Key]) -> Key:
    """Read a key file, and take from others what rights they have on it.

    Raises:
        InputError: the file is no such key, or of a version without credentials.
    """
    try:
        return msgspec.json.decode(read_secret(path), type=kind)
    except (OSError, msgspec.MsgspecError):
        what, how = _FILES[kind.__name__]
        if _is_old(path):
            raise InputError(
                f"{Path(path).name} is of a version in which cells had no credentials: {how}; "
                "enroll every cell anew."
            ) from None
        raise InputError(f"{Path(path).name} cannot be read as {what}; {how}.") from None


def _is_old(path: str | Path) -> bool:
    """Whether a file holds the key of a group of cells, or an asker's key with those of groups."""
    try:
        found = msgspec.json.decode(usable_path(path).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return False
    names = set(found) if isinstance(found, dict) else set()
    return names == {"group", "secret", "issuer"} or (
        "certificate" in names and isinstance(found["groups"], dict)
    )
