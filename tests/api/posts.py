"""A good request for every POST of the API, under the path that its description has."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from tests.api.conftest import IMMEDIATE, Site
from tests.factories import begin_run, make_finished

HOURLY = {"type": "RECURRING", "expression": "0 * * * *"}


class Post(NamedTuple):
    """A request that can be made once, and another body that would be as good or is not even looked at."""

    path: str
    body: object
    other_body: object


async def create_task(_: Site) -> Post:
    """Create a task."""
    task = {"task_id": f"t-{uuid4()}", "execution_handler": "builtin:noop"}
    return Post("/tasks", task, task | {"priority": 0})


async def create_job(site: Site) -> Post:
    """Create a job that runs once."""
    await site.task("posted")
    job = {"task_id": "posted", "schedule": IMMEDIATE}
    return Post("/jobs", job, job | {"name": "x"})


async def create_jobs(site: Site) -> Post:
    """Create jobs, one of which repeats."""
    await site.task("posted")
    jobs = [{"task_id": "posted", "schedule": schedule} for schedule in (IMMEDIATE, HOURLY)]
    return Post("/jobs/batch", {"jobs": jobs}, {"jobs": jobs[:1]})


async def pause_job(site: Site) -> Post:
    """Pause a job that repeats."""
    return Post(f"/jobs/{await _job(site)}/actions/pause", {"reason": "freeze"}, None)


async def resume_job(site: Site) -> Post:
    """Resume a job."""
    job_id = await _job(site)
    await site.post(f"/jobs/{job_id}/actions/pause", {})
    return Post(f"/jobs/{job_id}/actions/resume", None, {})


async def run_job(site: Site) -> Post:
    """Run a job now."""
    return Post(f"/jobs/{await _job(site)}/actions/run", None, {})


async def cancel_execution(site: Site) -> Post:
    """Cancel what waits."""
    job = await site.job("posted")
    return Post(f"/executions/{job['execution_id']}/actions/cancel", {"reason": "typo"}, {"reason": "other"})


async def retry_execution(site: Site) -> Post:
    """Run again what has ended."""
    job = await site.job("posted", schedule=HOURLY)
    ended = await make_finished(site.pool, job_id=UUID(job["job_id"]), task_id="posted", user_id="oscar")
    return Post(f"/executions/{ended}/actions/retry", None, {})


async def create_user(_: Site) -> Post:
    """Create a user."""
    user = {"user_id": f"u-{uuid4()}"}
    return Post("/users", user, user | {"role": "admin"})


async def create_key(_: Site) -> Post:
    """Create an API key."""
    return Post("/users/vera/keys", {"name": "ci"}, {"name": "other"})


async def create_queue(_: Site) -> Post:
    """Create a queue."""
    queue = {"queue": f"q-{uuid4()}"}
    return Post("/queues", queue, queue | {"priority": 0})


async def pause_queue(site: Site) -> Post:
    """Pause a queue."""
    return Post(f"/queues/{await _queue(site)}/actions/pause", {"reason": "freeze"}, None)


async def resume_queue(site: Site) -> Post:
    """Resume a queue."""
    queue = await _queue(site)
    await site.post(f"/queues/{queue}/actions/pause", {})
    return Post(f"/queues/{queue}/actions/resume", None, {})


async def drain_worker(site: Site) -> Post:
    """Have a worker drain."""
    worker_id: UUID = await site.pool.fetchval(
        "INSERT INTO onthedot.workers (worker_id, host, pid, version, queues, slots)"
        " VALUES (gen_random_uuid(), 'ant', 7, '1.0', '{}', 4) RETURNING worker_id"
    )
    return Post(f"/workers/{worker_id}/actions/drain", None, {})


async def preview_schedule(_: Site) -> Post:
    """Ask what a schedule would do: nothing is stored but the answer."""
    return Post("/schedules/preview", {"schedule": HOURLY}, {"schedule": HOURLY, "count": 1})


async def backfill_job(site: Site) -> Post:
    """Make up for past instants."""
    path = f"/jobs/{await _job(site)}/actions/backfill"
    day = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T05:00:00Z"}
    return Post(path, day, day | {"to": "2026-01-01T06:00:00Z"})


async def backfill_workflow(site: Site) -> Post:
    """Make up for past runs."""
    path = f"/workflows/{await _workflow(site)}/actions/backfill"
    day = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T05:00:00Z"}
    return Post(path, day, day | {"dry_run": True})


async def create_workflow(site: Site) -> Post:
    """Create a workflow."""
    workflow = await _definition(site)
    return Post("/workflows", workflow, workflow | {"name": "other"})


async def run_workflow(site: Site) -> Post:
    """Begin a run of a workflow."""
    path = f"/workflows/{await _workflow(site)}/actions/run"
    return Post(path, {"parameters": {"day": 1}}, {"parameters": {"day": 2}})


async def pause_workflow(site: Site) -> Post:
    """Pause a workflow."""
    return Post(f"/workflows/{await _workflow(site)}/actions/pause", {"reason": "freeze"}, None)


async def resume_workflow(site: Site) -> Post:
    """Resume a workflow."""
    workflow = await _workflow(site)
    await site.post(f"/workflows/{workflow}/actions/pause", {})
    return Post(f"/workflows/{workflow}/actions/resume", None, {})


async def cancel_run(site: Site) -> Post:
    """Cancel a run."""
    path = f"/workflow-runs/{await _run(site)}/actions/cancel"
    return Post(path, {"reason": "typo"}, {"reason": "other"})


async def retry_run(site: Site) -> Post:
    """Have a run that was cancelled go on."""
    run = await _run(site)
    await site.post(f"/workflow-runs/{run}/actions/cancel", {})
    return Post(f"/workflow-runs/{run}/actions/retry", None, {"steps": ["last"]})


async def skip_step(site: Site) -> Post:
    """Pass a step over."""
    path = f"/workflow-runs/{await _run(site)}/actions/skip"
    return Post(path, {"step": "last"}, {"step": "last", "reason": "other"})


async def _definition(site: Site) -> dict[str, Any]:
    await site.job("posted")
    steps = [
        {"key": "first", "task_id": "posted"},
        {"key": "last", "task_id": "posted", "depends_on": ["first"]},
    ]
    return {"schedule": HOURLY, "steps": steps}


async def _workflow(site: Site) -> str:
    answer = await site.post("/workflows", await _definition(site))
    return str(answer.json()["workflow_id"])


async def _run(site: Site) -> UUID:
    return await begin_run(site.pool, site.clock, UUID(await _workflow(site)))


async def _job(site: Site) -> str:
    job: dict[str, Any] = await site.job("posted", schedule=HOURLY)
    return str(job["job_id"])


async def _queue(site: Site) -> str:
    answer = await site.post("/queues", {"queue": f"q-{uuid4()}"})
    return str(answer.json()["queue"])


POSTS: dict[str, Callable[[Site], Awaitable[Post]]] = {
    "/tasks": create_task,
    "/jobs": create_job,
    "/jobs/batch": create_jobs,
    "/jobs/{job_id}/actions/pause": pause_job,
    "/jobs/{job_id}/actions/resume": resume_job,
    "/jobs/{job_id}/actions/run": run_job,
    "/jobs/{job_id}/actions/backfill": backfill_job,
    "/workflows/{workflow_id}/actions/backfill": backfill_workflow,
    "/executions/{execution_id}/actions/cancel": cancel_execution,
    "/executions/{execution_id}/actions/retry": retry_execution,
    "/users": create_user,
    "/users/{user_id}/keys": create_key,
    "/queues": create_queue,
    "/queues/{queue}/actions/pause": pause_queue,
    "/queues/{queue}/actions/resume": resume_queue,
    "/workers/{worker_id}/actions/drain": drain_worker,
    "/schedules/preview": preview_schedule,
    "/workflows": create_workflow,
    "/workflows/{workflow_id}/actions/run": run_workflow,
    "/workflows/{workflow_id}/actions/pause": pause_workflow,
    "/workflows/{workflow_id}/actions/resume": resume_workflow,
    "/workflow-runs/{workflow_run_id}/actions/cancel": cancel_run,
    "/workflow-runs/{workflow_run_id}/actions/retry": retry_run,
    "/workflow-runs/{workflow_run_id}/actions/skip": skip_step,
}
"""By what makes each possible: what it prepares is there before the request is made."""

EFFECTLESS = {"/schedules/preview"}
"""Those that store nothing but the answer under its key."""
