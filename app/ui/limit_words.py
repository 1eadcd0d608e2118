"""Limits in words: how much runs at once, how much begins, and where."""

from collections.abc import Mapping

from app.domain.limits import RateLimit
from app.ui.words import duration


def at_once_words(most: int) -> str:
    """Return how many run at once: `one at a time`, `at most 3 at once`."""
    return "one at a time" if most == 1 else f"at most {most:,} at once"


def rate_words(rate: RateLimit) -> str:
    """Return how many may begin: `2.5 a second begin, 10 at once after a rest`, `one begins every 10 s`."""
    pace = (
        f"{rate.per_second:,.15g} a second begin{'s' if rate.per_second == 1 else ''}"
        if rate.per_second >= 1
        else f"one begins every {duration(1 / rate.per_second)}"
    )
    return f"{pace}, {rate.burst:,} at once after a rest" if rate.burst and rate.burst > 1 else pace


def label_words(labels: Mapping[str, str]) -> list[str]:
    """Return labels as settings and options have them: `gpu=a100`."""
    return [f"{name}={value}" for name, value in sorted(labels.items())]


def needs_words(cpu_cores: float, memory_mb: int) -> str:
    """Return what an execution takes of its host: `1.5 cores, 512 MiB`; nothing for nothing."""
    cores = f"{cpu_cores:g} {'core' if cpu_cores == 1 else 'cores'}" if cpu_cores else ""
    return ", ".join(filter(None, (cores, f"{memory_mb:,} MiB" if memory_mb else "")))
