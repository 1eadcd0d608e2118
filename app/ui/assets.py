"""Files that pages use: styles, icons, vendored libraries."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from litestar import Router
from litestar.datastructures import CacheControlHeader
from litestar.response.base import ASGIResponse
from litestar.static_files import create_static_files_router

from app.paths import TEMPLATES_DIR

STATIC_DIR = TEMPLATES_DIR / "static"
STATIC_PATH = "/static"
_YEAR_SECONDS = 365 * 86_400


def asset_urls(folder: Path) -> Mapping[str, str]:
    """Return the address of each file below `folder`, by its path there.

    An address changes with the file's content, so browsers may keep what they have for good.
    """
    files = (file for file in folder.rglob("*") if file.is_file())
    return {
        name: f"{STATIC_PATH}/{name}?v={_digest(file)}" for file in files if (name := _name(file, folder))
    }


def static_router() -> Router:
    """Return the router that serves the files."""
    return create_static_files_router(
        path=STATIC_PATH,
        directories=[STATIC_DIR],
        cache_control=CacheControlHeader(public=True, max_age=_YEAR_SECONDS, immutable=True),
        after_request=_refuse_sniffing,
    )


def _name(file: Path, folder: Path) -> str:
    return file.relative_to(folder).as_posix()


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]


async def _refuse_sniffing(response: ASGIResponse) -> ASGIResponse:
    """Set by hand: Litestar adds no layered `response_headers` to file responses."""
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
