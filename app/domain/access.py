"""Who may do what."""

import hashlib
import secrets
from enum import StrEnum

import msgspec

from app.domain.errors import Forbidden

KEY_PREFIX = "otd_"
_SHOWN = 10


class Role(StrEnum):
    """What a user may do; each role may do what the ones before it may."""

    VIEWER = "viewer"
    """Reads everything but keys and secrets."""
    OPERATOR = "operator"
    """Also creates, changes, runs, pauses and cancels."""
    ADMIN = "admin"
    """Also users, keys and other people's `user_id`."""


_RANK = {role: rank for rank, role in enumerate(Role)}


class Actor(msgspec.Struct, frozen=True):
    """Who is behind a change, and how it came: what the audit log is told."""

    name: str
    """Such as `user:ada`; a part of onthedot is `system:resumer`."""
    request_id: str | None = None
    """None: no request was made."""
    client: str | None = None
    """Program and address that it came from; None: this process itself."""


class Principal(msgspec.Struct, frozen=True):
    """Who makes a request. `request_id` and `client` are what the audit log is told of the request."""

    user_id: str
    role: Role
    request_id: str | None = None
    client: str | None = None

    @property
    def actor(self) -> Actor:
        """Return who is behind what the request changes."""
        return Actor(f"user:{self.user_id}", self.request_id, self.client)

    def require(self, role: Role) -> None:
        """Raise `Forbidden` unless this principal has at least this role."""
        if _RANK[self.role] < _RANK[role]:
            raise Forbidden(f"this needs the role {role}; the key's owner {self.user_id} is {self.role}")

    def owner(self, user_id: str | None) -> str:
        """Return whose job it becomes: the principal's, or, for an admin, anybody's."""
        if user_id is None or user_id == self.user_id:
            return self.user_id
        self.require(Role.ADMIN)
        return user_id


def new_secret() -> str:
    """Make a key or a token with 256 bits that nobody can guess."""
    return KEY_PREFIX + secrets.token_urlsafe(32)


def hash_secret(secret: str) -> bytes:
    """Return what is stored of a key or a token. A plain SHA-256 does: there is nothing to guess."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def shown_prefix(secret: str) -> str:
    """Return the part of a key by which people recognise it."""
    return secret[:_SHOWN]
