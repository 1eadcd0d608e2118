"""Resumes jobs and queues whose pause has an end."""

import logging

from app.db.actors import RESUMER
from app.db.notifier import HintSender
from app.db.stores.job_control import JobControl
from app.db.stores.pauses import LapsedPause, PauseStore
from app.domain.errors import NotFound, PreconditionFailed
from app.domain.job_changes import resume

log = logging.getLogger(__name__)

BATCH = 100


class Resumer:
    """One `tick`: resume what has been paused until now. Any number of resumers may run."""

    def __init__(self, *, pauses: PauseStore, jobs: JobControl, hints: HintSender) -> None:
        self._pauses = pauses
        self._jobs = jobs
        self._hints = hints

    async def tick(self) -> bool:
        """Resume queues and jobs; return whether there may be more."""
        for queue in await self._pauses.resume_queues():
            log.info("the pause of a queue is over", extra={"event": "queue_resumed", "queue": queue})
        lapsed = await self._pauses.lapsed(limit=BATCH)
        resumed = [await self._resume(pause) for pause in lapsed]
        return len(lapsed) == BATCH and any(resumed)

    async def _resume(self, pause: LapsedPause) -> bool:
        """Resume a job, unless somebody has changed it since; one that cannot be resumed stops no other."""
        try:
            changed = await self._jobs.change(pause.job_id, resume(), if_version=pause.version, actor=RESUMER)
        except (NotFound, PreconditionFailed):
            return False
        except Exception:
            extra = {"event": "job_not_resumed", "job_id": str(pause.job_id)}
            log.exception("a job could not be resumed", extra=extra)
            return False
        self._hints.announce(changed.ready)
        return True
