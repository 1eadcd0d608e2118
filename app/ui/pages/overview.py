"""`/`: how the house is doing."""

from litestar import get
from litestar.di import NamedDependency
from litestar.response import Template

from app.db.reads.stats import StatsReads
from app.ui.visit import Visit, page

WINDOW_SECONDS = 60


@get("/", name="overview")
async def overview(visit: NamedDependency[Visit], stats_reads: NamedDependency[StatsReads]) -> Template:
    """Show what runs and waits, and how to begin."""
    stats = await stats_reads.read(WINDOW_SECONDS)
    return page("overview/page.html", visit, stats=stats, server_url=str(visit.request.base_url).rstrip("/"))
