"""The models are true of all that may happen within their bounds, and know what is wrong.

Each model's head says what it stands for, which code it mirrors, and which broken twins of it must be refuted.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest

from tests.life.processes import ROOT

MODELS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.pml"))}
DEPTH = 100_000
FAIR = {"ends"}
"""Claims that something happens in the end: whoever can act always does so at last."""

Refuted = Callable[[str, str, str], bool]
MISSING = [name for name in ("spin", "gcc") if shutil.which(name) is None]
needs_spin = pytest.mark.skipif(
    bool(MISSING) and os.environ.get("CI") != "true",
    reason=f"{' and '.join(MISSING)} not installed (Debian: apt install spin gcc)",
)


def claims(model: str) -> list[str]:
    return re.findall(r"^ltl (\w+)", MODELS[model], re.MULTILINE)


def told(model: str, word: str) -> list[tuple[str, str]]:
    """Return what the head says after a word: a switch, as `FENCE=0`, and a claim."""
    return re.findall(rf"^   {word} (\S+): (\w+)", MODELS[model], re.MULTILINE)


PROMISED = [(model, claim) for model in MODELS for claim in claims(model) if not claim.startswith("reach_")]
REACHED = [(model, claim) for model in MODELS for claim in claims(model) if claim.startswith("reach_")]
TWINS = [(model, *twin) for model in MODELS for twin in told(model, "twin")]


@pytest.fixture(scope="module")
def refuted(tmp_path_factory: pytest.TempPathFactory) -> Refuted:
    """Return what tells whether a claim of a model has a counterexample, with one switch of it set."""
    verifiers: dict[tuple[str, str], Path] = {}

    def find(model: str, claim: str, switch: str) -> bool:
        if (model, switch) not in verifiers:
            verifiers[model, switch] = tmp_path_factory.mktemp(model)
            build(model, switch, folder=verifiers[model, switch])
        options = [f"-m{DEPTH}", "-a", *(["-f"] if claim in FAIR else []), "-N", claim]
        said = run(["./pan", *options], folder=verifiers[model, switch])
        assert "search depth too small" not in said
        found = re.search(r"errors: (\d+)", said)
        assert found, said
        return found[1] != "0"

    return find


def build(model: str, switch: str, *, folder: Path) -> None:
    (folder / "model.pml").write_text(MODELS[model], encoding="utf-8")
    run(["spin", *([f"-D{switch}"] if switch else []), "-a", "model.pml"], folder=folder)
    run(["gcc", "-w", "-DNFAIR=3", "-o", "pan", "pan.c"], folder=folder)


def run(command: list[str], *, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@needs_spin
@pytest.mark.parametrize(("model", "claim"), PROMISED)
def test_a_promise_holds_whatever_happens(refuted: Refuted, model: str, claim: str) -> None:
    given = {named: switch for switch, named in told(model, "given")}

    assert not refuted(model, claim, given.get(claim, ""))


@needs_spin
@pytest.mark.parametrize(("model", "claim"), REACHED)
def test_what_makes_it_hard_does_happen(refuted: Refuted, model: str, claim: str) -> None:
    assert refuted(model, claim, "")


@needs_spin
@pytest.mark.parametrize(("model", "switch", "claim"), TWINS)
def test_a_broken_twin_is_found_out(refuted: Refuted, model: str, switch: str, claim: str) -> None:
    assert refuted(model, claim, switch)


@pytest.mark.parametrize("model", MODELS)
def test_the_code_still_says_what_a_model_mirrors(model: str) -> None:
    mirrored = re.findall(r"^   mirrors (\S+): (.+)$", MODELS[model], re.MULTILINE)

    assert mirrored
    assert [
        (path, text) for path, text in mirrored if text not in (ROOT / path).read_text(encoding="utf-8")
    ] == []


@pytest.mark.parametrize("model", MODELS)
def test_every_switch_and_every_promise_is_tried(model: str) -> None:
    switches = re.findall(r"^#ifndef (\w+)", MODELS[model], re.MULTILINE)
    tried = list(chain(told(model, "twin"), told(model, "given")))

    assert {switch.partition("=")[0] for switch, _ in tried} == set(switches)
    assert {claim for _, claim in tried} == {claim for named, claim in PROMISED if named == model}
