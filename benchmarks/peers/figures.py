"""What was measured, beside what onthedot reached in the same run."""

from collections.abc import Mapping

import msgspec

from benchmarks.peers.systems import ONTHEDOT

AS = {"/s": "as fast", "ms": "as early", "µs/job": "as cheap"}


class Figure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing measured of one system.

    `ratio` is how many times as good onthedot was in the same run: above 1 it is ahead. `bar` is what that is to be
    at least. `busy_percent` is what other work took of the machine just before.
    """

    row: str
    system: str
    what: str
    value: float
    unit: str
    bar: float | None = None
    ratio: float | None = None
    note: str = ""
    busy_percent: float | None = None

    def beside(self, ours: Mapping[str, "Figure"]) -> "Figure":
        """Return it with the ratio of onthedot's figure of the same kind to it, if there is one."""
        own = ours.get(self.what)
        if own is None:
            return self
        better = own.value / self.value if self.unit == "/s" else self.value / own.value
        return msgspec.structs.replace(self, ratio=better)

    @property
    def is_missed(self) -> bool:
        """Tell whether onthedot is below the bar."""
        return self.bar is not None and self.ratio is not None and self.ratio < self.bar


class Missing(msgspec.Struct, frozen=True):
    """A system that could not be measured, and why."""

    row: str
    system: str
    not_run: str

    def beside(self, _ours: Mapping[str, Figure]) -> "Missing":
        """Return it as it is."""
        return self


def table(found: list[Figure | Missing]) -> str:
    """Return figures as a table for docs/peers.md."""
    return "\n".join(["| | | measured | onthedot is | bar |", "|---|---|---|---|---|", *map(_line, found)])


def _line(found: Figure | Missing) -> str:
    if isinstance(found, Missing):
        return f"| {found.row} | {found.system} | not run: {found.not_run} | | |"
    name = f"**{found.system}**" if found.system == ONTHEDOT.name else found.system
    measured = f"{found.value:,.{0 if found.value >= 100 else 2}f} {found.unit}"
    measured += f" ({found.note})" if found.note else ""
    return f"| {found.what} | {name} | {measured} | {_ratio(found)} | {_bar(found)} |"


def _ratio(found: Figure) -> str:
    if found.ratio is None:
        return ""
    return f"{found.ratio:.2f} times {AS[found.unit]}"


def _bar(found: Figure) -> str:
    if found.bar is None:
        return ""
    return f"≥ {found.bar:g}: {'missed' if found.is_missed else 'met'}"
