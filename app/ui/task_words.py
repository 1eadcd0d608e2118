"""Tasks in words: what runs, how often it is tried, what its parameters may be."""

from typing import Any, NamedTuple

import msgspec

from app.db.reads.tasks import Retries
from app.domain.failure_rules import FailureRule
from app.domain.retry import RetryPolicy
from app.domain.schema_outline import SchemaField
from app.ui.words import duration

KINDS = {"http": "HTTP", "python": "Python", "shell": "Command", "builtin": "Built in"}
PRIORITIES = ("critical", "high", "normal", "low")
_SHOWN_DELAYS = 3
_VALUE_CHARACTERS = 80
_MOST_CHOICES = 20


class Handler(NamedTuple):
    """An `execution_handler` taken apart."""

    kind: str
    """`http`, `python`, `shell`, `builtin`; what stands before the colon."""
    target: str
    """Method and URL, or a name."""

    @property
    def word(self) -> str:
        """Return the kind for people."""
        return KINDS.get(self.kind, self.kind)


def handler(text: str) -> Handler:
    """Take an `execution_handler` apart."""
    kind, _, target = text.partition(":")
    return Handler(kind, target.strip())


def retry_words(retries: Retries) -> str:
    """Return how often something is tried again and when: `3 retries, after 1 s, 2 s, 4 s`."""
    count, backoff = retries.count, retries.backoff
    if count == 0:
        return "not retried"
    noun = "1 retry" if count == 1 else f"{count} retries"
    delays = [duration(backoff.delay_after(attempt, jitter=0)) for attempt in range(1, _SHOWN_DELAYS + 1)]
    if backoff.policy is RetryPolicy.FIXED or count == 1:
        return f"{noun}, {'each ' if count > 1 else ''}after {delays[0]}"
    listed = ", ".join(delays[:count])
    if count > _SHOWN_DELAYS:
        listed += f" … {duration(backoff.delay_after(count, jitter=0))}"
    return f"{noun}, after {listed}"


def priority_word(priority: int) -> str:
    """Return a priority in words: `2 normal`."""
    return f"{priority} {PRIORITIES[priority]}"


def value_words(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return a JSON value, bounded."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _VALUE_CHARACTERS else text[: _VALUE_CHARACTERS - 1] + "…"


def allowed_words(field: SchemaField) -> list[str]:
    """Return what a field's values are held to: its choices, or its limits."""
    if field.choices is None:
        return [limit[:_VALUE_CHARACTERS] for limit in field.limits]
    shown = [value_words(choice) for choice in field.choices[:_MOST_CHOICES]]
    more = len(field.choices) - len(shown)
    return [*shown, f"and {more} more"] if more > 0 else shown


def rule_words(rule: FailureRule) -> tuple[str, str]:
    """Return a failure rule in words: which failures, and what they mean."""
    match = rule.match
    which = [
        match.type or "",
        f"HTTP {match.http_status}" if match.http_status is not None else "",
        f"exit code {match.exit_code}" if match.exit_code is not None else "",
        f"“{match.message}”" if match.message is not None else "",
    ]
    meaning = [
        rule.category.value.replace("_", " ") if rule.category else "",
        {None: "", True: "tried again", False: "not tried again"}[rule.retry],
    ]
    return ", ".join(filter(None, which)), ", ".join(filter(None, meaning))
