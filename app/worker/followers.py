"""What follows when executions have ended here: others wait for them."""

from typing import Protocol

from app.domain.claims import Claim


class Follower(Protocol):
    """Is told of each execution whose end is durable; `tick` does what follows, maintenance what is left undone."""

    name: str

    @property
    def waiting(self) -> int:
        """Return how much it has yet to do."""

    @property
    def is_due(self) -> bool:
        """Whether a `tick` is worth it."""

    def note(self, claim: Claim) -> None:
        """Take an execution whose end is durable."""

    def forget(self) -> None:
        """Do nothing of what is left."""

    async def tick(self) -> bool:
        """Do it; return whether there was anything to do. What fails is done again."""
