"""Durations and times as people write them."""

import math
import re
from datetime import UTC, datetime, timedelta

import msgspec

from app.domain.errors import InvalidSchedule
from app.domain.timezones import FIRST_INSTANT, LAST_INSTANT, Fold, Gap, Zone

_NUMBER = re.compile(r"\d{1,20}(?:\.\d{1,20})?", re.ASCII)
_WEEKS = re.compile(r"P(\d{1,9})W", re.ASCII | re.IGNORECASE)
_CALENDAR_UNITS = re.compile(r"[^T]*\d[YM]", re.ASCII | re.IGNORECASE)
_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\d[T ](?:[01]\d|2[0-3]):\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?",
    re.ASCII | re.IGNORECASE,
)
_SHOWN_CHARACTERS = 64
_WEEK_SECONDS = 7 * 86_400


def parse_duration(value: str | float) -> float:
    """Return the seconds of an ISO 8601 duration (`PT90S`, `P1DT12H`, `P2W`), or of a number of seconds.

    Raises `InvalidSchedule`; months and years are refused because their length varies.
    """
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return _parse_iso_8601(value)
    seconds = float(value)
    if not (math.isfinite(seconds) and seconds >= 0):
        raise InvalidSchedule(f"{_shown(value)} is not a number of seconds")
    return seconds


def parse_instant(
    value: str | float, *, zone: Zone, gap: Gap = Gap.RUN_AFTER_GAP, fold: Fold = Fold.FIRST
) -> datetime:
    """Return the instant (UTC) of an RFC 3339 time, seconds optional, or of Unix seconds.

    A time without an offset is wall time in `zone`. In a gap it means the end of the gap, in a fold the first
    pass, unless the policies say otherwise; of both passes (`Fold.BOTH`) the first, as an instant is one.
    Raises `InvalidSchedule` for anything else, for a year outside 1970-9999, and for a time that the clock
    jumps over under `Gap.SKIP`.
    """
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        time = _parse_rfc_3339(value)
        return time if time.tzinfo else _from_wall(time, zone=zone, gap=gap, fold=fold)
    seconds = float(value)
    if not 0 <= seconds <= LAST_INSTANT.timestamp():
        raise InvalidSchedule(f"{_shown(value)} are not Unix seconds from 1970 to 9999 (milliseconds?)")
    return FIRST_INSTANT + timedelta(seconds=seconds)


def _parse_iso_8601(text: str) -> float:
    if weeks := _WEEKS.fullmatch(text):
        return float(int(weeks[1]) * _WEEK_SECONDS)
    if _CALENDAR_UNITS.match(text):
        raise InvalidSchedule(f"{_shown(text)}: months and years vary in length, give days")
    try:
        seconds = msgspec.convert(text, timedelta).total_seconds()
    except msgspec.ValidationError:
        raise InvalidSchedule(f"{_shown(text)} is not a duration such as PT90S or P1D") from None
    if seconds < 0:
        raise InvalidSchedule(f"{_shown(text)} is negative")
    return seconds


def _parse_rfc_3339(text: str) -> datetime:
    """Return an instant in UTC, or a wall time (naive)."""
    if not _RFC_3339.fullmatch(text):
        raise InvalidSchedule(f"{_shown(text)} is not a time such as 2030-01-31T09:00:00Z")
    try:
        time = datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise InvalidSchedule(f"{text} is not a time: {error}") from None
    if not FIRST_INSTANT <= (time if time.tzinfo else time.replace(tzinfo=UTC)) <= LAST_INSTANT:
        raise InvalidSchedule(f"{text} does not lie between 1970 and {LAST_INSTANT:%Y-%m-%d}")
    return time.astimezone(UTC) if time.tzinfo else time


def _from_wall(wall: datetime, *, zone: Zone, gap: Gap, fold: Fold) -> datetime:
    instants = zone.instants(wall, gap=gap, fold=fold)
    if not instants:
        raise InvalidSchedule(f"{wall.isoformat()} does not exist in {zone.resolved}, and gap is 'skip'")
    return max(instants[0], FIRST_INSTANT)


def _shown(value: str | float) -> str:
    return ascii(value[:_SHOWN_CHARACTERS] if isinstance(value, str) else value)
