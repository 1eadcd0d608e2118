"""What the list of executions is narrowed to, as it stands in the address."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import ClassVar, Literal, TypeAlias
from uuid import UUID

import msgspec

from app.db.reads.ends import EndsOf
from app.db.reads.execution_list import Count
from app.db.reads.execution_walks import ListFilters
from app.domain.errors import InvalidInput
from app.domain.statuses import LIVE, Status
from app.domain.time_text import parse_instant
from app.ui.filters import Chip, FilterText, ListQuery
from app.ui.visit import Visit
from app.ui.words import capped

Shown: TypeAlias = Literal[
    "WAITING",
    "BLOCKED",
    "PENDING",
    "SCHEDULED",
    "RUNNING",
    "RETRYING",
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "SKIPPED",
]
"""A status, or all in which an execution waits."""
WAITING = frozenset({Status.BLOCKED, Status.PENDING, Status.SCHEDULED, Status.RETRYING})
Span: TypeAlias = Literal["1h", "24h", "7d"]
SPANS: Mapping[str, tuple[str, timedelta]] = {
    "1h": ("last hour", timedelta(hours=1)),
    "24h": ("last 24 hours", timedelta(days=1)),
    "7d": ("last 7 days", timedelta(days=7)),
}
PRIORITIES = (("0", "0 critical"), ("1", "1 high"), ("2", "2 normal"), ("3", "3 low"))
STRIP_SPAN = timedelta(days=1)
"""What the strip shows where no time is asked for."""


class Tab(msgspec.Struct, frozen=True, kw_only=True):
    """A view of the list: its word, and the filters that make it."""

    word: str
    status: Shown | None = None
    late: Literal["1"] | None = None
    counted: bool = False
    """Whether its number says something: of what has completed, it does not."""


TABS = (
    Tab(word="All"),
    Tab(word="Running", status="RUNNING", counted=True),
    Tab(word="Waiting", status="WAITING", counted=True),
    Tab(word="Failed", status="FAILED", counted=True),
    Tab(word="Late", late="1", counted=True),
    Tab(word="Completed", status="COMPLETED"),
    Tab(word="Cancelled", status="CANCELLED"),
    Tab(word="Skipped", status="SKIPPED"),
)


class ExecutionsQuery(ListQuery, frozen=True, kw_only=True):
    """What the list is narrowed to."""

    PATH: ClassVar[str] = "/executions"
    NAMES: ClassVar[Mapping[str, str]] = {
        "task_id": "task",
        "user_id": "owner",
        "job_id": "job",
        "range": "scheduled",
        "since": "scheduled from",
        "until": "scheduled before",
        "include": "with",
    }

    status: Shown | None = None
    late: Literal["1"] | None = None
    job_id: UUID | None = None
    task_id: FilterText | None = None
    queue: FilterText | None = None
    priority: Literal["0", "1", "2", "3"] | None = None
    user_id: FilterText | None = None
    range: Span | None = None
    since: FilterText | None = None
    until: FilterText | None = None
    include: Literal["future"] | None = None

    @property
    def chips(self) -> list[Chip]:
        """Return the filters in force for people, without those that the tab says."""
        said = {"range": lambda value: SPANS[value][0], "priority": lambda value: PRIORITIES[int(value)][1]}
        said |= {"include": lambda _: "future runs"}
        shown = {name: value for name, value in self.filters.items() if name not in {"status", "late"}}
        if self.tab is None and self.status:
            shown["status"] = self.status.lower()
        return [
            Chip(
                self.NAMES.get(name, name),
                said.get(name, str)(value),
                self.url(**{name: None, "cursor": None}),
            )
            for name, value in shown.items()
        ]

    @property
    def tab(self) -> Tab | None:
        """Return the tab that is open; None where status and lateness are combined otherwise."""
        return next((tab for tab in TABS if (tab.status, tab.late) == (self.status, self.late)), None)

    @property
    def statuses(self) -> frozenset[Status]:
        """Return the statuses that are listed."""
        if self.status is None:
            return frozenset(Status)
        return WAITING if self.status == "WAITING" else frozenset({Status(self.status)})

    def tabs(self, counts: Mapping[str, Count]) -> list[tuple[str, str, str]]:
        """Return word, address and count of each tab."""
        return [
            (
                tab.word,
                self.url(status=tab.status, late=tab.late, cursor=None),
                said_count(counts[tab.word]) if tab.word in counts else "",
            )
            for tab in TABS
        ]

    def of_tab(self, tab: Tab) -> "ExecutionsQuery":
        """Return the same list in another tab."""
        return msgspec.structs.replace(self, status=tab.status, late=tab.late, cursor=None)

    def narrowed(self, visit: Visit) -> ListFilters:
        """Return it for the database. Raises `InvalidInput` for a time that is none."""
        since, until = self.span(visit)
        # A single status means all of it, as in the API.
        whole = self.status not in {None, "WAITING"} and self.statuses <= set(LIVE)
        return ListFilters(
            statuses=self.statuses,
            job_id=self.job_id,
            user_id=self.user_id,
            task_id=self.task_id,
            queue=self.queue,
            priority=int(self.priority) if self.priority else None,
            late=self.late is not None,
            since=since,
            until=until,
            include_future=self.include is not None or whole,
        )

    def span(self, visit: Visit) -> tuple[datetime | None, datetime | None]:
        """Return the first instant of the list and the one before which it ends. Times are the page's zone's."""
        since = _instant("since", self.since, visit)
        if self.range is not None:
            # To the second before: a page and what it asks for later mean the same, and share answers.
            begins = visit.now.replace(microsecond=0) - SPANS[self.range][1]
            since = max(since or begins, begins)
        return since, _instant("until", self.until, visit)

    def ends(self, visit: Visit) -> EndsOf | None:
        """Return what the strip shows; None where it could not without looking at everything."""
        whose = {
            name for name in ("queue", "task_id", "job_id", "user_id", "priority") if getattr(self, name)
        }
        if not any(whose <= known for known in ({"queue", "task_id"}, {"job_id"}, {"user_id"})):
            return None
        since, until = self.span(visit)
        until = min(until or visit.now, visit.now)
        since = since or until - STRIP_SPAN
        if since >= until:
            return None
        asked = {name: getattr(self, name) for name in whose}
        return EndsOf(since=since, until=until, **asked)


def said_count(count: Count) -> str:
    """Return a count for people: `1,000+` where there may be more."""
    return f"{count.rows:,}" if count.is_whole else capped(count.rows, count.rows)


def _instant(name: str, text: str | None, visit: Visit) -> datetime | None:
    if text is None:
        return None
    try:
        return parse_instant(text, zone=visit.zone)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error.detail}", pointer=f"/{name}") from None
