"""Who changed what, and when, stands in the audit log, whoever does it and by whatever means."""

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.actors import RETENTION
from app.db.pools import Pool
from app.db.queries import load
from app.db.stores.access import AccessStore
from app.db.stores.execution_control import Cancelling, ExecutionControl
from app.db.stores.fleet import FleetStore
from app.db.stores.job_control import JobControl
from app.db.stores.jobs import JobStore, Submission
from app.db.stores.keys import KeyStore
from app.db.stores.queues import QueueStore
from app.db.stores.tasks import TaskStore
from app.db.stores.users import UserStore
from app.domain.access import Actor, Principal, Role
from app.domain.errors import Conflict
from app.domain.ids import new_execution_id
from app.domain.job_changes import pause
from app.domain.queues import QueuePatch, QueueRequest
from app.domain.users import NotificationPreferences, PreferencesPatch, UserPatch, UserRequest
from tests.factories import (
    FAILURE,
    finished_row,
    insert,
    job_row,
    make_execution,
    make_finished,
    make_job,
    make_task,
    new_job,
    now_of,
    task_row,
)

ADA = Principal("ada", Role.ADMIN)
ONCE = {"schedule_type": "IMMEDIATE", "every_seconds": None, "starts_at": None, "materialize_at": None}
SECRET = "whsec_" + "a" * 40

Entry = tuple[str, str, str, Any, Any]
EACH_MINUTE = {"type": "INTERVAL", "every": 60}


async def entries(pool: Pool, *targets: str) -> list[Entry]:
    """Return (actor, action, target, before, after) of what was done to these kinds of things, in order."""
    rows = await pool.fetch(
        "SELECT * FROM audit.changes WHERE target_type = ANY ($1::text[]) ORDER BY audit_id", list(targets)
    )
    return [(r["actor"], r["action"], r["target_id"], _json(r["before"]), _json(r["after"])) for r in rows]


async def test_a_tasks_life_stands_in_the_log(pool: Pool, engine: AsyncEngine) -> None:
    tasks = TaskStore(engine)
    await tasks.create(task_row(task_id="report"), by=ADA)
    await tasks.change("report", {"priority": 0, "queue": "general"}, by=ADA, if_version=None)
    await tasks.delete("report", by=ADA)

    created, changed, deleted = await entries(pool, "task")
    assert created[:4] == ("user:ada", "task.create", "report", None)
    assert created[4]["execution_handler"] == "builtin:noop"
    before, after = {"priority": 2, "version": 1}, {"priority": 0, "version": 2}
    assert changed == ("user:ada", "task.update", "report", before, after)
    assert deleted[:3] == ("user:ada", "task.delete", "report")
    assert (deleted[3]["priority"], deleted[4]) == (0, None)


async def test_what_is_rolled_back_was_never_done(pool: Pool, engine: AsyncEngine) -> None:
    tasks = TaskStore(engine)
    await tasks.create(task_row(task_id="report"), by=ADA)
    with pytest.raises(Conflict):
        await tasks.create(task_row(task_id="report"), by=ADA)
    await make_job(pool, task_id="report")
    with pytest.raises(Conflict):
        await tasks.delete("report", by=ADA)

    assert [entry[1] for entry in await entries(pool, "task")] == ["task.create"]


async def test_users_and_keys_stand_in_it_without_their_secrets(pool: Pool, engine: AsyncEngine) -> None:
    users, keys, key_id = UserStore(engine), KeyStore(engine), uuid4()
    addresses = NotificationPreferences(webhook_url="https://example.org/hidden", webhook_secret=SECRET)
    request = UserRequest(user_id="vera", notification_preferences=addresses)
    await users.create(request, by=ADA)
    await keys.create("secret", key_id=key_id, user_id="vera", name="ci", expires_at=None, by=ADA)
    other = PreferencesPatch(webhook_secret=SECRET[:-1] + "b")
    await users.change("vera", UserPatch(notification_preferences=other), by=ADA, if_version=None)
    await AccessStore(engine).principal_of_key("secret")  # notes its use, which is no change
    await users.delete("vera", by=ADA)

    log = await entries(pool, "user", "key")
    assert [(entry[0], entry[1], entry[2]) for entry in log] == [
        ("user:ada", "user.create", "vera"),
        ("user:ada", "key.create", str(key_id)),
        ("user:ada", "user.update", "vera"),
        ("user:ada", "user.delete", "vera"),
        ("user:ada", "key.delete", str(key_id)),
    ]
    assert log[1][4].keys() == {"key_id", "user_id", "name", "prefix", "created_at", "expires_at"}
    masked = log[2][4]["notification_preferences"]
    assert (masked["webhook_url"], masked["webhook_secret"]) == ("********", "********")
    whole = await pool.fetchval("SELECT string_agg(l::text, '') FROM onthedot.audit_log AS l")
    assert SECRET[:-1] not in whole
    assert "example.org" not in whole


async def test_queues_zone_aliases_and_orders_to_workers_stand_in_it(pool: Pool, engine: AsyncEngine) -> None:
    queues, worker_id = QueueStore(engine), uuid4()
    await queues.create(QueueRequest(queue="night"), by=ADA)
    await queues.change("night", QueuePatch(priority=1), by=ADA, if_version=None)
    await queues.pause("night", reason="freeze", until=None, by=ADA)
    beat: Any = (worker_id, "ant", 7, "1", [], 4, 0, False, False, None, False, "{}", 2.0, 1024)
    await pool.fetch(load("heartbeat"), *beat)
    await FleetStore(engine).drain(worker_id, by=ADA)
    await pool.fetch(load("heartbeat"), *beat)
    await pool.execute("INSERT INTO onthedot.zone_aliases VALUES ('Mars', 'UTC')")

    log = await entries(pool, "queue", "worker", "zone_alias")
    assert [entry[:2] for entry in log] == [
        ("user:ada", "queue.create"),
        ("user:ada", "queue.update"),
        ("user:ada", "queue.update"),
        ("user:ada", "worker.update"),
        ("sql:onthedot", "zone_alias.create"),
    ]
    assert log[2][4]["paused_reason"] == "freeze"
    assert log[3][2:] == (str(worker_id), {"draining": False}, {"draining": True})


async def test_a_worker_that_drains_by_itself_was_told_by_nobody(pool: Pool) -> None:
    beat: list[Any] = [uuid4(), "ant", 7, "1", [], 4, 0, False, False, None, False, "{}", 2.0, 1024]
    await pool.fetch(load("heartbeat"), *beat)
    beat[7] = True
    await pool.fetch(load("heartbeat"), *beat)

    assert await entries(pool, "worker") == []


async def test_the_first_administrator_was_made_by_the_first_start(pool: Pool, engine: AsyncEngine) -> None:
    for _ in range(2):
        await AccessStore(engine).ensure_admin("k" * 32, key_id=uuid4())

    log = await entries(pool, "user", "key")
    assert [entry[:2] for entry in log] == [
        ("system:bootstrap", "user.create"),
        ("system:bootstrap", "key.create"),
    ]


async def test_jobs_created_together_each_have_their_creator(pool: Pool) -> None:
    for user_id in ("ada", "vera"):
        await insert(pool, "users", [{"user_id": user_id, "name": user_id, "role": "admin"}])
    await make_task(pool)
    wanted = [
        Submission(jobs=[await new_job(pool, schedule=EACH_MINUTE)], actor=Actor("user:ada")),
        Submission(
            jobs=[await new_job(pool, schedule=EACH_MINUTE), await new_job(pool)], actor=Actor("user:vera")
        ),
        Submission(
            jobs=[await new_job(pool, schedule=EACH_MINUTE), await new_job(pool, queue="none")],
            actor=Actor("user:bob"),
        ),
        Submission(jobs=[await new_job(pool, schedule=EACH_MINUTE)], actor=Actor("user:ada")),
        Submission(jobs=[await new_job(pool)], actor=Actor("user:ada")),
    ]
    stored = await JobStore(pool).create(wanted)

    expected = {str(s.jobs[0].job_id): s.actor.name for s in (wanted[0], wanted[1], wanted[3])}
    log = await entries(pool, "job")
    assert {entry[2]: entry[0] for entry in log if entry[0] != "user:bob"} == expected
    assert [entry[1] for entry in log if entry[0] == "user:bob"] == ["job.create", "job.delete"]
    assert len(stored.lanes) == 5
    alone = Submission(jobs=[await new_job(pool, schedule=EACH_MINUTE)], actor=Actor("user:vera"))
    await JobStore(pool).create([alone])
    assert (await entries(pool, "job"))[-1][:3] == ("user:vera", "job.create", str(alone.jobs[0].job_id))


async def test_changes_name_their_request_and_client(pool: Pool, engine: AsyncEngine) -> None:
    """In whatever way a store reaches the database, and not beyond the transaction."""
    ada = Principal("ada", Role.ADMIN, request_id="r1", client="curl/8 10.0.0.1")
    control, queues, now = JobControl(pool, horizon_seconds=60), QueueStore(engine), await now_of(pool)
    await insert(pool, "users", [{"user_id": "ada", "name": "ada", "role": "admin"}])
    await make_task(pool)
    job_id = await make_job(pool, **ONCE)
    ended = await make_finished(pool, job_id=job_id)
    wanted = [
        Submission(
            jobs=[await new_job(pool, schedule=EACH_MINUTE)],
            actor=Actor("user:ada", request_id, "curl/8 10.0.0.1"),
        )
        for request_id in ("r2", "r3")
    ]

    await queues.create(QueueRequest(queue="night"), by=ada)
    await control.run(job_id, new_execution_id(job_id, 0), now=now, actor=ada.actor)
    await ExecutionControl(pool).run_again(ended, new_execution_id(job_id, 1), now=now, actor=ada.actor)
    await JobStore(pool).create(wanted)
    await queues.pause("night", reason=None, until=None, by=ADA)
    await control.run(job_id, new_execution_id(job_id, 2), now=now, actor=ADA.actor)

    rows = await pool.fetch(
        "SELECT action, request_id, client FROM audit.changes WHERE actor = 'user:ada' ORDER BY audit_id"
    )
    assert [tuple(row) for row in rows] == [
        ("queue.create", "r1", "curl/8 10.0.0.1"),
        ("job.run", "r1", "curl/8 10.0.0.1"),
        ("execution.retry", "r1", "curl/8 10.0.0.1"),
        ("job.create", "r2", "curl/8 10.0.0.1"),
        ("job.create", "r3", "curl/8 10.0.0.1"),
        ("queue.update", None, "test 127.0.0.1"),
        ("job.run", None, "test 127.0.0.1"),
    ]


async def test_a_repeating_jobs_life_stands_in_it(pool: Pool) -> None:
    await make_task(pool)
    control, job_id = JobControl(pool, horizon_seconds=60), await make_job(pool, name="nightly")
    await control.change(job_id, pause(reason="freeze", until=None), if_version=1, actor=Actor("user:ada"))
    execution_id = new_execution_id(job_id, 0)
    await control.run(job_id, execution_id, now=await now_of(pool), actor=Actor("user:vera"))
    await control.delete(job_id, error=FAILURE, actor=Actor("user:ada"))

    log = await entries(pool, "job")
    assert [entry[:2] for entry in log] == [
        ("sql:onthedot", "job.create"),
        ("user:ada", "job.update"),
        ("user:vera", "job.run"),
        ("user:ada", "job.delete"),
    ]
    assert {entry[2] for entry in log} == {str(job_id)}
    assert log[0][4]["name"] == "nightly"
    assert log[1][3:] == (
        {"is_active": True, "pause_reason": None, "version": 1},
        {"is_active": False, "pause_reason": "freeze", "version": 2},
    )
    assert log[2][3:] == (None, {"execution_id": str(execution_id)})
    assert (log[3][3]["name"], log[3][4]) == ("nightly", None)


async def test_the_materializers_own_writes_do_not_stand_in_it(pool: Pool) -> None:
    job_id, now = await make_job(pool), await now_of(pool)
    shard = await pool.fetchval("SELECT onthedot.shard_of($1)", job_id)
    await pool.execute(load("advance_jobs"), shard, [job_id], [now], [now])

    assert [entry[1] for entry in await entries(pool, "job")] == ["job.create"]


async def test_of_a_job_that_runs_once_all_but_its_creation_stands_in_it(pool: Pool) -> None:
    await make_task(pool)
    control, job_id = JobControl(pool, horizon_seconds=60), await make_job(pool, **ONCE)
    await control.change(job_id, pause(reason=None, until=None), if_version=None, actor=Actor("user:ada"))
    await control.delete(job_id, error=FAILURE, actor=Actor("user:ada"))

    assert [entry[1] for entry in await entries(pool, "job")] == ["job.update", "job.delete"]


@pytest.mark.parametrize(("columns", "actions"), [(ONCE, []), ({}, ["job.create", "job.delete"])])
async def test_retention_leaves_no_trace_of_one_shot_jobs_only(
    pool: Pool, columns: dict[str, Any], actions: Sequence[str]
) -> None:
    job_id = await make_job(pool, **columns)
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT set_config('onthedot.actor', $1, true)", RETENTION.name)
        await connection.execute("DELETE FROM onthedot.jobs WHERE job_id = $1", job_id)

    assert [entry[1] for entry in await entries(pool, "job")] == actions


async def test_jobs_taken_back_in_their_own_transaction_leave_no_delete_behind(pool: Pool) -> None:
    row = job_row(await now_of(pool), **ONCE)
    async with pool.acquire() as connection, connection.transaction():
        await insert(connection, "jobs", [row])
        await connection.execute(load("discard_jobs"), [row["job_id"]])

    assert await entries(pool, "job") == []


async def test_what_is_done_to_executions_by_hand_stands_in_it(pool: Pool) -> None:
    control, now = ExecutionControl(pool), await now_of(pool)
    waiting = await make_execution(pool)
    running = await make_execution(pool, status="RUNNING")
    job_id = await make_job(pool, **ONCE)
    ended = await make_finished(pool, job_id=job_id)
    again = new_execution_id(job_id, 0)

    async def cancel(execution_id: UUID) -> Cancelling:
        return await control.cancel(
            execution_id, error=FAILURE, now=now, actor=Actor("user:ada"), reason="why not"
        )

    assert await cancel(waiting) is Cancelling.CANCELLED
    assert await cancel(running) is Cancelling.REQUESTED
    assert await cancel(ended) is Cancelling.ENDED
    assert await control.run_again(ended, again, now=now, actor=Actor("user:ada")) is not None
    assert (
        await control.run_again(waiting, again, now=now, actor=Actor("user:ada")) is None
    )  # its job is gone

    assert await entries(pool, "execution") == [
        ("user:ada", "execution.cancel", str(waiting), None, {"cancelling": "cancelled"}),
        ("user:ada", "execution.cancel", str(running), None, {"cancelling": "requested"}),
        ("user:ada", "execution.retry", str(ended), None, {"execution_id": str(again)}),
    ]
    reasons = await pool.fetch("SELECT reason FROM audit.changes WHERE action = 'execution.cancel'")
    assert {row["reason"] for row in reasons} == {"why not"}


async def test_by_sql_the_actor_is_the_login_and_may_say_why(pool: Pool) -> None:
    async with pool.acquire() as connection:
        await connection.execute("SET application_name = 'psql'")
        async with connection.transaction():
            await connection.execute("SET LOCAL onthedot.reason = 'ticket 7'")
            await connection.execute("SET LOCAL onthedot.request_id = 'r1'")
            await connection.execute("SET LOCAL onthedot.actor = 'user:somebody'")
            await connection.execute("UPDATE onthedot.queues SET priority = 0 WHERE queue = 'bulk'")
        await connection.execute("UPDATE onthedot.queues SET priority = 1 WHERE queue = 'bulk'")
        await connection.execute("UPDATE onthedot.queues SET priority = 1 WHERE queue = 'bulk'")

    named, unnamed = await pool.fetch("SELECT * FROM audit.changes ORDER BY audit_id")
    assert (named["actor"], named["reason"], named["request_id"]) == ("user:somebody", "ticket 7", "r1")
    assert (unnamed["actor"], unnamed["reason"], unnamed["request_id"]) == ("sql:onthedot", None, None)
    assert {row["session_role"] for row in (named, unnamed)} == {"onthedot"}
    assert named["client"] == "psql 127.0.0.1"
    assert json.loads(unnamed["after"]) == {"priority": 1}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE onthedot.audit_log SET actor = 'nobody'",
        "UPDATE onthedot.audit_log SET actor = 'nobody' WHERE false",
        "DELETE FROM onthedot.audit_log",
        "TRUNCATE onthedot.audit_log",
        "TRUNCATE onthedot.audit_log, onthedot.batches",
        "INSERT INTO onthedot.audit_log (audit_id, action, target_type, target_id) OVERRIDING SYSTEM VALUE"
        " VALUES (1, 'a.b', 'a', '1') ON CONFLICT (audit_id) DO UPDATE SET actor = 'nobody'",
        "MERGE INTO onthedot.audit_log USING (VALUES (1)) AS x (n) ON true WHEN MATCHED THEN DELETE",
    ],
)
@pytest.mark.parametrize("replica", ["origin", "replica"])
async def test_nobody_changes_the_log_not_even_a_superuser(pool: Pool, statement: str, replica: str) -> None:
    await pool.execute("UPDATE onthedot.queues SET priority = 0 WHERE queue = 'bulk'")
    async with pool.acquire() as connection:
        assert await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = session_user")
        await connection.execute(f"SET session_replication_role = {replica}")
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
            await connection.execute(statement)
    assert await pool.fetchval("SELECT actor FROM onthedot.audit_log") == "sql:onthedot"


async def test_who_may_change_a_row_need_not_be_able_to_write_the_log(pool: Pool) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute(
            "CREATE ROLE audit_log_test; GRANT USAGE ON SCHEMA onthedot TO audit_log_test"
        )
        await connection.execute("GRANT UPDATE (priority), SELECT ON onthedot.queues TO audit_log_test")
        await connection.execute("SET LOCAL ROLE audit_log_test")
        await connection.execute("UPDATE onthedot.queues SET priority = 0 WHERE queue = 'bulk'")
        await connection.execute("RESET ROLE; REVOKE ALL ON onthedot.queues FROM audit_log_test")
        await connection.execute(
            "REVOKE ALL ON SCHEMA onthedot FROM audit_log_test; DROP ROLE audit_log_test"
        )

    assert [entry[:3] for entry in await entries(pool, "queue")] == [("sql:onthedot", "queue.update", "bulk")]


async def test_finished_executions_and_what_workers_do_to_live_ones_fire_nothing(pool: Pool) -> None:
    fired = await pool.fetch(
        "SELECT tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal AND tgrelid = ANY ($1::regclass[])",
        ["onthedot.executions", "onthedot.execution_history", "onthedot.attempts", "onthedot.execution_logs"],
    )
    assert fired == []
    now = await now_of(pool)
    await insert(pool, "execution_history", [finished_row(now)])
    assert await entries(pool, "execution") == []


def _json(text: str | None) -> Any:
    return None if text is None else json.loads(text)
