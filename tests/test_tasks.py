"""Registering functions."""

from types import ModuleType
from typing import Any

import pytest

from app import Context, task
from app.tasks import DuplicateHandler, handlers_in, options_of


def test_a_function_is_registered_under_its_name_or_another_with_its_options() -> None:
    @task
    def plain(_ctx: Context) -> None: ...

    @task("other.name")
    def named(_ctx: Context) -> None: ...

    @task(isolation="process", memory_mb=256)
    def limited(_ctx: Context) -> None: ...

    module = ModuleType("m")
    vars(module).update(plain=plain, named=named, limited=limited, alias=plain, not_one=len)

    assert handlers_in([module]) == {"plain": plain, "other.name": named, "limited": limited}
    assert options_of(limited) == ("limited", "process", 256)
    assert options_of(named) == ("other.name", None, None)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"isolation": "thread"}, 'use "process"'),
        ({"memory_mb": 256}, 'add isolation="process"'),
        ({"isolation": "process", "memory_mb": 1}, "whole number from 64"),
        ({"isolation": "process", "memory_mb": 256.5}, "whole number from 64"),
        ({"isolation": "process", "memory_mb": True}, "whole number from 64"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        task("x", **options)


def test_two_functions_under_one_name_are_refused() -> None:
    module = ModuleType("m")
    vars(module).update(one=task("same")(lambda _ctx: 1), two=task("same")(lambda _ctx: 2))

    with pytest.raises(DuplicateHandler, match="python:same"):
        handlers_in([module])
