"""A process that launches a command and a function, and waits: for a test that kills it."""

import asyncio
import sys
from datetime import UTC, datetime
from uuid import UUID

import msgspec

from app.worker.isolation.launcher import Launcher
from app.worker.isolation.messages import Command, Function

NOBODY = UUID(int=0)
COMMAND = ("/bin/sh", "-c", 'sleep 600 & echo $$ $PPID $! >> "$0"; wait')


async def main(path: str) -> None:
    """Launch both; they write their pids to a file."""
    launcher = Launcher(environment={"PATH": "/usr/bin:/bin"}, modules=["tests.worker.isolated_tasks"])
    ignore: list[bytes] = []
    sinks = {"stdout": ignore.append, "stderr": ignore.append}
    async with launcher.launched(**sinks) as command, launcher.launched(**sinks) as function:
        command.send(Command(argv=(*COMMAND, path), environment={}, stdin=b"", memory_mb=0))
        function.send(
            Function(
                name="wait_forever",
                execution_id=NOBODY,
                job_id=NOBODY,
                attempt_number=1,
                scheduled_time=datetime.now(UTC),
                fencing_token=1,
                timeout_seconds=60,
                parameters=msgspec.json.encode({"path": path}).decode(),
                memory_mb=256,
            )
        )
        await asyncio.gather(command.ended(), function.ended())


asyncio.run(main(sys.argv[1]))
