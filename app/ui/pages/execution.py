"""`/executions/{execution_id}`: one execution, what became of it and why, and what it printed."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import MediaType, get
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Stream, Template

from app.db.reads.attempts import LogLineView
from app.db.reads.durations import DurationReads
from app.db.reads.execution_list import ExecutionListReads
from app.db.reads.execution_log import LeastLevel, LogOf, LogPart, LogPlace, LogReads
from app.db.reads.execution_story import ExecutionStories, ExecutionStory
from app.db.reads.executions import ExecutionReads
from app.domain.errors import InvalidInput
from app.domain.statuses import FINAL, Status, Trigger
from app.domain.workflows.definition import WORKFLOW_TASK
from app.domain.workflows.run_keys import round_of
from app.ui.execution_words import deaths, meaning
from app.ui.run_path import given_back, path_of
from app.ui.sessions import AnyRequest
from app.ui.visit import Visit, page, part

Line = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
PlaceText = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,16}\.[0-9]{1,9}$")]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class LogQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of the log is asked for; of `line`, `before` and `after` one at most."""

    attempt: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None
    level: LeastLevel | None = None
    line: Line | None = None
    before: PlaceText | None = None
    after: PlaceText | None = None

    @classmethod
    def read(cls, request: AnyRequest) -> "LogQuery":
        """Read the query of a request. Raises `InvalidInput`."""
        given = {name: value for name, value in request.query_params.items() if value}
        try:
            return msgspec.convert(given, cls, strict=False)
        except msgspec.ValidationError as error:
            raise InvalidInput(str(error)) from None


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """What a page shows of a log."""

    of: LogOf
    part: LogPart
    attempts: int
    """There may be a log of each."""
    is_open: bool
    """More lines may come."""
    after: str = ""
    """Where the page that asks for more has come to."""

    @property
    def first_place(self) -> str:
        """Return where the first line stands that is shown."""
        return _place_text(self.part.lines[0]) if self.part.lines else ""

    @property
    def last_place(self) -> str:
        """Return where the last line stands that is shown."""
        return _place_text(self.part.lines[-1]) if self.part.lines else self.after

    @property
    def runs(self) -> list[list[LogLineView]]:
        """Return the lines, apart for each run: one that was given back had the same number as the next."""
        runs: list[list[LogLineView]] = []
        for line in self.part.lines:
            if not runs or line.sequence <= runs[-1][-1].sequence:
                runs.append([])
            runs[-1].append(line)
        return runs


@get("/executions/{execution_id:uuid}", name="execution")
async def show_execution(
    visit: NamedDependency[Visit],
    execution_id: FromPath[UUID],
    stories: NamedDependency[ExecutionStories],
    execution_list: NamedDependency[ExecutionListReads],
    durations: NamedDependency[DurationReads],
    log_reads: NamedDependency[LogReads],
) -> Template:
    """Show an execution."""
    story = await stories.get(execution_id)
    query = LogQuery.read(visit.request)
    return page(
        "executions/detail.html",
        visit,
        log=await _log(story, query, log_reads),
        levels=[(level.value, level.capitalize()) for level in LeastLevel],
        base_url=str(visit.request.base_url).rstrip("/"),
        **await _now(story, visit, execution_list, durations),
    )


@get("/executions/{execution_id:uuid}/now")
async def execution_now(
    visit: NamedDependency[Visit],
    execution_id: FromPath[UUID],
    stories: NamedDependency[ExecutionStories],
    execution_list: NamedDependency[ExecutionListReads],
    durations: NamedDependency[DurationReads],
) -> Template:
    """Answer with the part of the page that changes while an execution lives."""
    story = await stories.get(execution_id)
    return part("executions/now.html", visit, **await _now(story, visit, execution_list, durations))


@get("/executions/{execution_id:uuid}/log")
async def execution_log(
    visit: NamedDependency[Visit],
    execution_id: FromPath[UUID],
    stories: NamedDependency[ExecutionStories],
    log_reads: NamedDependency[LogReads],
) -> Template:
    """Answer a script with lines before or after those that the page has."""
    story = await stories.get(execution_id)
    query = LogQuery.read(visit.request)
    return part(
        "executions/log_lines.html",
        visit,
        log=await _log(story, query, log_reads),
        execution=story.execution,
        address=f"/executions/{execution_id}",
        earlier=query.before is not None,
        appended=query.after is not None,
    )


@get("/executions/{execution_id:uuid}/log.txt")
async def raw_log(
    visit: NamedDependency[Visit],
    execution_id: FromPath[UUID],
    execution_reads: NamedDependency[ExecutionReads],
    log_reads: NamedDependency[LogReads],
) -> Stream:
    """Answer with the whole log of an attempt as text: what the API answers programs with, for a session."""
    execution = await execution_reads.get(execution_id)
    attempt = LogQuery.read(visit.request).attempt or execution.attempt_number

    async def lines() -> AsyncIterator[str]:
        async for some in log_reads.whole(execution_id, attempt):
            yield "".join(f"{line.message}\n" for line in some)

    return Stream(lines, media_type=MediaType.TEXT)


async def _now(
    story: ExecutionStory, visit: Visit, execution_list: ExecutionListReads, durations: DurationReads
) -> dict[str, Any]:
    execution = story.execution
    listed = await execution_list.some([execution.execution_id])
    usual = await durations.usual_seconds([execution.job_id])
    return {
        "story": story,
        "execution": execution,
        "address": f"/executions/{execution.execution_id}",
        "meaning": meaning(story, visit.now),
        "steps": path_of(story, visit.now),
        "given_back": given_back(story),
        "deaths": deaths(story),
        "starter": (await execution_list.starters(listed)).get(execution.execution_id),
        "usual": usual.get(execution.job_id),
        "is_live": execution.status not in FINAL,
        "step_round": round_of(story.setting.run_key) if execution.trigger == Trigger.WORKFLOW else None,
        "begins_run": execution.task_id == WORKFLOW_TASK and execution.status is Status.COMPLETED,
    }


async def _log(story: ExecutionStory, query: LogQuery, log_reads: LogReads) -> Log:
    execution = story.execution
    latest = execution.attempt_number
    of = LogOf(execution.execution_id, query.attempt or max(latest, 1), query.level)
    if query.after is not None:
        found = await log_reads.after(of, _place(query.after))
    elif query.line is not None:
        found = await log_reads.around(of, query.line)
    else:
        found = await log_reads.newest(of, before=_place(query.before) if query.before else None)
    is_open = execution.status not in FINAL and of.attempt_number >= latest and query.before is None
    return Log(of=of, part=found, attempts=latest, is_open=is_open, after=query.after or "")


def _place_text(line: LogLineView) -> str:
    return f"{(line.time - _EPOCH) // _MICROSECOND}.{line.sequence}"


def _place(text: str) -> LogPlace:
    microseconds, _, sequence = text.partition(".")
    return LogPlace(_EPOCH + int(microseconds) * _MICROSECOND, int(sequence))


EXECUTION_DETAIL = [show_execution, execution_now, execution_log, raw_log]
