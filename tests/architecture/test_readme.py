"""Holds the README to the repository: what it draws, links and shows is there."""

import re

import pytest

from tests.architecture.tree import ROOT, exists, mapped_paths

README = (ROOT / "README.md").read_text(encoding="utf-8")
NOUNS = (
    "SubmissionRequest", "Submission", "Job", "EvaluationRequest",
    "Evaluation", "Score", "Standing", "Report",
)  # fmt: skip
_LINK = re.compile(r"\]\((?!https?://|#)(?P<target>[^)#]+)")
_TARGET = re.compile(r"\bmake (?P<name>[a-z]+)")


def test_the_map_names_paths() -> None:
    assert len(mapped_paths()) >= 8


@pytest.mark.parametrize("path", mapped_paths())
def test_every_path_of_the_map_exists(path: str) -> None:
    assert exists(path)


@pytest.mark.parametrize("target", sorted(set(_LINK.findall(README))))
def test_every_link_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


@pytest.mark.parametrize("name", sorted(set(_TARGET.findall(README))))
def test_every_make_target_named_exists(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{name}:", makefile, re.MULTILINE)


@pytest.mark.parametrize("noun", NOUNS)
def test_every_noun_is_in_the_glossary(noun: str) -> None:
    assert f"**{noun}**" in README
