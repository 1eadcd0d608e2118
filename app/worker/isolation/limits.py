"""What the process of an attempt is held to."""

import ctypes
import os
import resource
import signal
import sys

MIB = 2**20
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def limit_memory(memory_mb: int) -> None:
    """Let this process have that much memory of its own, and each process that it starts as much again.

    `RLIMIT_DATA` counts what can be written and belongs to nobody else: heap, anonymous memory, stacks of threads. It
    does not count what is only reserved or only read, as `RLIMIT_AS` would: an interpreter with a few threads
    reserves hundreds of MiB that it never uses. Shared memory escapes it. Linux enforces it, macOS does not.
    """
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = memory_mb * MIB if most == resource.RLIM_INFINITY else min(most, memory_mb * MIB)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def end_with(parent_pid: int) -> None:
    """Have this process killed when its parent ends, however that ends (on Linux); at once if it has already."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(os.EX_UNAVAILABLE)
