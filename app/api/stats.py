"""`/stats`: the figures of the whole house."""

from typing import Annotated

from litestar import get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from app.api.answers import LISTS
from app.db.reads.stats import Stats, StatsReads

DEFAULT_WINDOW_SECONDS = 60
WindowSeconds = Annotated[int, QueryParameter(ge=1, le=3600, description="Seconds to look back")]


@get("/stats", operation_id="getStats", tags=["Stats"], responses=LISTS)
async def get_stats(
    stats_reads: NamedDependency[StatsReads], window: WindowSeconds = DEFAULT_WINDOW_SECONDS
) -> Stats:
    """Tell how much is created and ended, how late it starts, and what waits and runs now."""
    return await stats_reads.read(window)
