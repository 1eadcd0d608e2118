"""Every POST of the API, whichever there are, under an `Idempotency-Key`: one effect, one transaction, one answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio

from app.db.engine import open_engine
from app.db.pools import open_pool
from app.server.api import web_app
from app.settings import Settings
from tests.api.conftest import Site, problem
from tests.api.posts import EFFECTLESS, POSTS, Post
from tests.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

every_post = pytest.mark.parametrize("path", POSTS)
every_effective_post = pytest.mark.parametrize("path", [path for path in POSTS if path not in EFFECTLESS])

SHOWN_ONCE = {"key", "note"}
"""What of the answer with a new API key is not kept."""

ROWS = """
    SELECT 'task', task_id, xmin::text FROM onthedot.tasks UNION ALL
    SELECT 'job', job_id::text, xmin::text FROM onthedot.jobs UNION ALL
    SELECT 'batch', batch_id::text, xmin::text FROM onthedot.batches UNION ALL
    SELECT 'live', execution_id::text, xmin::text FROM onthedot.executions UNION ALL
    SELECT 'ended', execution_id::text, xmin::text FROM onthedot.execution_history UNION ALL
    SELECT 'user', user_id, xmin::text FROM onthedot.users UNION ALL
    SELECT 'key', key_id::text, xmin::text FROM onthedot.api_keys WHERE last_used_at IS NULL UNION ALL
    SELECT 'queue', queue, xmin::text FROM onthedot.queues UNION ALL
    SELECT 'worker', worker_id::text, xmin::text FROM onthedot.workers UNION ALL
    SELECT 'definition', concat(workflow_id, version), xmin::text FROM onthedot.workflow_definitions UNION ALL
    SELECT 'run', workflow_run_id::text, xmin::text FROM onthedot.workflow_runs UNION ALL
    SELECT 'step', concat(workflow_run_id, step), xmin::text FROM onthedot.workflow_run_steps UNION ALL
    SELECT 'noted', audit_id::text, xmin::text FROM onthedot.audit_log"""
"""Every row that a request may write, with the transaction that wrote it last."""


class Row(NamedTuple):
    """A row, and the transaction that wrote it."""

    kind: str
    name: str
    written_by: str


async def rows(site: Site) -> set[Row]:
    return {Row(*row) for row in await site.pool.fetch(ROWS)}


async def keys(site: Site) -> set[str]:
    """Return the transactions that have remembered keys."""
    found = await site.pool.fetch("SELECT xmin::text FROM onthedot.idempotency_keys")
    return {row[0] for row in found}


async def send(site: Site, key: str, post: Post, body: object = ...) -> httpx.Response:
    """Send a request of the administrator's under a key."""
    sent = post.body if body is ... else body
    options: dict[str, Any] = {} if sent is None else {"json": sent}
    headers = {"Idempotency-Key": key}
    return await site.request("POST", post.path, user="ada", headers=headers, **options)


def kept(answer: httpx.Response) -> tuple[object, ...]:
    """Return what of an answer a repeat must get too."""
    document = {name: value for name, value in answer.json().items() if name not in SHOWN_ONCE}
    headers = [answer.headers.get(name) for name in ("Content-Type", "ETag", "Location", "Cache-Control")]
    return (answer.status_code, document, *headers)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def twin(site: Site, module_dsn: str) -> AsyncIterator[Site]:
    """Return the application of another process: it shares nothing with the first but the database."""
    async with await open_pool(module_dsn, size=4, application_name="twin") as pool:
        engine = open_engine(module_dsn, size=4, application_name="twin")
        app = web_app(engine, pool, site.clock, Settings.from_env({}))
        transport = httpx.ASGITransport(app)  # type: ignore[arg-type]  # the same protocol in other words
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as http:
            yield Site(pool=pool, engine=engine, clock=site.clock, http=http)
        await engine.dispose()


async def test_every_post_is_tried_here_and_describes_its_key(site: Site) -> None:
    document = (await site.http.get("/schema/openapi.json")).json()
    posts = {
        path.removeprefix("/api/v1"): methods["post"]
        for path, methods in document["paths"].items()
        if path.startswith("/api/v1") and "post" in methods
    }

    assert posts.keys() == POSTS.keys()
    for path, operation in posts.items():
        parameters = {(p["in"], p["name"]): p for p in operation["parameters"]}
        assert "24 hours" in parameters["header", "Idempotency-Key"]["description"], path
        assert not parameters["header", "Idempotency-Key"].get("required"), path
        assert operation["responses"].keys() >= {"409", "422"}, path
    others = [methods for path, methods in document["paths"].items() if path.startswith("/api/v1")]
    for method, operation in (item for methods in others for item in methods.items()):
        if method != "post":
            assert "Idempotency-Key" not in {p["name"] for p in operation.get("parameters", [])}


@every_effective_post
async def test_a_repeat_gets_the_same_answer_and_has_no_effect(site: Site, path: str) -> None:
    post, key = await POSTS[path](site), str(uuid4())
    before = await rows(site)

    first = await send(site, key, post)
    assert first.is_success, first.text
    assert "Idempotency-Replayed" not in first.headers
    done = await rows(site)
    assert done - before

    for repeat in (key, f'"{key}"'):
        second = await send(site, repeat, post)
        assert kept(second) == kept(first)
        assert second.headers["Idempotency-Replayed"] == "true"
    other = await send(site, key, post, post.other_body)
    problem(other, status=422, code="idempotency_mismatch")
    assert await rows(site) == done


@every_effective_post
async def test_key_and_effect_are_one_transaction(site: Site, path: str) -> None:
    post = await POSTS[path](site)
    before, known = await rows(site), await keys(site)

    assert (await send(site, str(uuid4()), post)).is_success

    written = {row.written_by for row in await rows(site) - before}
    assert written == await keys(site) - known
    assert len(written) == 1


@every_effective_post
async def test_at_once_in_two_processes_it_is_done_once(site: Site, twin: Site, path: str) -> None:
    post, key = await POSTS[path](site), str(uuid4())
    before = await rows(site)

    answers = await asyncio.gather(*(send(place, key, post) for place in (site, twin) for _ in range(8)))

    assert len({str(kept(answer)) for answer in answers}) == 1, {answer.text for answer in answers}
    assert answers[0].is_success, answers[0].text
    assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1
    assert len({row.written_by for row in await rows(site) - before}) == 1


@every_post
async def test_what_is_rolled_back_leaves_its_key_free(site: Site, path: str) -> None:
    post, key = await POSTS[path](site), str(uuid4())
    before, known = await rows(site), await keys(site)

    async with failing_commits(site):
        problem(await send(site, key, post), status=500, code="internal_error")
    assert (await rows(site), await keys(site)) == (before, known)

    again = await send(site, key, post)
    assert again.is_success, again.text
    assert "Idempotency-Replayed" not in again.headers


@every_post
async def test_without_a_key_no_key_is_kept(site: Site, path: str) -> None:
    post, known = await POSTS[path](site), await keys(site)
    options: dict[str, Any] = {} if post.body is None else {"json": post.body}

    assert (await site.request("POST", post.path, user="ada", **options)).is_success
    assert await keys(site) == known


@every_post
async def test_a_key_that_is_none_is_refused(site: Site, path: str) -> None:
    post, before = await POSTS[path](site), await rows(site)

    problem(await send(site, "", post), status=400, code="invalid_input")
    assert await rows(site) - before == set()


@asynccontextmanager
async def failing_commits(site: Site) -> AsyncIterator[None]:
    """Let every transaction that remembers a key fail at the very end, when all of it has been done."""
    await site.pool.execute("""
        CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no disk'; END $$;
        CREATE CONSTRAINT TRIGGER failing AFTER INSERT ON onthedot.idempotency_keys DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION public.fail()""")
    yield
    await site.pool.execute("DROP FUNCTION public.fail CASCADE")


async def test_a_key_stands_for_one_address_and_belongs_to_its_user(site: Site) -> None:
    first, second, key = await POSTS["/queues"](site), await POSTS["/tasks"](site), str(uuid4())
    assert (await send(site, key, first)).status_code == 201

    problem(await send(site, key, second), status=422, code="idempotency_mismatch")
    problem(await send(site, key, await POSTS["/jobs"](site)), status=422, code="idempotency_mismatch")
    options = {"user": "oscar", "headers": {"Idempotency-Key": key}}
    assert (await site.post(second.path, second.body, **options)).status_code == 201
    problem(await site.post(first.path, first.body, **options), status=422, code="idempotency_mismatch")


async def test_what_failed_may_be_sent_again_under_its_key(site: Site) -> None:
    post, key = await POSTS["/queues"](site), str(uuid4())
    await site.post(post.path, post.body)
    problem(await send(site, key, post), status=409, code="conflict")
    await site.pool.execute("DELETE FROM onthedot.queues WHERE queue LIKE 'q-%'")

    again = await send(site, key, post)
    assert again.status_code == 201
    assert "Idempotency-Replayed" not in again.headers


async def test_a_repeat_is_not_checked_anew(site: Site) -> None:
    """What was right then may be wrong now: this instant will have passed."""
    path = (await POSTS["/queues/{queue}/actions/pause"](site)).path
    until = site.clock.unix_seconds() + 1
    post, key = Post(path, {"until": until}, None), str(uuid4())
    first = await send(site, key, post)
    assert first.status_code == 200, first.text

    async def has_passed() -> bool:
        return site.clock.unix_seconds() > until

    await eventually(has_passed)
    problem(await send(site, str(uuid4()), post), status=400, code="invalid_input")
    assert kept(await send(site, key, post)) == kept(first)


async def test_repeats_wait_for_the_first_answer_without_a_connection_each(site: Site) -> None:
    post, key = await POSTS["/queues/{queue}/actions/pause"](site), str(uuid4())
    async with locked_queues(site):
        first = asyncio.create_task(send(site, key, post))
        await eventually(lambda: waits_for_a_lock(site))
        repeats = [asyncio.create_task(send(site, key, post)) for _ in range(10)]
        assert (await site.get("/queues?limit=1")).status_code == 200
        assert not any(repeat.done() for repeat in repeats)
        assert site.engine.pool.checkedout() == 1  # type: ignore[attr-defined]  # a queue pool has it

    answers = [await answer for answer in (first, *repeats)]
    assert len({str(kept(answer)) for answer in answers}) == 1
    assert answers[0].status_code == 200, answers[0].text
    assert [answer.headers.get("Idempotency-Replayed") for answer in answers] == [None] + ["true"] * 10


async def test_a_repeat_does_not_wait_for_ever(site: Site, twin: Site) -> None:
    post, key = await POSTS["/queues/{queue}/actions/pause"](site), str(uuid4())
    async with locked_queues(site):
        first = asyncio.create_task(send(site, key, post))
        await eventually(lambda: waits_for_a_lock(site))
        for repeat in await asyncio.gather(send(site, key, post), send(twin, key, post)):
            problem(repeat, status=409, code="request_underway")
            assert repeat.headers["Retry-After"]
        assert not first.done()

    assert (await first).status_code == 200
    for place in (site, twin):
        assert kept(await send(place, key, post)) == kept(first.result())


@asynccontextmanager
async def locked_queues(site: Site) -> AsyncIterator[None]:
    """Lock the queues, as somebody does who changes them by SQL and goes for a coffee."""
    async with site.pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT 1 FROM onthedot.queues FOR UPDATE")
        yield


async def waits_for_a_lock(site: Site) -> bool:
    """Tell whether some session of the database waits for a lock."""
    return bool(
        await site.pool.fetchval(
            "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)"
            " WHERE NOT granted AND datname = current_database()"
        )
    )


async def test_a_new_api_key_is_shown_once_and_stored_nowhere(site: Site) -> None:
    post, key = await POSTS["/users/{user_id}/keys"](site), str(uuid4())
    first, second = await send(site, key, post), await send(site, key, post)

    secret = first.json()["key"]
    assert "note" not in first.json()
    assert second.json()["key"] is None
    assert "under a new Idempotency-Key" in second.json()["note"]
    answers = await site.pool.fetch(
        "SELECT convert_from(answer, 'UTF8') AS text FROM onthedot.idempotency_keys"
    )
    assert any(first.json()["key_id"] in row["text"] for row in answers)
    assert not any(secret in row["text"] for row in answers)
    used = await site.get("/users/vera", user=None, headers={"Authorization": f"Bearer {secret}"})
    assert used.status_code == 200
