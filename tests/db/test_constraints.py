"""The database refuses states that must not be, whoever writes them, and accepts their right twins."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias
from uuid import uuid4

import asyncpg
import pytest

from app.db.pools import Pool
from app.db.queries import load
from app.domain.access import Role
from app.domain.ids import new_execution_id
from app.domain.planning import Misfire
from app.domain.poison import POISON_AT, SUSPECT_FROM
from app.domain.retry import RetryPolicy
from app.domain.schedule_spec import ScheduleType
from app.domain.statuses import FINAL, LEASED, LIVE, READY, Disposition, Trigger
from app.domain.timezones import Fold, Gap
from tests.factories import Row, execution_row, finished_row, insert, job_row, now_of, task_row

Columns: TypeAlias = Mapping[str, Any]
Wrongs: TypeAlias = Mapping[str, list[tuple[str, Columns, Columns]]]
"""By the constraint that refuses it: a state in words, what is given to make it right, and then to make it wrong."""

SOME_DAY = datetime(2026, 1, 31, 2, tzinfo=UTC)

EXECUTIONS: Wrongs = {
    "executions_status_check": [
        ("an unknown status", {}, {"status": "PAUSED"}),
        ("a final status among the live ones", {}, {"status": "COMPLETED"}),
    ],
    "executions_priority_check": [
        ("a priority below the lowest", {"priority": 3}, {"priority": 4}),
        ("a priority above the highest", {"priority": 0}, {"priority": -1}),
    ],
    "executions_trigger_check": [("an unknown trigger", {"trigger": "manual"}, {"trigger": "whim"})],
    "executions_max_attempts_check": [("no attempt at all", {"max_attempts": 1}, {"max_attempts": 0})],
    "executions_worker_deaths_check": [("fewer deaths than none", {}, {"worker_deaths": -1})],
    "executions_attempt_number_check": [("fewer attempts than none", {}, {"attempt_number": -1})],
    "executions_timeout_seconds_check": [
        ("no time to run in", {"timeout_seconds": 0.001}, {"timeout_seconds": 0.0})
    ],
    "executions_leased_or_not": [
        ("leased by nobody", {"status": "RUNNING"}, {"worker_id": None}),
        ("leased for ever", {"status": "RUNNING"}, {"lease_expires_at": None}),
        ("leased at no time", {"status": "SCHEDULED"}, {"claimed_at": None}),
        ("leased without a fence", {"status": "SCHEDULED"}, {"lease_epoch": 0}),
        ("held while it is leased", {"status": "SCHEDULED"}, {"held": True}),
        ("waiting, yet at a worker", {"status": "PENDING"}, {"worker_id": uuid4()}),
        ("waiting, yet under a lease", {"status": "RETRYING"}, {"lease_expires_at": SOME_DAY}),
        ("blocked, yet claimed", {"status": "BLOCKED"}, {"claimed_at": SOME_DAY}),
    ],
    "executions_attempts_fit_the_status": [
        ("running before the first attempt", {"status": "RUNNING"}, {"attempt_number": 0}),
        ("retrying before the first attempt", {"status": "RETRYING"}, {"attempt_number": 0}),
        ("blocked after the first attempt", {"status": "BLOCKED"}, {"attempt_number": 1}),
    ],
}

HISTORY: Wrongs = {
    "execution_history_status_check": [("a live status among the final ones", {}, {"status": "RUNNING"})],
    "execution_history_disposition_check": [("an unknown disposition", {}, {"disposition": "forgotten"})],
    "history_started_if_it_ran": [
        ("completed without a start", {}, {"started_at": None}),
        ("completed without an attempt", {}, {"attempt_number": 0}),
        ("completed by nobody", {}, {"worker_id": None}),
        ("skipped after it ran", {"status": "SKIPPED"}, {"attempt_number": 1}),
    ],
    "history_failed_with_an_error": [("failed without an error", {"status": "FAILED"}, {"error": None})],
    "history_disposition_fits_the_status": [
        ("completed, yet passed over", {"disposition": "late"}, {"disposition": "coalesced"}),
        ("failed, yet on the dot", {"status": "FAILED"}, {"disposition": "ran"}),
        ("cancelled, yet failed", {"status": "CANCELLED"}, {"disposition": "failed"}),
        ("skipped, yet late", {"status": "SKIPPED"}, {"disposition": "late"}),
    ],
}

BARE = {"every_seconds": None, "starts_at": None, "materialize_at": None}
IMMEDIATE = BARE | {"schedule_type": "IMMEDIATE"}
ONCE = BARE | {"schedule_type": "ONCE", "scheduled_time": SOME_DAY}
RECURRING = BARE | {"schedule_type": "RECURRING", "expression": "0 2 * * *"}
PAUSED = {"is_active": False, "materialize_at": None}

JOBS: Wrongs = {
    "jobs_schedule_type_check": [("a synonym for its type", RECURRING, {"schedule_type": "CRON"})],
    "jobs_every_seconds_check": [("an interval too short", {"every_seconds": 1.0}, {"every_seconds": 0.9})],
    "jobs_schedule_is_whole": [
        ("an interval without an anchor", {}, {"starts_at": None}),
        ("an interval without a length", {}, {"every_seconds": None}),
        ("an interval, yet by cron", {}, {"expression": "* * * * *"}),
        ("recurring without an expression", RECURRING, {"expression": None}),
        ("recurring, yet at one instant", RECURRING, {"scheduled_time": SOME_DAY}),
        ("once, at no instant", ONCE, {"scheduled_time": None}),
        ("once, yet by cron", ONCE, {"expression": "* * * * *"}),
        ("now, yet at an instant", IMMEDIATE, {"scheduled_time": SOME_DAY}),
        ("now, yet at intervals", IMMEDIATE, {"every_seconds": 60.0}),
    ],
    "jobs_only_recurring_ones_materialise": [
        ("materialised though it runs once", ONCE, {"materialize_at": SOME_DAY}),
        ("materialised though it is paused", PAUSED, {"materialize_at": SOME_DAY}),
    ],
    "jobs_only_paused_ones_have_a_reason": [
        ("active, with a reason to pause", PAUSED | {"pause_reason": "freeze"}, {"is_active": True}),
        ("active, until it resumes", PAUSED | {"paused_until": SOME_DAY}, {"is_active": True}),
    ],
    "jobs_parameters_check": [("parameters in a list", {"parameters": "{}"}, {"parameters": "[]"})],
    "jobs_overlap_check": [("an unknown overlap policy", {"overlap": "queue"}, {"overlap": "perhaps"})],
    "jobs_misfire_grace_seconds_check": [("a negative grace", {}, {"misfire_grace_seconds": -1.0})],
    "jobs_timeout_seconds_check": [("no time to run in", {"timeout_seconds": 1.0}, {"timeout_seconds": 0.0})],
    "jobs_expires_after_seconds_check": [
        ("no time to begin in", {"expires_after_seconds": 0.5}, {"expires_after_seconds": 0.0})
    ],
    "jobs_unique_key_check": [("an empty key", ONCE | {"unique_key": "k"}, {"unique_key": ""})],
    "jobs_unique_for_seconds_check": [
        (
            "a key held for no time",
            ONCE | {"unique_key": "k", "unique_for_seconds": 0.1},
            {"unique_for_seconds": 0.0},
        )
    ],
    "jobs_unique_policy_check": [
        (
            "an unknown policy",
            ONCE | {"unique_key": "k", "unique_policy": "replace"},
            {"unique_policy": "perhaps"},
        )
    ],
    "jobs_only_unique_ones_have_a_policy": [
        ("a policy without a key", ONCE, {"unique_policy": "replace"}),
        ("a time without a key", ONCE, {"unique_for_seconds": 1.0}),
    ],
    "jobs_unique_ones_run_once": [("recurring under a key", RECURRING, {"unique_key": "k"})],
    "jobs_priority_check": [("a priority that is none", {"priority": None}, {"priority": 9})],
    "jobs_max_retries_check": [("a negative number of retries", {"max_retries": 0}, {"max_retries": -1})],
}

QUEUES: Wrongs = {
    "queues_queue_check": [("a name with a space", {"queue": "night-shift"}, {"queue": "night shift"})],
    "queues_lease_seconds_check": [("a lease too short", {"lease_seconds": 1.0}, {"lease_seconds": 0.5})],
    "queues_durability_check": [("an unknown durability", {"durability": "relaxed"}, {"durability": "none"})],
    "queues_check": [
        (
            "running, with a reason to pause",
            {"paused_at": SOME_DAY, "paused_reason": "x"},
            {"paused_at": None},
        ),
        ("running, until it resumes", {"paused_at": SOME_DAY, "paused_until": SOME_DAY}, {"paused_at": None}),
    ],
}

TASKS: Wrongs = {
    "tasks_queue_fkey": [("in an unknown queue", {"queue": "bulk"}, {"queue": "nowhere"})],
    "tasks_task_id_check": [("a name in capitals", {"task_id": "deploy_ios"}, {"task_id": "Deploy"})],
    "tasks_retry_policy_check": [("an unknown policy", {"retry_policy": "linear"}, {"retry_policy": "hope"})],
}

LEDGER_ROW: Columns = {
    "shard": 298,
    "job_id": uuid4(),
    "first_time": SOME_DAY,
    "last_time": SOME_DAY,
    "occurrences": 1,
    "disposition": "coalesced",
}
LEDGER: Wrongs = {
    "ledger_ranges_occurrences_check": [("a range of nothing", {}, {"occurrences": 0})],
    "ledger_ranges_check": [
        ("a range that ends before it begins", {}, {"last_time": SOME_DAY - timedelta(seconds=1)})
    ],
    "ledger_ranges_disposition_check": [
        ("passed over, yet it ran", {"disposition": "paused"}, {"disposition": "ran"})
    ],
}


MAKERS: Mapping[str, tuple[Callable[..., Row], Wrongs]] = {
    "executions": (execution_row, EXECUTIONS),
    "execution_history": (finished_row, HISTORY),
    "jobs": (job_row, JOBS),
    "queues": (lambda _, **columns: {"queue": "night"} | columns, QUEUES),
    "tasks": (lambda _, **columns: task_row(**columns), TASKS),
    "ledger_ranges": (lambda _, **columns: {**LEDGER_ROW, **columns}, LEDGER),
}


async def test_wrong_states_are_refused_and_their_twins_accepted(
    pool: Pool, subtests: pytest.Subtests
) -> None:
    now = await now_of(pool)
    for table, (make, wrongs) in MAKERS.items():
        for constraint, states in wrongs.items():
            for state, right, wrong in states:
                with subtests.test(f"{table}: {state}"):
                    assert await _refusal(pool, table, make(now, **right)) is None
                    assert await _refusal(pool, table, make(now, **right) | {**wrong}) == constraint


async def test_an_instant_of_a_job_has_one_execution(pool: Pool) -> None:
    first = execution_row(await now_of(pool))
    again = first | {"execution_id": new_execution_id(first["job_id"], 0)}
    by_hand = again | {"trigger": "manual", "run_key": str(again["execution_id"])}
    await insert(pool, "executions", [first])

    # PostgreSQL names the partition's part of `executions_one_per_instant`.
    refusal = await _refusal(pool, "executions", again)
    assert str(refusal).endswith("_job_id_scheduled_time_run_key_shard_key")
    assert await _refusal(pool, "executions", by_hand) is None
    assert await _refusal(pool, "executions", again | {"scheduled_time": SOME_DAY}) is None


async def test_the_words_of_the_code_are_those_of_the_database(pool: Pool, subtests: pytest.Subtests) -> None:
    words: Iterable[tuple[str, str, Iterable[str]]] = (
        ("executions", "executions_status_check", LIVE),
        ("executions", "executions_trigger_check", Trigger),
        ("execution_history", "execution_history_status_check", FINAL),
        (
            "execution_history",
            "execution_history_disposition_check",
            set(Disposition) - {Disposition.PENDING},
        ),
        ("jobs", "jobs_schedule_type_check", set(ScheduleType) - {ScheduleType.CRON}),
        ("jobs", "jobs_gap_check", Gap),
        ("jobs", "jobs_fold_check", Fold),
        ("jobs", "jobs_misfire_check", Misfire),
        ("tasks", "tasks_retry_policy_check", RetryPolicy),
        ("users", "users_role_check", Role),
    )
    for table, constraint, expected in words:
        with subtests.test(constraint):
            definition = await pool.fetchval(
                "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = $1::regclass AND conname = $2",
                f"onthedot.{table}",
                constraint,
            )
            assert _quoted(definition) == set(expected)

    for index, expected in (("executions_ready", READY), ("executions_lease", LEASED)):
        with subtests.test(index):
            predicate = await pool.fetchval(
                "SELECT pg_get_expr(indpred, indrelid) FROM pg_index WHERE indexrelid = $1::regclass",
                f"onthedot.{index}",
            )
            assert _quoted(predicate) == set(expected)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("executions_ready: worker_deaths < ", SUSPECT_FROM),
        ("executions_suspects: worker_deaths >= ", SUSPECT_FROM),
        ("claim_due: worker_deaths < ", SUSPECT_FROM),
        ("claim_ahead: worker_deaths < ", SUSPECT_FROM),
        ("claim_suspect: worker_deaths >= ", SUSPECT_FROM),
        ("suspects: worker_deaths >= ", SUSPECT_FROM),
        ("reap_running: worker_deaths < ", POISON_AT - 1),
        ("reap_poison: worker_deaths >= ", POISON_AT - 1),
        ("run_again: worker_deaths >= ", POISON_AT),
    ],
)
async def test_statements_and_indexes_say_the_same_of_deaths_as_the_domain(
    pool: Pool, text: str, number: int
) -> None:
    where, _, condition = text.partition(": ")
    definition = await pool.fetchval(
        "SELECT pg_get_expr(indpred, indrelid) FROM pg_index WHERE indexrelid = to_regclass($1)",
        f"onthedot.{where}",
    )

    assert re.findall(rf"{condition}(\d+)", definition or load(where)) == [str(number)]


async def _refusal(pool: Pool, table: str, row: Row) -> str | None:
    """Insert a row for a moment; return the constraint that refuses it, None: it is accepted."""
    async with pool.acquire() as connection:
        attempt = connection.transaction()
        await attempt.start()
        try:
            await insert(connection, table, [row])
        except asyncpg.IntegrityConstraintViolationError as error:
            return str(error.constraint_name)
        else:
            return None
        finally:
            await attempt.rollback()


def _quoted(definition: str) -> set[str]:
    return set(re.findall(r"'(\w+)'::text", definition))
