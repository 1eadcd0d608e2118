"""Reading the values of settings. What cannot be used is a `ValueError` that says what to write instead."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from app.domain.labels import is_label

ROLES = ("api", "materializer", "worker")
_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off", ""}


def parse_bool(text: str) -> bool:
    """Read true or false."""
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError("use true or false")


def parse_list(text: str) -> tuple[str, ...]:
    """Read words that commas divide."""
    return tuple(part for part in (piece.strip() for piece in text.split(",")) if part)


def parse_labels(text: str) -> dict[str, str]:
    """Read labels: NAME=VALUE, divided by commas."""
    labels = {}
    for part in parse_list(text):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not is_label(name, value):
            raise ValueError("use NAME=VALUE, divided by commas, such as gpu=a100, region=eu")
        labels[name] = value
    return labels


def parse_roles(text: str) -> tuple[str, ...]:
    """Read roles."""
    roles = parse_list(text)
    unknown = sorted(set(roles) - set(ROLES))
    if unknown or not roles:
        raise ValueError(f"use one or more of {', '.join(ROLES)}")
    return roles


def parse_processes(text: str) -> tuple[int, int]:
    """Read `4` as (4, 4) and `1..8` as (1, 8): the fewest and the most worker processes."""
    low, _, high = text.partition("..")
    with _remedy("use a number from 1 to 256, or a range such as 1..8"):
        span = (int(low), int(high or low))
        if not 1 <= span[0] <= span[1] <= 256:
            raise ValueError
        return span


@contextmanager
def _remedy(text: str) -> Iterator[None]:
    """Say what to write instead, whatever was wrong with what was written."""
    try:
        yield
    except (ValueError, RuntimeError):
        raise ValueError(text) from None


def within(low: float, high: int) -> Callable[[str], float]:
    """Return what reads a number of a range."""

    def parse(text: str) -> float:
        with _remedy(f"use a number from {low} to {high}"):
            number = float(text)
            if not low <= number <= high:
                raise ValueError
            return number

    return parse


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return what reads a whole number of a range."""

    def parse(text: str) -> int:
        with _remedy(f"use a whole number from {low} to {high}"):
            number = int(text)
            if not low <= number <= high:
                raise ValueError
            return number

    return parse


def parse_path(text: str) -> Path:
    """Read a folder's path; it becomes absolute."""
    with _remedy("use a folder's path"):
        return Path(text).expanduser().absolute()


def parse_url(text: str) -> str:
    """Read an address such as http://127.0.0.1:8080, without a slash at its end."""
    with _remedy("use an address such as http://127.0.0.1:8080"):
        parts = urlsplit(text)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            raise ValueError
        return text.rstrip("/")


def parse_dsn(text: str) -> str:
    """Read a DSN such as postgresql://user:password@host:5432/database; several hosts are divided by commas."""
    with _remedy("use a DSN such as postgresql://user:password@host:5432/database"):
        parts = urlsplit(text)
        places = parts.netloc.rpartition("@")[2].split(",")
        well_formed = all(re.fullmatch(r"(\[[^]]*\]|[^:]*)(:\d{1,5})?", place) for place in places)
        if parts.scheme not in {"postgresql", "postgres"} or not well_formed:
            raise ValueError
        return text


def parse_label(text: str) -> str:
    """Read a short word."""
    if len(text) > 24 or not text.isprintable():
        raise ValueError("use a word of at most 24 characters, such as staging")
    return text


def parse_admin_key(text: str) -> str:
    """Read an admin key: any form of 32 characters or more."""
    if len(text) < 32 or not text.isascii() or any(character.isspace() for character in text):
        raise ValueError("use 32 or more ASCII characters without spaces")
    return text
