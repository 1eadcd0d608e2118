"""What the documents say about names holds."""

import re
from pathlib import Path

import pytest

from app.api.problems import TITLES

ROOT = Path(__file__).parent.parent
LARGEST_PICTURE = 200_000
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_every_problem_code_is_documented_with_its_status() -> None:
    text = (ROOT / "docs" / "problems.md").read_text("utf-8")

    documented = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", text, re.MULTILINE))

    assert documented == {code: str(status.value) for code, (status, _) in TITLES.items()}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", document.read_text("utf-8"))

    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_documents_name_exist(document: Path) -> None:
    rooms = ("worker", "scheduler", "maintenance", "intake", "api", "domain", "db")
    named = re.findall(rf"`((?:{'|'.join(rooms)})/[a-z_/]+\.py)`", document.read_text("utf-8"))

    assert [name for name in named if not (ROOT / "app" / name).exists()] == []


def test_pictures_in_documents_are_there_and_small() -> None:
    text = "".join(document.read_text("utf-8") for document in DOCUMENTS)
    named = {ROOT / name for name in re.findall(r'src(?:set)?="([^"]+)"', text)}
    kept = set((ROOT / "docs" / "screenshots").iterdir())

    assert named == kept
    assert [file.name for file in kept if file.stat().st_size > LARGEST_PICTURE] == []
