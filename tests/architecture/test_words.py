"""Holds the glossary: words that it replaced may only become fewer, and its paths exist."""

import json
import re

import pytest

from tests.architecture.tree import ROOT
from tests.architecture.words import REPLACED, counts, places

RECORDED: dict[str, int] = json.loads(
    (ROOT / "tests/architecture/words.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("word", sorted(REPLACED))
def test_a_replaced_word_comes_up_no_more_often(word: str) -> None:
    """Use the word beside it in REPLACED; lower the number in words.json when it falls."""
    assert counts()[word] <= RECORDED.get(word, 0), places()[word]


def test_every_path_of_the_glossary_exists() -> None:
    glossary = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    paths = re.findall(r"\]\(\.\./([\w/.]+)\)", glossary)
    assert len(paths) > 70
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_a_term_stands_once_in_the_glossary() -> None:
    glossary = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!term |---)(.+?) \|", glossary, re.MULTILINE)
    terms = [term for row in rows for term in row.split(", ")]
    assert len(terms) > 75
    assert len(terms) == len(set(terms))
