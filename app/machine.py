"""What this machine, or the container around this process, has to give: cores and memory."""

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_UNLIMITED_BYTES = 1 << 60
"""cgroup v1 says "no limit" by a number close to 2^63."""


def cpu_cores(cgroup: Path = _CGROUP) -> float:
    """Return the cores that this process may use: those of its affinity, or its cgroup's quota where that is less.

    cgroup v2 `cpu.max`, v1 `cpu.cfs_quota_us` (Linux documentation, "CPU Controllers").
    """
    affinity = getattr(os, "sched_getaffinity", None)
    cores = float(len(affinity(0)) if affinity else os.cpu_count() or 1)
    words = _words(cgroup / "cpu.max") or [
        *_words(cgroup / "cpu" / "cpu.cfs_quota_us"),
        *_words(cgroup / "cpu" / "cpu.cfs_period_us"),
    ]
    if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]):
        return min(cores, int(words[0]) / int(words[1]))
    return cores


def memory_mb(cgroup: Path = _CGROUP) -> int:
    """Return the memory that this process may use, in MiB: the machine's, or its cgroup's limit where that is less.

    cgroup v2 `memory.max`, v1 `memory.limit_in_bytes`.
    """
    limits = [_machine_bytes()]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        limits += [int(word) for word in _words(cgroup / name) if word.isdigit()]
    return min(limit for limit in limits if limit) >> 20


def _machine_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # not told on this system: nothing is limited
        return _UNLIMITED_BYTES


def _words(path: Path) -> list[str]:
    try:
        return path.read_text("ascii").split()
    except OSError:
        return []
