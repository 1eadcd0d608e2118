"""From the text of `execution_handler` to what runs."""

from collections.abc import Callable, Mapping
from functools import partial

from app.domain.errors import InvalidInput
from app.domain.workflows.definition import WORKFLOW_HANDLER
from app.tasks import Handler, options_of
from app.worker.handlers.builtin import BUILTINS
from app.worker.handlers.http import HttpHandler
from app.worker.handlers.isolated import IsolatedHandler
from app.worker.handlers.python import PythonHandler
from app.worker.handlers.shell import ShellHandler
from app.worker.handlers.workflow import WorkflowHandler
from app.worker.upstream import Runnable, Upstream


class HandlerUnavailable(Exception):
    """This worker has no such handler."""

    category = "configuration_error"


class HandlerRegistry:
    """Finds what runs an `execution_handler`, once for each text. `shell` is None where commands are not allowed."""

    def __init__(
        self,
        *,
        python: PythonHandler,
        isolated: IsolatedHandler,
        http: HttpHandler,
        shell: ShellHandler | None,
        workflow: WorkflowHandler,
        upstream: Upstream,
        functions: Mapping[str, Handler],
    ) -> None:
        self._python = python
        self._isolated = isolated
        self._http = http
        self._shell = shell
        self._workflow = workflow
        self._upstream = upstream
        self._functions = functions
        self._resolved: dict[str, Runnable] = {}

    def when_stuck(self, act: Callable[[int], object]) -> None:
        """Have this called, with their number, when too many functions go on after their attempts were given up."""
        self._python.threads.when_too_many(act)

    def resolve(self, execution_handler: str) -> Runnable:
        """Return what runs it. Raises `HandlerUnavailable`, which is never retried."""
        known = self._resolved.get(execution_handler)
        if known is None:
            known = self._resolved[execution_handler] = self._find(execution_handler)
        return known

    def _find(self, execution_handler: str) -> Runnable:
        kind, _, rest = execution_handler.partition(":")
        match kind:
            case _ if execution_handler == WORKFLOW_HANDLER:
                return self._workflow.run
            case "builtin" if rest in BUILTINS:
                return BUILTINS[rest]
            case "python":
                return self._bind_function(rest)
            case "http":
                return self._bind_http(rest)
            case "shell":
                return self._bind_command(rest)
            case _:
                raise HandlerUnavailable(f"this version of onthedot has no handler {execution_handler}")

    def _bind_function(self, name: str) -> Runnable:
        function = self._functions.get(name)
        if function is None:
            raise HandlerUnavailable(
                f"no function is registered as python:{name}; is its module in ONTHEDOT_TASK_MODULES?"
            )
        options = options_of(function)
        if options.isolation == "process":
            return self._upstream.before(self._isolated.bind(name, memory_mb=options.memory_mb))
        return self._upstream.before(self._python.bind(function))

    def _bind_http(self, text: str) -> Runnable:
        try:
            return partial(self._http.run, self._http.parse(text))
        except InvalidInput as error:
            raise HandlerUnavailable(error.detail) from None

    def _bind_command(self, text: str) -> Runnable:
        if self._shell is None:
            raise HandlerUnavailable(
                "this worker runs no commands; start it with ONTHEDOT_ALLOW_SHELL=true if it shall"
            )
        try:
            return self._shell.bind(text)
        except InvalidInput as error:
            raise HandlerUnavailable(error.detail) from None
