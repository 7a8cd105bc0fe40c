"""Keys of a query, and ciphertexts that are good for one place only.

AES-256-GCM with random nonces under a key that HKDF derives per query and group of cells. The
associated data names query, closing, level, node, step and position, or the ticket of a
contribution, so that a ciphertext opens nowhere but where it belongs. Answers are sealed to the
asker by an ephemeral X25519 exchange.

One root over all contributions, so that nobody works on another collection than the others.

Every node names, beside the digest, the first and the last ticket under it, and its left part ends
before its right part begins. So whoever climbs from a partition to the root has seen that no ticket
of the partition stands in another one, whatever the relay does.
"""

from __future__ import annotations

import hashlib
import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from halfmask.errors import AuthenticationError, TamperedMessageError

if TYPE_CHECKING:
    from collections.abc import Sequence


VERSION = b"halfmask cells 2"
NONCE = 12


class Address(NamedTuple):
    """Where a frame belongs in the work on one query."""

    level: int
    node: int
    step: int = 0
    position: int = 0


def digest(*parts: bytes) -> bytes:
    """SHA-256 over parts whose borders count."""
    found = hashlib.sha256()
    for part in parts:
        found.update(struct.pack(">Q", len(part)))
        found.update(part)
    return found.digest()


def derive(secret: bytes, salt: bytes, purpose: bytes) -> bytes:
    """A key of 32 bytes for one purpose."""
    return HKDF(SHA256(), 32, salt, VERSION + b" " + purpose).derive(secret)


def place(query: bytes, closing: bytes, address: Address) -> bytes:
    """The associated data of the frame at one address."""
    return VERSION + query + closing + struct.pack(">iIII", *address)


def seat(query: bytes, ticket: bytes) -> bytes:
    """The associated data of the contribution with one ticket."""
    return VERSION + query + b"contribution" + ticket


class FrameKey:
    """Seals and opens the frames of one query within one group of cells."""

    __slots__ = ("_cipher", "_tickets")

    def __init__(self, secret: bytes, query: bytes) -> None:
        self._cipher = AESGCM(derive(secret, query, b"frames"))
        self._tickets = derive(secret, query, b"tickets")

    def ticket(self, serial: bytes) -> bytes:
        """The name of a credential in this query: nobody without the key can tell whose it is."""
        return hashlib.blake2b(serial, key=self._tickets, digest_size=32).digest()

    def seal(self, where: bytes, plain: bytes, nonce: bytes | None = None) -> bytes:
        """Encrypt for one place; equal frames give different ciphertexts."""
        nonce = os.urandom(NONCE) if nonce is None else nonce
        return nonce + self._cipher.encrypt(nonce, plain, where)

    def open(self, where: bytes, sealed: bytes) -> bytes:
        """Decrypt what was sealed for this place.

        Raises:
            TamperedMessageError: it was changed, or sealed for another place, query or group.
        """
        try:
            return self._cipher.decrypt(sealed[:NONCE], sealed[NONCE:], where)
        except (InvalidTag, ValueError):
            raise TamperedMessageError(
                "A frame does not open at its place: it was changed or belongs elsewhere."
            ) from None


def seal_for(public: bytes, query: bytes, plain: bytes) -> bytes:
    """Encrypt so that only the holder of one X25519 key can read."""
    # A fresh key for every answer: who learns a cell's own keys later reads none.
    own = X25519PrivateKey.generate()
    sender = own.public_key().public_bytes_raw()
    shared = own.exchange(X25519PublicKey.from_public_bytes(public))
    key = derive(shared, query, b"answer" + sender + public)
    nonce = os.urandom(NONCE)
    return sender + nonce + AESGCM(key).encrypt(nonce, plain, VERSION + query)


def open_sealed(secret: bytes, query: bytes, sealed: bytes) -> bytes:
    """Decrypt what was sealed for the holder of ``secret``.

    Raises:
        TamperedMessageError: it was changed, or is not for this key and query.
    """
    own = X25519PrivateKey.from_private_bytes(secret)
    public = own.public_key().public_bytes_raw()
    try:
        shared = own.exchange(X25519PublicKey.from_public_bytes(sealed[:32]))
        key = derive(shared, query, b"answer" + sealed[:32] + public)
        return AESGCM(key).decrypt(sealed[32:44], sealed[44:], VERSION + query)
    except (InvalidTag, ValueError):
        raise TamperedMessageError("The answer does not open with this key.") from None


def sign(secret: bytes, message: bytes) -> bytes:
    """An Ed25519 signature."""
    return Ed25519PrivateKey.from_private_bytes(secret).sign(VERSION + message)


def verify(public: bytes, signature: bytes, message: bytes, what: str) -> None:
    """Check a signature.

    Raises:
        AuthenticationError: it is not that key's signature of this message.
    """
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, VERSION + message)
    except (InvalidSignature, ValueError):
        raise AuthenticationError(f"{what} carries no valid signature.") from None


TICKET = 32
EMPTY = b""


class Span(NamedTuple):
    """A part of the contributions: its digest, and its first and last ticket."""

    digest: bytes
    first: bytes
    last: bytes

    def pack(self) -> bytes:
        """As bytes."""
        return self.digest + self.first + self.last


def partition(members: Sequence[tuple[bytes, bytes]]) -> Span:
    """A partition: its tickets, in order, and what was sent with them."""
    found = hashlib.sha256(b"partition")
    for ticket, frame in members:
        found.update(ticket)
        found.update(hashlib.sha256(frame).digest())
    return Span(found.digest(), members[0][0], members[-1][0])


def root_and_paths(leaves: Sequence[Span]) -> tuple[bytes, list[list[bytes]]]:
    """The root over partitions, and per partition the siblings on the way up."""
    paths: list[list[bytes]] = [[] for _ in leaves]
    row = list(leaves)
    members: list[list[int]] = [[i] for i in range(len(leaves))]
    while len(row) > 1:
        for i, inside in enumerate(members):
            sibling = row[i ^ 1].pack() if i ^ 1 < len(row) else EMPTY
            for leaf in inside:
                paths[leaf].append(sibling)
        row = [_above(row[i : i + 2]) for i in range(0, len(row), 2)]
        members = [
            [leaf for inside in members[i : i + 2] for leaf in inside]
            for i in range(0, len(members), 2)
        ]
    return digest(b"root", row[0].pack()), paths


def root_of_path(leaf: Span, index: int, path: Sequence[bytes]) -> bytes:
    """The root that a partition and its path lead to.

    Raises:
        TamperedMessageError: parts of the collection overlap, or the path is none.
    """
    for packed in path:
        if packed == EMPTY:
            # Only the last node of a row has no sibling, and then it is a left one.
            if index % 2:
                raise TamperedMessageError("A partition is not the one that was closed.")
            leaf = _above([leaf])
        else:
            if len(packed) != 3 * TICKET:
                raise TamperedMessageError("A partition is not the one that was closed.")
            sibling = Span(packed[:TICKET], packed[TICKET : 2 * TICKET], packed[2 * TICKET :])
            pair = [leaf, sibling] if index % 2 == 0 else [sibling, leaf]
            # Tickets ascend over all partitions, or a contribution could be counted in two of them.
            if not pair[0].last < pair[1].first:
                raise TamperedMessageError("A ticket may stand in two partitions.")
            leaf = _above(pair)
        index //= 2
    return digest(b"root", leaf.pack())


def _above(parts: Sequence[Span]) -> Span:
    return Span(digest(b"node", *(p.pack() for p in parts)), parts[0].first, parts[-1].last)
