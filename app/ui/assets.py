"""Files that pages use: styles, icons, vendored libraries."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from litestar import Request, Router
from litestar.datastructures import CacheControlHeader
from litestar.response.base import ASGIResponse
from litestar.static_files import create_static_files_router
from litestar.types import ASGIApp

from app.domain.errors import NotFound
from app.paths import TEMPLATES_DIR

AnyRequest = Request[Any, Any, Any]

STATIC_DIR = TEMPLATES_DIR / "static"
STATIC_PATH = "/static"
_YEAR_SECONDS = 365 * 86_400


def asset_urls(folder: Path) -> Mapping[str, str]:
    """Return the address of each file below `folder`, by its path there.

    An address changes with the file's content, so browsers may keep what they have for good.
    """
    return {name: f"{STATIC_PATH}/{name}?v={_digest(folder / name)}" for name in _names(folder)}


def static_router() -> Router:
    """Return the router that serves the files."""
    addresses = {f"{STATIC_PATH}/{name}" for name in _names(STATIC_DIR)}

    async def refuse_others(request: AnyRequest) -> None:
        """No other name reaches the file system, which fails on some (NUL, too long) in ways of its own."""
        if request.scope["path"] not in addresses:
            raise NotFound("there is no such file")

    return create_static_files_router(
        path=STATIC_PATH,
        directories=[STATIC_DIR],
        cache_control=CacheControlHeader(public=True, max_age=_YEAR_SECONDS, immutable=True),
        before_request=refuse_others,
        after_request=_refuse_sniffing,
    )


def _names(folder: Path) -> list[str]:
    return [file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()]


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]


async def _refuse_sniffing(response: ASGIApp) -> ASGIApp:
    """Set by hand: Litestar adds no layered `response_headers` to file responses."""
    if isinstance(response, ASGIResponse):
        response.headers["X-Content-Type-Options"] = "nosniff"
    return response
