"""How the embedded PostgreSQL is tuned."""

import os

MEGABYTE = 1024 * 1024
MAX_SHARED_BUFFERS_MB = 512
SHARED_BUFFERS_FRACTION = 8
"""Of the machine's memory, where that is less."""


def default_settings(*, max_connections: int) -> dict[str, str]:
    """Return PostgreSQL settings by name, for a server that shares its machine with its clients."""
    return {
        "max_connections": str(max_connections),
        "shared_buffers": f"{_shared_buffers_mb()}MB",
        # Rare checkpoints: after each, the first change of a page writes the whole page to the log.
        "max_wal_size": "4GB",
        "checkpoint_timeout": "15min",
        # It looks five times a second by itself, also where nobody works; so it does as much in one look.
        "bgwriter_delay": "1s",
        "bgwriter_lru_maxpages": "500",
        # Each round is due to all partitions at once: a minute's worth of it held up what was due by a second.
        "autovacuum_naptime": "10s",
        "jit": "off",  # every statement of ours is shorter than its compilation
        "timezone": "UTC",
        "log_timezone": "UTC",
        "cluster_name": "onthedot",
        "logging_collector": "on",
        "log_directory": "log",
        "log_filename": "postgresql-%Y%m%dT%H%M%S.log",
        "log_rotation_age": "1d",
        "log_rotation_size": "10MB",
        "log_line_prefix": "%m [%p] %a ",
    }


def _shared_buffers_mb() -> int:
    memory_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MEGABYTE
    return max(16, min(MAX_SHARED_BUFFERS_MB, memory_mb // SHARED_BUFFERS_FRACTION))
