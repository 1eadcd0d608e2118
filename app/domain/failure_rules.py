"""Rules of a task: what its own failures mean, where the general classification does not know."""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from app.domain.errors import FieldError, InvalidInput
from app.domain.failures import Category, Failure, attribute_of, severity_of, types_of

MAX_RULES = 50
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
GIVEN = frozenset({Category.POISON})
"""What only onthedot itself can tell."""


class FailureMatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Which failures a rule is for: those that everything given here fits."""

    type: _Text | None = None
    """The name of the exception's type, or of a type it derives from."""
    http_status: Annotated[int, msgspec.Meta(ge=100, le=599)] | None = None
    exit_code: Annotated[int, msgspec.Meta(ge=-255, le=255)] | None = None
    message: _Text | None = None
    """A part of the message, letter by letter. No pattern: one that backtracks would hold up a whole worker."""

    def fits(self, failure: Failure, error: BaseException | None) -> bool:
        """Tell whether a failure, and the exception that it was if it was one, is one of those."""
        return (
            (self.type is None or self.type in _types(failure, error))
            and (self.http_status is None or self.http_status == attribute_of(error, "http_status"))
            and (self.exit_code is None or self.exit_code == attribute_of(error, "exit_code"))
            and (self.message is None or self.message in failure.message)
        )

    @property
    def is_empty(self) -> bool:
        """Tell whether it would fit every failure."""
        return all(getattr(self, name) is None for name in self.__struct_fields__)


class FailureRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """What failures are that match: their category, and whether they are tried again."""

    match: FailureMatch
    category: Category | None = None
    """None: as it is classified without this rule."""
    retry: bool | None = None
    """None: as its category has it. True also where the category would not be retried; attempts stay limited."""


FailureRules = Annotated[list[FailureRule], msgspec.Meta(max_length=MAX_RULES)]


def check_rules(rules: Iterable[FailureRule]) -> None:
    """Refuse rules that mean nothing. Raises `InvalidInput` with a pointer to each."""
    errors = [
        FieldError(f"/failure_rules/{index}{pointer}", "invalid_failure_rule", detail)
        for index, rule in enumerate(rules)
        for pointer, detail in _flaws(rule)
    ]
    if errors:
        raise InvalidInput(errors[0].detail, code="invalid_failure_rule", errors=tuple(errors))


def _flaws(rule: FailureRule) -> Iterable[tuple[str, str]]:
    if rule.match.is_empty:
        yield "/match", "match names nothing; name at least one of type, http_status, exit_code, message"
    if rule.category is None and rule.retry is None:
        yield "", "the rule says nothing; give it a category, or say in retry whether to try again"
    if rule.category in GIVEN:
        yield "/category", f"{rule.category} is what onthedot finds out itself; use another category"


def ruled(
    failure: Failure, error: BaseException | None, rules: Iterable[FailureRule]
) -> tuple[Failure, bool | None]:
    """Return a failure as the first rule that fits has it, and whether to try again, where the rule says so."""
    for rule in rules:
        if rule.match.fits(failure, error):
            if rule.category is not None:
                severity = severity_of(rule.category)
                failure = msgspec.structs.replace(failure, category=rule.category, severity=severity)
            return failure, rule.retry
    return failure, None


def _types(failure: Failure, error: BaseException | None) -> set[str]:
    return {failure.type, *types_of(error)} if error else {failure.type}
