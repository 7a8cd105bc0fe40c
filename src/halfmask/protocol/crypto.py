"""Keys of a query, and ciphertexts that are good for one place only.

AES-256-GCM with random nonces under a key that HKDF derives per query and group of cells. The
associated data names query, closing, level, node, step and position, or the ticket of a
contribution, so that a ciphertext opens nowhere but where it belongs. Answers are sealed to the
asker by an ephemeral X25519 exchange.
"""

from __future__ import annotations

import hashlib
import os
import struct
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from halfmask.errors import AuthenticationError, TamperedMessageError

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
    own = X25519PrivateKey.generate()
    sender = own.public_key().public_bytes_raw()
    shared = own.exchange(X25519PublicKey.from_public_bytes(public))
    key = derive(shared, query, b"answer" + sender + public)
    nonce = os.urandom(NONCE)
    return sender + nonce + AESGCM(key).encrypt(nonce, plain, VERSION + query)


def open_own(secret: bytes, query: bytes, sealed: bytes) -> bytes:
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
