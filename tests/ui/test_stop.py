"""Open pages do not keep the server from stopping."""

import threading
from pathlib import Path

import httpx

from tests.life.processes import eventually, serving

KEY = "a-key-of-the-administrator-0123456789"


def test_sigterm_ends_the_streams_of_open_pages_and_tells_them_to_come_back(
    module_dsn: str, tmp_path: Path
) -> None:
    settings = {"DATABASE_URL": module_dsn, "DATA_DIR": str(tmp_path), "PORT": "0", "ROLES": "api"}
    with (
        serving(**settings, ADMIN_API_KEY=KEY) as (process, line),
        httpx.Client(base_url=line.split()[-1]) as page,
    ):
        page.post("/login", data={"key": KEY})
        heard: list[str] = []
        listening = threading.Thread(target=_listen, args=(page, heard))
        listening.start()
        eventually(lambda: any("changed" in line for line in heard))
        process.terminate()
        listening.join(timeout=15)

        assert not listening.is_alive()
        assert process.wait(timeout=15) == 0
        assert heard[:3] == ["event: hello", "data: ", heard[2]]
        assert 1000 <= int(heard[2].removeprefix("retry: ")) <= 4000


def _listen(page: httpx.Client, heard: list[str]) -> None:
    """Read a stream to its end; that it ends in good order is what `iter_lines` checks."""
    with page.stream("GET", "/ui/events") as answer:
        for line in answer.iter_lines():
            heard.append(line)  # noqa: PERF402 - the test looks on
