"""Holds the README to the repository: what it draws, links and shows is there."""

import re

import pytest

from tests.architecture.tree import ROOT, exists, mapped_paths

README = (ROOT / "README.md").read_text(encoding="utf-8")
NOUNS = (
    "SubmissionRequest", "Submission", "Job", "EvaluationRequest",
    "Evaluation", "Score", "Standing", "Report",
)  # fmt: skip
MOST_LINES = 120
_LINK = re.compile(r"\]\((?!https?://|#)(?P<target>[^)#]+)")
_ANCHOR = re.compile(r"\]\((?P<page>(?!https?://)[^)#]*\.md)#(?P<anchor>[^)]+)\)")
_HEADING = re.compile(r"^#+ (?P<words>.+)$", re.MULTILINE)
_TARGET = re.compile(r"\bmake (?P<name>[a-z]+)")


def test_the_readme_stays_within_120_lines() -> None:
    assert len(README.splitlines()) <= MOST_LINES, "move details to the folder that they are about"


def test_the_map_names_paths() -> None:
    assert len(mapped_paths()) >= 8


@pytest.mark.parametrize("path", mapped_paths())
def test_every_path_of_the_map_exists(path: str) -> None:
    assert exists(path)


@pytest.mark.parametrize("target", sorted(set(_LINK.findall(README))))
def test_every_link_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


@pytest.mark.parametrize(("page", "anchor"), sorted(set(_ANCHOR.findall(README))))
def test_every_anchor_is_a_heading(page: str, anchor: str) -> None:
    headings = _HEADING.findall((ROOT / page).read_text(encoding="utf-8"))
    words = (re.sub(r"[^\w -]", "", heading.lower()) for heading in headings)
    assert anchor in {each.replace(" ", "-") for each in words}


@pytest.mark.parametrize("name", sorted(set(_TARGET.findall(README))))
def test_every_make_target_named_exists(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{name}:", makefile, re.MULTILINE)


def test_benchmarks_run_as_modules() -> None:
    """As a script, one would import the benchmark `queue` in place of Python's own module."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    bench = makefile.split("\nbench:")[1].split("\n\n")[0]
    assert "python -m" in bench
    assert 'python "$$script"' not in bench


@pytest.mark.parametrize("noun", NOUNS)
def test_every_noun_is_in_the_glossary(noun: str) -> None:
    assert f"**{noun}**" in README
