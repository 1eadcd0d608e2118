"""Time zones: the one module that turns wall time into instants.

Zones come from the pinned `tzdata` package and never from the host's files, so that every node agrees.
An instant is an aware datetime in UTC, and all arithmetic is done on instants. A wall time is a naive
datetime: what a clock on a wall in the zone shows. A *gap* is a stretch of wall time that the clock jumps
over, a *fold* one that it shows twice (PEP 495). No zone changes twice within six days: they never meet.
"""

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from importlib.resources import files
from itertools import groupby
from types import MappingProxyType
from zoneinfo import ZoneInfo

import msgspec

from app.domain.errors import InvalidTimezone

FIRST_INSTANT = datetime(1970, 1, 1, tzinfo=UTC)
LAST_INSTANT = datetime(9999, 12, 30, tzinfo=UTC)
"""Times that we accept: a day from the end of the calendar, so that they can be shown in every zone."""

_NO_ALIASES: Mapping[str, str] = MappingProxyType({})
_SECOND = timedelta(seconds=1)
_UTC_OFFSET = re.compile(r"(?:utc|gmt)?([+-])0?(\d{1,2})(?::?00)?", re.ASCII)


class Gap(StrEnum):
    """What becomes of a run whose wall time the clock jumps over."""

    RUN_AFTER_GAP = "run_after_gap"
    SKIP = "skip"


class Fold(StrEnum):
    """Which pass counts where the clock shows a wall time twice."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class Zone(msgspec.Struct, frozen=True, kw_only=True):
    """A time zone: the name asked for, the IANA name it stands for, and where that one links to.

    `resolved` differs from `requested` for an alias only; `target` differs from `resolved` for a link such as
    `US/Pacific` only.
    """

    requested: str
    resolved: str
    target: str
    info: ZoneInfo

    @property
    def link_target(self) -> str | None:
        """Return where a link leads; None for a zone that stands for itself."""
        return self.target if self.target != self.resolved else None

    def wall(self, instant: datetime) -> datetime:
        """Return what the clock on the wall shows at `instant` (naive; `fold` is 1 in a second pass)."""
        return instant.astimezone(self.info).replace(tzinfo=None)

    def instants(
        self, wall: datetime, *, gap: Gap = Gap.RUN_AFTER_GAP, fold: Fold = Fold.FIRST
    ) -> tuple[datetime, ...]:
        """Return the instants of a wall time: one; in a fold one or two; in a gap its end, or none."""
        first, second = self._passes(wall)
        if first == second:
            return (first,)
        if first > second:
            return () if gap == Gap.SKIP else (self._end_of_gap(wall, after=second, at_most=first),)
        if fold == Fold.BOTH:
            return (first, second)
        return (second,) if fold == Fold.SECOND else (first,)

    def span(self, after: datetime, until: datetime) -> tuple[datetime, datetime]:
        """Return the first and the last wall time that can stand for an instant from `after` to `until`.

        Inside a fold the clock goes back: wall times earlier than the present one are still to come.
        """
        start, end = self.wall(after), self.wall(until)
        return start - self._overlap(start), end + self._overlap(end)

    def _passes(self, wall: datetime) -> tuple[datetime, datetime]:
        """Read `wall` by the rule before and by the rule after a change of the clock, if one is near.

        Equal: no change. First < second: a fold. First > second: a gap, whose end lies after the second
        and at or before the first.
        """
        return (
            wall.replace(tzinfo=self.info, fold=0).astimezone(UTC),
            wall.replace(tzinfo=self.info, fold=1).astimezone(UTC),
        )

    def _overlap(self, wall: datetime) -> timedelta:
        first, second = self._passes(wall)
        return max(second - first, timedelta(0))

    def _end_of_gap(self, wall: datetime, *, after: datetime, at_most: datetime) -> datetime:
        """Search the instant at which the clock jumps over `wall`; clocks change at whole seconds."""
        start = after.replace(microsecond=0)
        seconds = range((at_most - start) // _SECOND + 1)
        jumped = bisect_left(seconds, 1, key=lambda second: self.wall(start + second * _SECOND) > wall)
        return start + jumped * _SECOND


def to_instants(walls: Iterable[datetime], *, zone: Zone, gap: Gap, fold: Fold) -> Iterator[datetime]:
    """Turn ascending wall times into ascending instants, each once.

    All wall times of a gap become its end, which may be a wall time of its own: equal neighbours are one.
    """
    return (instant for instant, _ in groupby(_ascending(walls, zone=zone, gap=gap, fold=fold)))


def _ascending(walls: Iterable[datetime], *, zone: Zone, gap: Gap, fold: Fold) -> Iterator[datetime]:
    """Let the second pass of a fold wait until the first pass is through."""
    second_pass: deque[datetime] = deque()
    for wall in walls:
        for number, instant in enumerate(zone.instants(wall, gap=gap, fold=fold)):
            if number:
                second_pass.append(instant)
                continue
            while second_pass and second_pass[0] < instant:
                yield second_pass.popleft()
            yield instant
    yield from second_pass


def resolve(name: str, aliases: Mapping[str, str] = _NO_ALIASES) -> Zone:
    """Return the zone of an IANA name (exact case), or of an alias of one.

    `aliases` maps names that are not IANA's to names that are; it cannot change what an IANA name means.
    Raises `InvalidTimezone` naming the nearest real names.
    """
    resolved = name if name in zone_names() else aliases.get(name, name)
    if resolved not in zone_names():
        raise InvalidTimezone(_explain_unknown(resolved))
    target = _links().get(resolved, resolved)
    return Zone(requested=name, resolved=resolved, target=target, info=_load(resolved))


@cache
def zone_names() -> frozenset[str]:
    """Return every name that `resolve` takes. `Factory` means "not set" and is none."""
    return frozenset(files("tzdata").joinpath("zones").read_text("ascii").split()) - {"Factory"}


def tzdata_version() -> str:
    """Return the version of the zone rules in use, in IANA's form: `2026a`."""
    return _source_lines()[0].removeprefix("# version ")


def nearest_names(name: str, *, count: int = 3) -> list[str]:
    """Return real zone names that may have been meant by `name`; empty if none is near."""
    wanted = name[:64].lower().replace(" ", "_").removeprefix("posix/").removeprefix("right/")
    offset = _UTC_OFFSET.fullmatch(wanted)
    if offset:  # POSIX counts westwards: Etc/GMT-3 is three hours ahead of UTC
        flipped = f"Etc/GMT{'-' if offset[1] == '+' else '+'}{offset[2]}"
        return [flipped] if flipped in zone_names() else ["UTC"]
    zones = sorted(zone_names())
    same = [zone for zone in zones if wanted in (zone.lower(), zone.lower().rpartition("/")[2])]
    if same:
        return same[:count]
    folder = [zone for zone in zones if zone.lower().startswith(f"{wanted}/")]
    known = {key: zone for zone in zones for key in (zone.lower().rpartition("/")[2], zone.lower())}
    close = [known[key] for key in get_close_matches(wanted, known, n=2 * count, cutoff=0.75)]
    return list(dict.fromkeys(folder + close))[:count]


def _explain_unknown(name: str) -> str:
    near = " or ".join(nearest_names(name))
    remedy = f"did you mean {near}?" if near else "use a name such as Europe/Berlin or UTC"
    return f"{name[:64]!a} is not an IANA time zone (case matters): {remedy}"


@cache
def _load(name: str) -> ZoneInfo:
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@cache
def _links() -> dict[str, str]:
    """Return the target of each link. A line of IANA's source says `L TARGET LINK`."""
    links = (line.split() for line in _source_lines() if line.startswith("L "))
    return {link: target for _, target, link in links}


@cache
def _source_lines() -> list[str]:
    return files("tzdata").joinpath("zoneinfo", "tzdata.zi").read_text("utf-8").splitlines()
