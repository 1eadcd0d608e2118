"""Requests that may be sent twice: the second one gets the first one's answer."""

import hashlib

import msgspec

from app.domain.errors import InvalidInput

MAX_KEY_LENGTH = 255


class StoredAnswer(msgspec.Struct, frozen=True):
    """An answer as it is kept."""

    status_code: int
    body: bytes


class IdempotentRequest(msgspec.Struct, frozen=True):
    """A request under an Idempotency-Key: hashes of its scope and of its body."""

    key_hash: bytes
    request_hash: bytes


def idempotent_request(
    header: str | None, *, user_id: str, method: str, path: str, body: bytes
) -> IdempotentRequest | None:
    """Read the header, bare or quoted; None where there is none. Raises `InvalidInput`.

    A key counts for one user, method and path, so that two clients may use the same one.
    """
    if header is None:
        return None
    key = header.strip().removeprefix('"').removesuffix('"')
    if not (0 < len(key) <= MAX_KEY_LENGTH and key.isascii() and key.isprintable()):
        detail = f"Idempotency-Key: use 1 to {MAX_KEY_LENGTH} printable ASCII characters, such as a UUID"
        raise InvalidInput(detail, pointer="/Idempotency-Key")
    scope = "\n".join((user_id, method, path, key))
    return IdempotentRequest(hashlib.sha256(scope.encode()).digest(), hashlib.sha256(body).digest())
