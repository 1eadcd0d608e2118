"""Each mutant changes a text that stands once in its file; engines are rewritten, and a mutant must not go stale."""

import pytest

from tests.chaos.mutants import MUTANTS, Mutant
from tests.life.processes import ROOT


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_one_place(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text(encoding="utf-8")

    assert text.count(mutant.right) == 1
    assert (ROOT / mutant.test.split("::")[0]).exists()
