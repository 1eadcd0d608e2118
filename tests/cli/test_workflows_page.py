"""The example of docs/workflows.md, as a reader would try it."""

import re
import shlex
from pathlib import Path

import msgspec

from tests.cli.conftest import Shell

PAGE = (Path(__file__).parents[2] / "docs" / "workflows.md").read_text("utf-8")


def block(language: str, nth: int = 0) -> str:
    """Return one of the page's blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[nth]


def test_the_example_does_what_the_page_says(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "orders.json"
    file.write_text(block("json"))
    assert shell.run(*shlex.split(block("sh"))[1:]).exit_code == 0
    workflow_id = shell.json("wf", "create", str(file))["workflow_id"]
    whole = shell.run("wf", "run", workflow_id, "--follow", "--timeout", "60", "-o", "json")
    part = shell.run(
        *("wf", "run", workflow_id, "--param", 'regions=["eu"]'),
        *("--follow", "--timeout", "60", "-o", "json"),
    )
    rows = re.findall(r"^\| `(\w+)` \| ([A-Z]+) \| `(.*)` \| (.*?) ?\|$", PAGE, re.MULTILINE)
    run = msgspec.json.decode(whole.stdout)

    assert whole.exit_code == 0, whole.output
    assert [
        (key, status, msgspec.json.decode(result), cause or None) for key, status, result, cause in rows
    ] == [(step["key"], step["status"], step["result"], step["cause"]) for step in run["steps"]]
    assert [item["region"] for item in msgspec.json.decode(part.stdout)["steps"][0]["result"]] == ["eu"]


def test_the_page_uses_commands_that_exist(shell: Shell) -> None:
    used = set(re.findall(r"onthedot (wf [a-z]+)", PAGE))

    assert used >= {"wf create", "wf run", "wf status", "wf retry", "wf skip", "wf cancel"}
    assert [command for command in used if shell.run(*command.split(), "--help").exit_code] == []
