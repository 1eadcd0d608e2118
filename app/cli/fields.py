"""Options for the fields of jobs, tasks, queues and users that both `create` and `edit` take.

A parameter is called as the field of the API's body that it sets; `a__b` is the field `b` of the field `a`.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import click

Command: TypeAlias = Callable[..., Any]
Decorator: TypeAlias = Callable[[Command], Command]


def _all_of(*options: Decorator) -> Decorator:
    def decorate(function: Command) -> Command:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _labels(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, str] | None:
    labels = {}
    for text in texts:
        name, _equals, value = text.partition("=")
        if not (name and value):
            raise click.BadParameter(f"{text!r} is not NAME=VALUE")
        labels[name] = value
    return labels or None


def _rate_limit(field: str = "rate_limit") -> Decorator:
    return _all_of(
        click.option(
            "--rate-limit",
            f"{field}__per_second",
            type=float,
            metavar="PER_SECOND",
            help="How many may begin each second on average; 0.1 is one every 10 s",
        ),
        click.option(
            "--burst",
            f"{field}__burst",
            type=int,
            help="Beside --rate-limit: how many may begin at once after a rest",
        ),
    )


_priority = click.option("--priority", type=click.IntRange(0, 3), help="0, most urgent, to 3")
_concurrency_key = _all_of(
    click.option(
        "--concurrency-key",
        metavar="KEY",
        help="What has the same key shares a limit; {{parameters.NAME}} stands for a value",
    ),
    click.option(
        "--concurrency-limit", type=int, help="How many with the same key run at once; one unless said"
    ),
)

job_fields: Decorator = _all_of(
    click.option("--name"),
    click.option("--queue"),
    _priority,
    click.option(
        "--expires-after",
        "expires_after_seconds",
        type=float,
        metavar="SECONDS",
        help="Never begin it later than so long after it was due",
    ),
    click.option(
        "--overlap",
        type=click.Choice(["allow", "skip", "queue", "cancel_running"]),
        help="What becomes of a run that is due while an earlier one is under way; allow unless said",
    ),
    _concurrency_key,
)
task_fields: Decorator = _all_of(
    click.option(
        "--handler",
        "execution_handler",
        help="What runs: python:NAME, http:METHOD URL, shell:COMMAND or builtin:NAME",
    ),
    click.option("--name"),
    click.option("--queue"),
    _priority,
    click.option("--schema", type=click.File("rb"), help="JSON Schema of the parameters"),
    click.option(
        "--label",
        "labels",
        multiple=True,
        metavar="NAME=VALUE",
        callback=_labels,
        help="What a worker must offer; all of them at once",
    ),
    click.option(
        "--cpu-cores", "resource_requirements__cpu_cores", type=float, help="Of the host, for one execution"
    ),
    click.option(
        "--memory-mb", "resource_requirements__memory_mb", type=int, help="MiB of the host, for one execution"
    ),
    click.option("--concurrency", type=int, help="How many of its executions run at once, over all workers"),
    _concurrency_key,
    _rate_limit(),
)
queue_fields: Decorator = _all_of(
    _priority,
    click.option("--max-delay-ms", type=int, help="Lateness objective"),
    click.option("--max-concurrency", type=int, help="How many run in it at once, over all workers"),
    _rate_limit(),
)
user_fields: Decorator = _all_of(
    click.option("--name"),
    click.option("--email"),
    click.option("--role", type=click.Choice(["viewer", "operator", "admin"])),
    click.option("--max-concurrent-jobs", "job_quotas__max_concurrent_jobs", type=int, help="At once"),
    click.option(
        "--max-jobs-per-hour", "job_quotas__max_jobs_per_hour", type=int, help="Executions a UTC clock hour"
    ),
    _rate_limit("job_quotas__rate_limit"),
)
