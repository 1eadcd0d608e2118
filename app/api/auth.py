"""Who makes a request: `Authorization: Bearer <key>`."""

import time
from typing import Any

import msgspec
from litestar.connection import ASGIConnection
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult

from app.db.stores.access import AccessStore
from app.domain.access import Principal, hash_secret
from app.domain.errors import Unauthorized
from app.request_ids import request_id_of

REMEMBERED_SECONDS = 5.0
"""A key is looked up again after this long; so long may a revoked one still work."""
REMEMBERED_KEYS = 10_000
LONGEST_PROGRAM = 200
"""Characters of a program's name for itself that go into the audit log."""


class KeyRing:
    """Looks keys up, and remembers for a moment what it found."""

    def __init__(self, access: AccessStore) -> None:
        self._access = access
        self._known: dict[bytes, tuple[float, Principal]] = {}

    async def principal_of(self, authorization: str | None) -> Principal:
        """Return whose key the header carries. Raises `Unauthorized`."""
        scheme, _, key = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise Unauthorized("send an API key: `Authorization: Bearer <key>`")
        digest, now = hash_secret(key.strip()), time.monotonic()
        known = self._known.get(digest)
        if known is not None and now < known[0]:
            return known[1]
        principal = await self._access.principal_of_key(key.strip())
        if principal is None:
            self._known.pop(digest, None)
            raise Unauthorized("the API key is unknown or has expired")
        self._remember(digest, principal, now)
        return principal

    def _remember(self, digest: bytes, principal: Principal, now: float) -> None:
        if len(self._known) >= REMEMBERED_KEYS:
            self._known.clear()
        self._known[digest] = (now + REMEMBERED_SECONDS, principal)


class KeyAuthentication(AbstractAuthenticationMiddleware):
    """Puts the principal of each API request into `request.user`.

    The key ring is in the application's state: Litestar copies what a router's middleware is made with.
    """

    async def authenticate_request(
        self, connection: ASGIConnection[Any, Any, Any, Any]
    ) -> AuthenticationResult:
        """Return the principal, with what the audit log is told of the request. Raises `Unauthorized`."""
        keys: KeyRing = connection.app.state.key_ring
        principal = await keys.principal_of(connection.headers.get("authorization"))
        principal = msgspec.structs.replace(
            principal, request_id=request_id_of(connection), client=_client_of(connection)
        )
        return AuthenticationResult(user=principal, auth=None)


def _client_of(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """Return the program that makes a request, as it calls itself, and its address: `curl/8.14.1 127.0.0.1`."""
    program = connection.headers.get("user-agent", "")[:LONGEST_PROGRAM]
    if not program.isprintable():
        program = "".join(character for character in program if character.isprintable())
    address = connection.scope["client"]
    return f"{program or 'api'} {address[0]}" if address else program or "api"
