"""The rules of the house, read off its source. Each is kept by every module of `app`, and shown to bite."""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

APP = Path(__file__).parents[1] / "app"


@dataclass(frozen=True)
class Module:
    """A module: where it lies, seen from the folder of `app`, and what it says."""

    path: str
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        """Return its syntax tree."""
        return ast.parse(self.source)

    @property
    def room(self) -> str:
        """Return the room it is in: a package of `app`, or itself where it lies beside them."""
        return Path(self.path).parts[0].removesuffix(".py")

    def imports(self) -> Iterator[str]:
        """Yield the full name of everything it imports, at its top or inside functions."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)

    def names(self) -> Iterator[str]:
        """Yield every dotted name that it uses: `os.environ`, `print`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute | ast.Name):
                yield ast.unparse(node)


HOUSE = [
    Module(path.relative_to(APP).as_posix(), path.read_text("utf-8")) for path in sorted(APP.rglob("*.py"))
]

ROOMS: dict[str, set[str]] = {
    "domain": set(),
    "db": {"domain", "files", "paths", "startup"},
    "intake": {"db", "domain"},
    "scheduler": {"db", "domain"},
    "worker": {"db", "domain", "loop", "tasks"},
    "maintenance": {"db", "domain"},
    "api": {"answer_limit", "db", "domain", "intake", "request_ids"},
    "ui": {"db", "domain", "intake", "paths", "request_ids"},
    "client": set(),
    "server": {
        "answer_limit",
        "api",
        "child_process",
        "db",
        "domain",
        "files",
        "intake",
        "loop",
        "machine",
        "maintenance",
        "process",
        "request_ids",
        "scheduler",
        "settings",
        "startup",
    }
    | {"tasks", "ui", "worker"},
    "supervisor": {"child_process", "children", "settings"},
    "serve": {"child_process", "db", "loop", "ports", "server", "settings", "startup", "supervisor"},
    "cli": {"client", "db", "logs", "serve", "settings", "startup"},
    # What lies beside the rooms: tools that know nothing of jobs, and the public names.
    "__init__": {"tasks"},
    "__main__": {"cli"},
    "child_process": {"startup"},
    "children": {"settings"},
    "files": set(),
    "logs": set(),
    "loop": set(),
    "machine": set(),
    "paths": set(),
    "ports": set(),
    "process": {"children", "db", "loop", "settings", "startup"},
    "answer_limit": set(),
    "request_ids": set(),
    "setting_values": {"domain"},
    "settings": {"domain", "setting_values"},
    "startup": set(),
    "tasks": set(),
}
"""What each room may import besides itself."""

DOMAIN_LIBRARIES = {"msgspec", "croniter", "jsonschema_rs", "tzdata"}
OUTSIDE_WORLD = {
    "asyncio",
    "http",
    "io",
    "logging",
    "multiprocessing",
    "pathlib",
    "select",
    "shutil",
    "signal",
}
OUTSIDE_WORLD |= {"socket", "sqlite3", "ssl", "subprocess", "tempfile", "threading", "time", "urllib.request"}
CLOCKS = ("datetime.now", "datetime.utcnow", "datetime.today", "date.today", "open", "os.environ")
DATABASE_LIBRARIES = {"asyncpg", "sqlalchemy", "alembic"}
LONGEST_FILE, LONGEST_FUNCTION, LONGEST_COMPOSITION = 320, 45, 70


def _leaves_the_domain(module: Module) -> Iterator[str]:
    if module.room != "domain":
        return
    for name in module.imports():
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names | DOMAIN_LIBRARIES | {"app"}:
            yield f"imports {name}"
        if any(name == world or name.startswith(f"{world}.") for world in OUTSIDE_WORLD):
            yield f"imports {name}"
    yield from (f"uses {name}" for name in module.names() if name in CLOCKS)


def _talks_to_the_database(module: Module) -> Iterator[str]:
    if module.room != "db":
        found = (name for name in module.imports() if name.partition(".")[0] in DATABASE_LIBRARIES)
        yield from (f"imports {name}" for name in found)


def _goes_the_wrong_way(module: Module) -> Iterator[str]:
    if module.room not in ROOMS:
        yield "lies in a new room: say in ROOMS what it may import"
        return
    for name in module.imports():
        top, _, rest = name.partition(".")
        room = rest.partition(".")[0]
        if top == "app" and room in ROOMS and room not in ROOMS[module.room] | {module.room}:
            yield f"imports {name}"


def _reads_the_environment(module: Module) -> Iterator[str]:
    if module.path == "settings.py":
        return
    readers = {"os.environ", "os.environb", "os.getenv"}
    yield from (f"uses {name}" for name in (*module.imports(), *module.names()) if name in readers)


def _is_too_long(module: Module) -> Iterator[str]:
    lines = module.source.count("\n")
    if lines > LONGEST_FILE:
        yield f"has {lines} lines"


def _has_a_function_too_long(module: Module) -> Iterator[str]:
    most = LONGEST_COMPOSITION if module.room == "server" else LONGEST_FUNCTION
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > most:
                yield f"{node.name} has {lines} lines"


def _says_nothing_of_itself(module: Module) -> Iterator[str]:
    if module.tree.body and not ast.get_docstring(module.tree):
        yield "has no docstring"


def _prints(module: Module) -> Iterator[str]:
    calls = (node for node in ast.walk(module.tree) if isinstance(node, ast.Call))
    yield from ("prints" for call in calls if ast.unparse(call.func) == "print")


def _puts_off_annotations(module: Module) -> Iterator[str]:
    yield from ("puts them off" for name in module.imports() if name == "__future__.annotations")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule, why it is one, what breaks it, and two modules: one that does and one that does not."""

    rule: str
    why: str
    breaches: Callable[[Module], Iterator[str]]
    bad: Module
    good: Module


LONG = '"""Long."""\n\n\ndef long() -> None:\n' + "    pass\n" * LONGEST_FUNCTION

RULES = (
    Rule(
        rule="the domain is pure: no database, network, file, thread or clock",
        why="what decides must be testable by values alone, and the only clock is the database's",
        breaches=_leaves_the_domain,
        bad=Module("domain/planning.py", "from datetime import datetime\nNOW = datetime.now()\n"),
        good=Module("domain/planning.py", "from datetime import datetime\nimport msgspec\n"),
    ),
    Rule(
        rule="the domain's libraries are few",
        why="each is one that parses or validates; none does anything",
        breaches=_leaves_the_domain,
        bad=Module("domain/jobs.py", "from litestar import get\n"),
        good=Module("domain/jobs.py", "from croniter import croniter\n"),
    ),
    Rule(
        rule="only app/db imports asyncpg, sqlalchemy or alembic",
        why="statements stand where they are prepared and explained by tests, and drivers can be exchanged",
        breaches=_talks_to_the_database,
        bad=Module("api/jobs.py", "def get() -> None:\n    import sqlalchemy as sa\n"),
        good=Module("db/reads/jobs.py", "import sqlalchemy as sa\n"),
    ),
    Rule(
        rule="imports go inward: domain <- db <- intake, scheduler, worker, maintenance <- api, ui <- server <- cli",
        why="whoever reads a room needs only those further in; api and ui meet workers in the database",
        breaches=_goes_the_wrong_way,
        bad=Module("api/jobs.py", "from app.worker.pool import Pool\n"),
        good=Module("api/jobs.py", "from app import __version__\nfrom app.intake.jobs import JobIntake\n"),
    ),
    Rule(
        rule="a new room says what it may import",
        why="else it would be outside of the rule above",
        breaches=_goes_the_wrong_way,
        bad=Module("attic/box.py", ""),
        good=Module("worker/box.py", ""),
    ),
    Rule(
        rule="only app/settings.py reads the environment",
        why="a setting is parsed, checked and documented in one place",
        breaches=_reads_the_environment,
        bad=Module("worker/pool.py", "import os\nSIZE = os.environ.get('SIZE')\n"),
        good=Module("settings.py", "import os\nSIZE = os.environ.get('SIZE')\n"),
    ),
    Rule(
        rule=f"a file has at most {LONGEST_FILE} lines",
        why="it is about one thing and can be read in one go",
        breaches=_is_too_long,
        bad=Module("db/jobs.py", "pass\n" * (LONGEST_FILE + 1)),
        good=Module("db/jobs.py", "pass\n" * LONGEST_FILE),
    ),
    Rule(
        rule=f"a function has at most {LONGEST_FUNCTION} lines, a composition {LONGEST_COMPOSITION}",
        why="it does one thing; what only puts parts together is one list, which cutting it up would hide",
        breaches=_has_a_function_too_long,
        bad=Module("worker/pool.py", LONG),
        good=Module("server/worker.py", LONG),
    ),
    Rule(
        rule="every module says what it is for",
        why="the docstring is what one reads first; an empty package has nothing to say",
        breaches=_says_nothing_of_itself,
        bad=Module("db/jobs.py", "import os\n"),
        good=Module("db/__init__.py", ""),
    ),
    Rule(
        rule="nothing prints",
        why="the server logs, the command line writes by click and rich, and what handlers print is captured",
        breaches=_prints,
        bad=Module("worker/pool.py", "print('here')\n"),
        good=Module("cli/tables.py", "console.print('here')\n"),
    ),
    Rule(
        rule="annotations are not put off (`from __future__ import annotations`)",
        why="msgspec and litestar read them at run time",
        breaches=_puts_off_annotations,
        bad=Module("api/jobs.py", "from __future__ import annotations\n"),
        good=Module("api/jobs.py", "from typing import Annotated\n"),
    ),
)
ids = [rule.rule for rule in RULES]


@pytest.mark.parametrize("rule", RULES, ids=ids)
def test_the_house_keeps_the_rule(rule: Rule) -> None:
    found = [f"app/{module.path} {breach}" for module in HOUSE for breach in rule.breaches(module)]

    assert found == [], f"{rule.rule}: {rule.why}"


@pytest.mark.parametrize("rule", RULES, ids=ids)
def test_the_rule_bites_and_spares(rule: Rule) -> None:
    assert list(rule.breaches(rule.bad))
    assert not list(rule.breaches(rule.good))


@pytest.mark.parametrize("process", ["worker", "maintenance"])
def test_processes_load_no_web_server(process: str) -> None:
    assert loaded_by(process).isdisjoint({"litestar", "jinja2", "granian"})


def test_a_worker_loads_no_sqlalchemy() -> None:
    """There are as many workers as a machine has cores: it takes 30 MB of each."""
    assert "sqlalchemy" not in loaded_by("worker")
    assert "sqlalchemy" in loaded_by("api")


def loaded_by(process: str) -> set[str]:
    """Return the packages that a process has loaded before it does anything."""
    code = f"import sys, app.server.{process}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    return set(subprocess.check_output([sys.executable, "-c", code], cwd=APP.parent, text=True).split())
