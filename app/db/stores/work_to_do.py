"""What there is to do for the parts of the maintenance process."""

from app.db.pools import Pool
from app.db.queries import load
from app.db.stores.dependencies import AHEAD

_QUERY = load("work_to_do")


class WorkToDo:
    """Looks at it in one statement. The pool's sessions read by indexes alone: there may be millions of rows."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def look(self) -> set[str]:
        """Return the names of the loops that have something to do, as `work_to_do.sql` has them."""
        row = await self._pool.fetchrow(_QUERY, AHEAD.total_seconds())
        return {name for name, is_due in row.items() if is_due} if row else set()
