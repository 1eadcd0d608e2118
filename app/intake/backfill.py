"""Taking in backfills: what a schedule has missed, or is to do again."""

from datetime import datetime
from uuid import UUID

from app.db.acting import once_committed
from app.db.notifier import HintSender
from app.db.stores.backfill import Backfilled, BackfillStore
from app.db.transactions import Transaction
from app.domain.access import Principal, Role


class BackfillIntake:
    """Backfills jobs, workflows among them, for an operator."""

    def __init__(self, *, backfills: BackfillStore, hints: HintSender) -> None:
        self._backfills = backfills
        self._hints = hints

    async def backfill(
        self,
        job_id: UUID,
        *,
        since: datetime,
        until: datetime,
        dry_run: bool,
        by: Principal,
        within: Transaction | None = None,
    ) -> Backfilled:
        """Create executions for past instants; if `dry_run`, only name these. Raises what `BackfillStore` does."""
        by.require(Role.OPERATOR)
        done = await self._backfills.backfill(
            job_id, since=since, until=until, dry_run=dry_run, actor=by.actor, within=within
        )
        once_committed(within, lambda: self._hints.announce(done.ready))
        return done
