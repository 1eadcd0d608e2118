"""What a machine, or the container around a process, has to give."""

from pathlib import Path

import pytest

from app import machine


def write(folder: Path, name: str, text: str) -> None:
    """Write a file of a cgroup."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "ascii")


def test_without_a_cgroup_it_is_the_whole_machine(tmp_path: Path) -> None:
    assert machine.cpu_cores(tmp_path) >= 1
    assert machine.memory_mb(tmp_path) > 0


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "50000 100000\n"}, 0.5),
        ({"cpu/cpu.cfs_quota_us": "25000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 0.25),
    ],
)
def test_a_quota_of_its_cgroup_is_all_it_has(tmp_path: Path, files: dict[str, str], cores: float) -> None:
    for name, text in files.items():
        write(tmp_path, name, text)

    assert machine.cpu_cores(tmp_path) == cores


@pytest.mark.parametrize("text", ["max 100000\n", "-1\n", "\n", "900000000 100000\n"])
def test_a_quota_that_limits_nothing_takes_nothing_away(tmp_path: Path, text: str) -> None:
    whole = machine.cpu_cores(tmp_path)
    write(tmp_path, "cpu.max", text)
    write(tmp_path, "cpu/cpu.cfs_quota_us", "-1\n")

    assert machine.cpu_cores(tmp_path) == whole


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_memory_is_what_its_cgroup_allows_where_that_is_less(tmp_path: Path, name: str) -> None:
    whole = machine.memory_mb(tmp_path)
    write(tmp_path, name, f"{64 << 20}\n")
    assert machine.memory_mb(tmp_path) == 64
    for unlimited in ("max\n", f"{(1 << 63) - 4096}\n"):
        write(tmp_path, name, unlimited)
        assert machine.memory_mb(tmp_path) == whole
