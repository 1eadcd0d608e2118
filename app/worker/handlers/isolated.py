"""Functions registered with `isolation="process"`: each attempt in a process of its own."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from app.domain.failures import ErrorDescription, RemoteError
from app.domain.recordable import Recorded
from app.worker.attempt import Attempt
from app.worker.isolation.ends import failure_of_end
from app.worker.isolation.launcher import LaunchedProcess, Launcher
from app.worker.isolation.messages import (
    Answer,
    Function,
    Output,
    Raised,
    Recall,
    Record,
    Remember,
    Returned,
    Stop,
)

DEFAULT_MEMORY_MB = 1024
"""Of a function, where neither its task nor its module says anything."""
LEAST_MEMORY_MB = 64
"""What a process gets in any case: the interpreter and the modules themselves take some tens."""


class IsolatedHandler:
    """Has functions called in processes, and listens to what they say."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher

    def bind(self, name: str, *, memory_mb: int | None) -> Callable[[Attempt], Awaitable[object]]:
        """Return what runs the function registered as `name`; `memory_mb`: what its module asks for."""
        return lambda attempt: self._run(name, memory_mb, attempt)

    async def _run(self, name: str, memory_mb: int | None, attempt: Attempt) -> Recorded:
        log = attempt.log
        async with self._launcher.launched(
            stdout=partial(log.write_bytes, stream="stdout"), stderr=partial(log.write_bytes, stream="stderr")
        ) as process:
            process.send(_order(name, memory_mb, attempt))
            hearing = asyncio.create_task(_hear(process, attempt))
            try:
                outcome = await asyncio.shield(hearing)
                status = await process.ended()
            finally:
                if attempt.stop is not None:
                    await process.stop(lambda: process.send(Stop()))
                    await asyncio.wait([hearing])  # its last words count
        match outcome:
            case Returned(result):
                return result
            case Raised(error):
                raise RemoteError(error)
        raise failure_of_end(f"the process of {name}", status)


async def _hear(process: LaunchedProcess, attempt: Attempt) -> Returned | Raised | None:
    """Take what a process says until it says what its function came to; None where it ends before."""
    while (message := await process.receive()) is not None:
        match message:
            case Output(stream, data):
                attempt.log.write_bytes(data, stream=stream)
            case Record(level, text):
                attempt.log.add_line(text, level=level)
            case Recall() | Remember():
                process.send(await _answer(message, attempt))
            case Returned() | Raised():
                return message
    return None


async def _answer(question: Recall | Remember, attempt: Attempt) -> Answer:
    try:
        match question:
            case Recall(number, key):
                return Answer(number, known=await attempt.effects.recall(key))
            case Remember(number, key, result):
                await attempt.effects.remember(key, result)
                return Answer(number)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where it was asked
        return Answer(question.question, error=ErrorDescription.of(error))


def _order(name: str, memory_mb: int | None, attempt: Attempt) -> Function:
    context, wanted = attempt.context, attempt.task.memory_mb if attempt.task else 0
    return Function(
        name=name,
        execution_id=context.execution_id,
        job_id=context.job_id,
        attempt_number=context.attempt_number,
        scheduled_time=context.scheduled_time,
        fencing_token=context.fencing_token,
        timeout_seconds=context.timeout_seconds,
        parameters=attempt.claim.parameters,
        upstream=msgspec.json.encode(context.upstream).decode(),
        memory_mb=max(wanted or memory_mb or DEFAULT_MEMORY_MB, LEAST_MEMORY_MB),
    )
