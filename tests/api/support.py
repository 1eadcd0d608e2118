"""What several tests of the API ask."""

from typing import Any

from tests.api.conftest import Site


async def pages(site: Site, path: str) -> list[dict[str, Any]]:
    """Return all items of a list that is read two by two."""
    items: list[dict[str, Any]] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = (await site.get(path, params=query)).json()
        assert len(page["items"]) <= 2
        items += page["items"]
        if page["next_cursor"] is None:
            return items
        query["cursor"] = page["next_cursor"]
