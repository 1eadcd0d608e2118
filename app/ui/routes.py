"""All handlers of the dashboard."""

from litestar import Router
from litestar.di import Provide
from litestar.types import ControllerRouterHandler

from app.ui.assets import static_router
from app.ui.errors import PAGE
from app.ui.headers import PAGE_HEADERS
from app.ui.pages.home import home
from app.ui.pages.login import log_in, log_out, probe, show_login
from app.ui.same_origin import same_origin
from app.ui.sessions import current_principal

MAX_FORM_BYTES = 64 * 1024

UI_HANDLERS: list[ControllerRouterHandler] = [
    Router(
        "/",
        route_handlers=[home, show_login, probe, log_in, log_out],
        guards=[same_origin],
        dependencies={"principal": Provide(current_principal)},
        response_headers=PAGE_HEADERS,
        request_max_body_size=MAX_FORM_BYTES,
        include_in_schema=False,
        opt={PAGE: True},
    ),
    static_router(),
]
"""They need `access`, `job_reads`, `execution_reads` and `clock` from the application."""
