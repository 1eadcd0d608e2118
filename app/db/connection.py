"""A connection that ends with a statement that is given up."""

from typing import TYPE_CHECKING

import asyncpg

if TYPE_CHECKING:
    _Base = asyncpg.Connection[asyncpg.Record]
else:
    _Base = asyncpg.Connection  # generic in the stubs only


class StrictConnection(_Base):
    """Cuts itself off when a statement is given up, because its time is over or whoever waits for it is cancelled.

    asyncpg asks the server, over another connection, to cancel the statement, and whoever uses the connection next
    waits for that to come about. A server that is silent never says so. What is cut off is nobody's any more: its
    pool makes another one, and the server ends the statement itself (`client_connection_check_interval`).
    """

    __slots__ = ()

    def _cancel_current_command(self, *_waiters: object) -> None:
        """Cut off, and leave the pool; asyncpg calls this where a statement is given up, before anybody is told.

        As `terminate` does it, but for the statement, which asyncpg itself is about to end; and all of it now: what
        left the pool a moment later would meet its user, who gives it back.
        """
        self._transport.abort()  # type: ignore[attr-defined]
        self._aborted = True
        self._cleanup()  # type: ignore[attr-defined]
