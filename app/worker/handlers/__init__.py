"""From the text of `execution_handler` to what runs."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from app.domain.errors import InvalidInput
from app.tasks import Handler
from app.worker.attempt import Attempt
from app.worker.handlers.builtin import BUILTINS
from app.worker.handlers.http import HttpHandler
from app.worker.handlers.python import PythonHandler

Runnable = Callable[[Attempt], Awaitable[object]]


class HandlerUnavailable(Exception):
    """This worker has no such handler."""

    category = "configuration_error"


class HandlerRegistry:
    """Finds what runs an `execution_handler`, once for each text."""

    def __init__(self, *, python: PythonHandler, http: HttpHandler, functions: Mapping[str, Handler]) -> None:
        self._python = python
        self._http = http
        self._functions = functions
        self._resolved: dict[str, Runnable] = {}

    def resolve(self, execution_handler: str) -> Runnable:
        """Return what runs it. Raises `HandlerUnavailable`, which is never retried."""
        known = self._resolved.get(execution_handler)
        if known is None:
            known = self._resolved[execution_handler] = self._find(execution_handler)
        return known

    def _find(self, execution_handler: str) -> Runnable:
        kind, _, rest = execution_handler.partition(":")
        match kind:
            case "builtin" if rest in BUILTINS:
                return BUILTINS[rest]
            case "python" if rest in self._functions:
                return self._python.bind(self._functions[rest])
            case "python":
                raise HandlerUnavailable(
                    f"no function is registered as {execution_handler}; is its module in ONTHEDOT_TASK_MODULES?"
                )
            case "http":
                return self._bind_http(rest)
            case _:
                raise HandlerUnavailable(f"this version of onthedot has no handler {execution_handler}")

    def _bind_http(self, text: str) -> Runnable:
        try:
            return partial(self._http.run, self._http.parse(text))
        except InvalidInput as error:
            raise HandlerUnavailable(error.detail) from None
