"""Requests that may be sent twice: the second one gets the first one's answer."""

import hashlib

import msgspec

from app.domain.errors import InvalidInput

MAX_KEY_LENGTH = 255


class StoredAnswer(msgspec.Struct, frozen=True):
    """An answer as it is kept."""

    status_code: int
    body: bytes
    headers: dict[str, str] = {}
    """Those that say something of the answer, such as `Location`."""


class Repeated(Exception):
    """The request was carried out before; this is the answer that it had."""

    def __init__(self, answer: StoredAnswer) -> None:
        super().__init__("the request was carried out before")
        self.answer = answer


class IdempotentRequest(msgspec.Struct, frozen=True):
    """A request under an Idempotency-Key: hashes of whose key it is, and of what it asks for."""

    key_hash: bytes
    request_hash: bytes


def idempotent_request(
    header: str, *, user_id: str, method: str, path: str, query: str, body: bytes
) -> IdempotentRequest:
    """Return a request under its key, which is bare or quoted. Raises `InvalidInput`.

    A key belongs to its user, so that two may use the same one, and stands for one request.
    """
    key = header.strip().removeprefix('"').removesuffix('"')
    if not (0 < len(key) <= MAX_KEY_LENGTH and key.isascii() and key.isprintable()):
        detail = f"Idempotency-Key: use 1 to {MAX_KEY_LENGTH} printable ASCII characters, such as a UUID"
        raise InvalidInput(detail, pointer="/Idempotency-Key")
    asked = "\n".join((method, path, query, ""))
    return IdempotentRequest(_hash(f"{user_id}\n{key}".encode()), _hash(asked.encode() + body))


def _hash(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()
