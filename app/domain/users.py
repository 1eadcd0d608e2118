"""Users as people define them: who they are, what they may create, and how they want to be told."""

import base64
import binascii
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from app.domain.access import Role
from app.domain.errors import InvalidInput
from app.domain.jobs import Name
from app.domain.limits import RateLimit

UserId = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9_.@-]{0,127}$(?!\n)")]
Email = Annotated[str, msgspec.Meta(pattern=r"^[^@\s]+@[^@\s]+$(?!\n)", max_length=254)]
WebUrl = Annotated[str, msgspec.Meta(pattern=r"^https?://[^\s\x00]+$(?!\n)", max_length=2000)]
_WHSEC = r"whsec_[A-Za-z0-9+/]{31,86}={0,2}"
WebhookSecret = Annotated[str, msgspec.Meta(pattern=rf"^{_WHSEC}$(?!\n)")]
"""`whsec_` and the base64 of 24 to 64 bytes (Standard Webhooks, "Signature scheme")."""
HIDDEN = "********"
"""What is read in place of a secret; written back, it leaves the secret as it is."""
KeptSecret = Annotated[str, msgspec.Meta(pattern=rf"^(?:\*{{8}}|{_WHSEC})$(?!\n)")]
_LARGEST = 2**31 - 1


class Channel(StrEnum):
    """A way to tell somebody."""

    EMAIL = "email"
    SLACK = "slack"
    WEBHOOK = "webhook"


Channels = Annotated[tuple[Channel, ...], msgspec.Meta(max_length=len(Channel))]


class NotificationPreferences(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a user wants to hear of, and by which channels."""

    on_success: bool = False
    on_failure: bool = True
    on_retry: bool = False
    channels: Channels = ()
    slack_url: WebUrl | None = None
    webhook_url: WebUrl | None = None
    webhook_secret: WebhookSecret | None = None


class JobQuotas(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How much a user may run; None is no limit. An hour is a UTC clock hour of executions created."""

    max_concurrent_jobs: Annotated[int, msgspec.Meta(ge=1, le=_LARGEST)] | None = None
    max_jobs_per_hour: Annotated[int, msgspec.Meta(ge=0, le=_LARGEST)] | None = None
    rate_limit: RateLimit | None = None


class UserRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A user as people ask for it."""

    user_id: UserId
    name: Name | None = None
    """Defaults to the id."""
    email: Email | None = None
    role: Role = Role.OPERATOR
    """An owner of jobs can create jobs."""
    notification_preferences: NotificationPreferences = NotificationPreferences()
    job_quotas: JobQuotas = JobQuotas()


class PreferencesPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The notification preferences to change."""

    on_success: bool | UnsetType = UNSET
    on_failure: bool | UnsetType = UNSET
    on_retry: bool | UnsetType = UNSET
    channels: Channels | UnsetType = UNSET
    slack_url: WebUrl | UnsetType | None = UNSET
    webhook_url: WebUrl | UnsetType | None = UNSET
    webhook_secret: KeptSecret | UnsetType | None = UNSET


class QuotasPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The quotas to change; null takes a limit away."""

    max_concurrent_jobs: Annotated[int, msgspec.Meta(ge=1, le=_LARGEST)] | UnsetType | None = UNSET
    max_jobs_per_hour: Annotated[int, msgspec.Meta(ge=0, le=_LARGEST)] | UnsetType | None = UNSET
    rate_limit: RateLimit | UnsetType | None = UNSET


class UserPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parts of a user to change; what is left out stays."""

    name: Name | UnsetType = UNSET
    email: Email | UnsetType | None = UNSET
    role: Role | UnsetType = UNSET
    notification_preferences: PreferencesPatch | UnsetType = UNSET
    job_quotas: QuotasPatch | UnsetType = UNSET


class KeyRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An API key as people ask for it."""

    name: Name = "key"
    """What it is for; shown in the list."""
    expires_at: str | float | int | None = None
    """RFC 3339 or Unix seconds; None: it does not expire."""


def check_preferences(preferences: NotificationPreferences, email: str | None) -> None:
    """Refuse a channel that leads nowhere, for nobody would ever hear why. Raises `InvalidInput`."""
    addresses = {
        Channel.EMAIL: ("email", email),
        Channel.SLACK: ("notification_preferences.slack_url", preferences.slack_url),
        Channel.WEBHOOK: ("notification_preferences.webhook_url", preferences.webhook_url),
    }
    for channel in preferences.channels:
        field, address = addresses[channel]
        if address is None:
            raise _invalid("channels", f"{channel} needs an address: set {field}")
    if len(set(preferences.channels)) < len(preferences.channels):
        raise _invalid("channels", "a channel is named twice")
    if preferences.webhook_secret is not None and not _is_secret(preferences.webhook_secret):
        raise _invalid("webhook_secret", "use whsec_ and the base64 of 24 to 64 random bytes")


def _is_secret(text: str) -> bool:
    try:
        return 24 <= len(base64.b64decode(text.removeprefix("whsec_"), validate=True)) <= 64
    except binascii.Error:
        return False


def _invalid(field: str, detail: str) -> InvalidInput:
    return InvalidInput(f"{field}: {detail}", pointer=f"/notification_preferences/{field}")
