"""The API's description and its page, which loads nothing from anywhere else."""

from typing import Any

from litestar import Request, Router
from litestar.exceptions import ImproperlyConfiguredException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, OpenAPIRenderPlugin, YamlRenderPlugin
from litestar.openapi.spec import Components, License, SecurityScheme

from app import __version__

SCHEMA_PATH = "/schema"
_HEADERS = {
    # Beyond what our own pages may do: Swagger UI's icons are `data:` images.
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_DESCRIPTION = """\
Tasks, jobs and executions of onthedot. Send an API key with every request: `Authorization: Bearer <key>`.
Errors are problem documents (RFC 9457) with a stable `code`; lists are read page by page by `next_cursor`.
"""


class SwaggerPage(OpenAPIRenderPlugin):
    """Swagger UI from our own files. Litestar's plugin needs inline scripts, and its icon comes from a CDN."""

    def __init__(self) -> None:
        super().__init__(path="/", favicon="", style="")

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:  # noqa: ARG002 - Litestar's
        """Return the page; its script reads the description from `openapi.json`."""
        engine = request.app.template_engine
        if engine is None:
            raise ImproperlyConfiguredException("the page of the API's description needs a template engine")
        template = engine.get_template("schema.html")
        page: str = template.render(schema_url=self.get_openapi_json_route(request))
        return page.encode()


def openapi_config() -> OpenAPIConfig:
    """Return the configuration of `/schema`. It is public: it holds no secrets."""
    return OpenAPIConfig(
        title="onthedot",
        version=__version__,
        description=_DESCRIPTION,
        license=License(name="Apache-2.0", identifier="Apache-2.0"),
        components=Components(
            security_schemes={
                "bearer": SecurityScheme(type="http", scheme="bearer", description="An API key of onthedot")
            }
        ),
        servers=[],  # the one that answers
        use_handler_docstrings=True,
        render_plugins=[SwaggerPage(), JsonRenderPlugin(), YamlRenderPlugin()],
        openapi_router=Router(
            SCHEMA_PATH, route_handlers=[], include_in_schema=False, response_headers=_HEADERS
        ),
    )
