"""`/`: how the house is doing."""

from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromQuery
from litestar.response import Template

from app.db.reads.rates import Span
from app.ui.house import House
from app.ui.visit import Visit, page, part


@get("/", name="overview")
async def overview(
    visit: NamedDependency[Visit], house: NamedDependency[House], span: FromQuery[Span] = Span.DAY
) -> Template:
    """Show what fails, what is late, what runs, waits and comes next, and how to begin."""
    server_url = str(visit.request.base_url).rstrip("/")
    return page("overview/page.html", visit, server_url=server_url, **await house.read(span))


@get("/overview/now")
async def overview_now(
    visit: NamedDependency[Visit], house: NamedDependency[House], span: FromQuery[Span] = Span.DAY
) -> Template:
    """Answer with what the page shows, as it is now."""
    server_url = str(visit.request.base_url).rstrip("/")
    return part("overview/now.html", visit, server_url=server_url, **await house.read(span))


@get("/ui/trouble")
async def trouble_now(visit: NamedDependency[Visit], house: NamedDependency[House]) -> Template:
    """Answer with what the bar says of trouble, as it is now."""
    return part("trouble.html", visit, trouble=await house.trouble())


OVERVIEW_PAGES = [overview, overview_now, trouble_now]
