"""Running one attempt: handler in, outcome out. Nothing here touches the database."""

import asyncio
import random

import msgspec

from app.domain.claims import TaskToRun
from app.domain.failure_rules import ruled
from app.domain.failures import Category, Failure
from app.domain.outcomes import Cancelled, Failed, Interrupted, Outcome, Released, Succeeded, decide_failure
from app.domain.parameters import ParameterSchema
from app.domain.recordable import Recorded, recordable
from app.domain.retry import Backoff, RetryPolicy
from app.worker.attempt import Attempt, Stop
from app.worker.handlers import HandlerRegistry

_NO_BACKOFF = Backoff(RetryPolicy.FIXED, 0.0, 0.0)


class Runner:
    """Runs attempts; never raises, whatever a handler does."""

    def __init__(self, handlers: HandlerRegistry) -> None:
        self._handlers = handlers

    async def run(self, attempt: Attempt) -> Outcome:
        """Call the handler of the attempt's task and say what it came to."""
        try:
            if attempt.task is None:
                return Failed(_task_is_gone(attempt))
            if not attempt.claim.parameters_checked:
                _check_parameters(attempt, attempt.task)
            handler = self._handlers.resolve(attempt.task.execution_handler)
            value = await handler(attempt)
            return Succeeded(value if type(value) is Recorded else recordable(value))
        except asyncio.CancelledError as error:
            return self.stopped(attempt) if attempt.stop else self.failed(attempt, error)
        # SystemExit and KeyboardInterrupt from a handler would end this worker and all its neighbours.
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - whatever a handler raises
            return self.stopped(attempt) if attempt.stop else self.failed(attempt, error)

    def failed(self, attempt: Attempt, error: BaseException) -> Outcome:
        """Say what an attempt came to that raised."""
        return self._failed(attempt, Failure.of(error), error)

    def stopped(self, attempt: Attempt) -> Outcome:
        """Say what an attempt came to that the worker itself has ended."""
        match attempt.stop:
            case Stop.CANCELLED:
                return Cancelled()
            case Stop.INTERRUPTED:
                return Interrupted()
            case Stop.TIMEOUT:
                text = f"The attempt took longer than its timeout of {attempt.timeout_seconds:g} s"
                return self._failed(attempt, Failure.build("TimeoutError", text, Category.TIMEOUT))
            case _:
                return Released()

    def _failed(self, attempt: Attempt, failure: Failure, error: BaseException | None = None) -> Outcome:
        task, jitter = attempt.task, random.random()  # noqa: S311 - jitter
        backoff, rules = (task.backoff, task.failure_rules) if task else (_NO_BACKOFF, ())
        failure, retry = ruled(failure, error, rules)
        return decide_failure(attempt.claim, failure, backoff, jitter=jitter, retry=retry)


def _check_parameters(attempt: Attempt, task: TaskToRun) -> None:
    """Check what came by SQL. Raises `InvalidParameters`, which is never retried."""
    ParameterSchema(msgspec.json.decode(task.parameter_schema)).check(attempt.context.parameters)


def _task_is_gone(attempt: Attempt) -> Failure:
    text = f"The task {attempt.claim.task_id} was deleted before this execution ran"
    return Failure.build("UnknownTask", text, Category.CONFIGURATION_ERROR)
