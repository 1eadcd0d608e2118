"""Names transactions that stay open where others have to pass."""

import logging

from app.db.open_transactions import OpenTransaction, OpenTransactions

log = logging.getLogger(__name__)

LOCKED = frozenset({"executions", "jobs"})
"""Tables where locks that stay hide work: who claims passes over what is locked."""
ALMOST_FULL = 0.1
"""Of the queue of notifications. A listener whose transaction stays open keeps all of it from being emptied."""
NAMED = 3


class TransactionWatch:
    """One `tick`: warn, once, of each transaction that has kept locks on jobs or executions since the last tick.

    And of a queue of notifications that fills, with the transactions that may be why.
    """

    def __init__(self, transactions: OpenTransactions) -> None:
        self._transactions = transactions
        self._seen: set[str] = set()
        """Ids of those that kept locks at the last look."""
        self._named: dict[str, OpenTransaction] = {}
        self._is_filling = False

    async def tick(self) -> bool:
        """Look once."""
        found = await self._transactions.list()
        self._look_at_locks({each.transaction: each for each in found if LOCKED.intersection(each.tables)})
        self._look_at_queue(await self._transactions.notification_queue_usage(), found)
        return False

    def _look_at_locks(self, found: dict[str, OpenTransaction]) -> None:
        for key in self._named.keys() - found.keys():
            ended = self._named.pop(key)
            log.info("it has ended: %s", ended, extra={"event": "transaction_ended", "pid": ended.pid})
        for key in found.keys() & self._seen - self._named.keys():
            self._named[key] = found[key]
            _warn_of(found[key])
        self._seen = set(found)

    def _look_at_queue(self, usage: float, found: list[OpenTransaction]) -> None:
        was_filling, self._is_filling = self._is_filling, usage >= ALMOST_FULL
        if self._is_filling and not was_filling:
            log.warning(
                "the queue of notifications fills: a session that listens does not end its transaction. The oldest: "
                "%s. End it, or the session by SELECT pg_terminate_backend(PID)",
                "; ".join(map(str, found[:NAMED])) or "none",
                extra={
                    "event": "notification_queue",
                    "usage": round(usage, 3),
                    "pids": [t.pid for t in found],
                },
            )


def _warn_of(transaction: OpenTransaction) -> None:
    log.warning(
        "a transaction stays open and keeps locks on %s: workers pass over what it has locked. It is %s. "
        "End it, or the session by SELECT pg_terminate_backend(PID)",
        " and ".join(sorted(LOCKED.intersection(transaction.tables))),
        transaction,
        extra={"event": "transaction_stays_open", "pid": transaction.pid, "user": transaction.user},
    )
