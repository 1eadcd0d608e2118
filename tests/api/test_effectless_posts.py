"""A POST that changes nothing, such as one that computes something, keeps its answer under a key too."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from litestar import Litestar, Request, Router, post
from litestar.datastructures import State

from app.api.auth import KeyAuthentication, KeyRing
from app.api.errors import EXCEPTION_HANDLERS
from app.api.transactions import OneTransaction
from app.db.stores.access import AccessStore
from app.db.transactions import Transactions
from app.domain.access import Principal, Role
from app.domain.idempotency import StoredAnswer, idempotent_request
from app.request_ids import RequestIds
from tests.api.conftest import Site, problem
from tests.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

ADA = Principal("ada", Role.ADMIN)
EARLIER = StoredAnswer(201, b'{"number":"earlier"}')


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def counter(site: Site) -> AsyncIterator[Site]:
    """Return an API with one address, which answers with another number each time."""
    numbers = count()

    @post("/api/v1/numbers")
    async def next_number(request: Request[Principal, str, State]) -> dict[str, str]:
        return {"number": f"{next(numbers)} for {request.user.user_id}"}

    parts = {"key_ring": KeyRing(AccessStore(site.engine)), "transactions": Transactions(site.engine)}
    app = Litestar(
        [Router("/", route_handlers=[next_number], middleware=[KeyAuthentication, OneTransaction()])],
        state=State(parts),
        middleware=[RequestIds()],
        exception_handlers=EXCEPTION_HANDLERS,
        logging_config=None,
    )
    transport = httpx.ASGITransport(app)  # type: ignore[arg-type]  # the same protocol in other words
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as http:
        yield Site(pool=site.pool, engine=site.engine, clock=site.clock, http=http)


async def ask(counter: Site, key: str, body: bytes = b"{}") -> httpx.Response:
    return await counter.post("/numbers", body, user="ada", headers={"Idempotency-Key": key})


async def test_a_repeat_gets_the_first_answer(counter: Site) -> None:
    key = str(uuid4())
    first, second = await ask(counter, key), await ask(counter, key)

    assert (first.status_code, second.text) == (201, first.text)
    assert second.headers["Idempotency-Replayed"] == "true"
    assert (await ask(counter, str(uuid4()))).text != first.text
    problem(await ask(counter, key, b"[]"), status=422, code="idempotency_mismatch")


@pytest.mark.parametrize("body", [b"{}", b"[]"])
async def test_of_two_processes_at_once_the_later_one_withdraws_its_answer(
    site: Site, counter: Site, body: bytes
) -> None:
    key = str(uuid4())
    request = idempotent_request(
        key, user_id="ada", method="POST", path="/api/v1/numbers", query="", body=b"{}"
    )

    async def waits() -> bool:
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'test'"
        return bool(await site.pool.fetchval(waiting))

    async with Transactions(site.engine).open(ADA, request) as earlier:
        await earlier.connection()
        later = asyncio.create_task(ask(counter, key, body))
        await eventually(waits)
        await earlier.commit(EARLIER)

    answer = await later
    if body == b"{}":
        assert (answer.status_code, answer.content) == (EARLIER.status_code, EARLIER.body)
        assert answer.headers["Idempotency-Replayed"] == "true"
    else:
        problem(answer, status=422, code="idempotency_mismatch")
