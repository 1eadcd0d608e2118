"""onthedot: a distributed job scheduler on one PostgreSQL."""

from app.tasks import Context, task

__version__ = "0.1.0"
__all__ = ["Context", "__version__", "task"]
