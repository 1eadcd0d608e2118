"""`/executions`: the list."""

from collections.abc import Mapping
from typing import Any

from litestar import get
from litestar.di import NamedDependency
from litestar.response import Template

from app.db.reads.durations import DurationReads
from app.db.reads.ends import EndReads
from app.db.reads.execution_list import Count, ExecutionListReads, Found
from app.db.reads.execution_rows import ListedExecution
from app.domain.statuses import FINAL
from app.ui.execution_query import PRIORITIES, SPANS, TABS, ExecutionsQuery
from app.ui.live_rows import Place, asked_ids, count_newer, first_place, rows_url
from app.ui.visit import Visit, page, part

COLUMNS = 11
"""Of the table, for a row that is gone."""


@get("/executions", name="executions")
async def list_executions(
    visit: NamedDependency[Visit],
    execution_list: NamedDependency[ExecutionListReads],
    durations: NamedDependency[DurationReads],
    end_reads: NamedDependency[EndReads],
) -> Template:
    """Show a page of executions."""
    query = ExecutionsQuery.read(visit.request)
    found = await _read(query, execution_list, visit)
    changing = [one.execution_id for one in found.page.items if one.status not in FINAL]
    of = query.ends(visit)
    return page(
        "executions/list.html",
        visit,
        query=query,
        found=found,
        rows=rows_url(query, ids=changing, top=first_place(found.page, _place)),
        tabs_items=query.tabs(await _counts(query, execution_list, visit)),
        ends=await end_reads.ends(of) if of else None,
        span_word=_span_word(query),
        spans=[(name, word) for name, (word, _) in SPANS.items()],
        priorities=PRIORITIES,
        **await _beside(found.page.items, execution_list, durations),
    )


@get("/executions/rows")
async def execution_rows(
    visit: NamedDependency[Visit],
    execution_list: NamedDependency[ExecutionListReads],
    durations: NamedDependency[DurationReads],
) -> Template:
    """Answer with the rows that had not ended when a page was made, as they are now, and how many are new since."""
    query, asked = ExecutionsQuery.read(visit.request), asked_ids(visit.request)
    executions = await execution_list.some(asked)
    newest = None if query.cursor else await _read(query, execution_list, visit)
    return part(
        "executions/rows.html",
        visit,
        query=query,
        executions=executions,
        gone=set(asked) - {one.execution_id for one in executions},
        columns=COLUMNS,
        newer=count_newer(visit.request, newest.page, _place) if newest else 0,
        tabs_items=query.tabs(await _counts(query, execution_list, visit)),
        **await _beside(executions, execution_list, durations),
    )


async def _read(query: ExecutionsQuery, execution_list: ExecutionListReads, visit: Visit) -> Found:
    return await execution_list.page(query.narrowed(visit), query.window())


async def _counts(
    query: ExecutionsQuery, execution_list: ExecutionListReads, visit: Visit
) -> Mapping[str, Count]:
    tabs = [tab for tab in TABS if tab.counted]
    counts = await execution_list.counts([query.of_tab(tab).narrowed(visit) for tab in tabs])
    return {tab.word: count for tab, count in zip(tabs, counts, strict=True)}


async def _beside(
    executions: list[ListedExecution], execution_list: ExecutionListReads, durations: DurationReads
) -> dict[str, Any]:
    """Return what rows show beside what they are: who started them, and how long their jobs usually run."""
    ran = {one.job_id for one in executions if one.started_at is not None}
    return {
        "starters": await execution_list.starters(executions),
        "usual": await durations.usual_seconds(ran),
    }


def _span_word(query: ExecutionsQuery) -> str:
    if query.since or query.until:
        return "in this time"
    return f"in the {SPANS[query.range or '24h'][0]}"


def _place(execution: ListedExecution) -> Place:
    return execution.scheduled_time, execution.execution_id


EXECUTION_LIST = [list_executions, execution_rows]
