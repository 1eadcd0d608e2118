"""What a worker runs executions with."""

import importlib
from collections.abc import Mapping
from pathlib import Path

from app.db.notifier import HintSender
from app.db.stores.workflows.runs import RunStore
from app.process import Process
from app.settings import Settings, command_environment, handler_environment
from app.startup import CannotStart
from app.tasks import DuplicateHandler, Handler, handlers_in, options_of
from app.worker.handlers import HandlerRegistry
from app.worker.handlers.http import HttpHandler
from app.worker.handlers.isolated import IsolatedHandler
from app.worker.handlers.python import PythonHandler
from app.worker.handlers.shell import ShellHandler
from app.worker.handlers.threads import TaskThreads
from app.worker.handlers.workflow import WorkflowHandler
from app.worker.isolation.launcher import Launcher
from app.worker.isolation.server_line import ForkServerFailed
from app.worker.upstream import Upstream


async def handler_registry(
    settings: Settings, own: Process, functions: Mapping[str, Handler], runs: RunStore
) -> HandlerRegistry:
    """Make every kind of handler. Raises `CannotStart` where a fork server is needed and does not start."""
    http = HttpHandler(allow_private_targets=settings.allow_private_targets)
    own.stack.push_async_callback(http.close)
    launcher = Launcher(environment=handler_environment(), modules=settings.task_modules)
    own.stack.push_async_callback(launcher.close)
    if settings.allow_shell or any(options_of(function).isolation for function in functions.values()):
        await _start(launcher)
    shell = ShellHandler(launcher, environment=command_environment()) if settings.allow_shell else None
    threads = TaskThreads(settings.concurrency)
    own.stack.callback(threads.close)
    return HandlerRegistry(
        python=PythonHandler(threads),
        isolated=IsolatedHandler(launcher),
        http=http,
        shell=shell,
        workflow=WorkflowHandler(runs, HintSender(own.pool)),
        upstream=Upstream(runs),
        functions=functions,
    )


def task_functions(settings: Settings) -> dict[str, Handler]:
    """Return the functions of the task modules. Raises `CannotStart` where a module is missing or in conflict."""
    modules = []
    for name in settings.task_modules:
        try:
            modules.append(importlib.import_module(name))
        except ModuleNotFoundError as error:
            raise CannotStart(
                f"ONTHEDOT_TASK_MODULES: {name} cannot be imported ({error}); modules are looked for in {Path.cwd()} "
                "and in the environment that onthedot is installed in"
            ) from None
    try:
        return handlers_in(modules)
    except DuplicateHandler as error:
        raise CannotStart(f"ONTHEDOT_TASK_MODULES: {error}") from None


async def _start(launcher: Launcher) -> None:
    try:
        await launcher.start()
    except ForkServerFailed as error:
        raise CannotStart(
            f"{error}; its output says why. It imports ONTHEDOT_TASK_MODULES without the variables of onthedot"
        ) from None
