"""Attempts that nothing runs, for tests of who is to stop."""

import logging

from app.db.stores.effects import EffectStore
from app.domain.claims import Claim
from app.tasks import Context
from app.worker.attempt import Attempt
from app.worker.capture import ExecutionLog
from app.worker.effects import AttemptEffects
from tests.worker.claims import NOW


def attempt_of(claim: Claim) -> Attempt:
    """Return an attempt of a claim, begun now."""
    effects = AttemptEffects(EffectStore(None), claim)
    context = Context(
        execution_id=claim.execution_id,
        job_id=claim.job_id,
        attempt_number=claim.attempt_number,
        scheduled_time=claim.scheduled_time,
        parameters={},
        fencing_token=1,
        timeout_seconds=60.0,
        logger=logging.getLogger("onthedot.task"),
        effects=effects,
    )
    return Attempt(
        claim=claim,
        lease=claim.lease,
        task=None,
        context=context,
        effects=effects,
        log=ExecutionLog(lambda: NOW),
        started_at=NOW,
        timeout_seconds=60.0,
    )
