"""Holds the measured structure: structure.json's numbers may fall, and rise only with a reason."""

import json

import pytest

from tests.architecture.structure import (
    drawing,
    measured,
    repeated_class_names,
    small_single_importers,
    unused_modules,
)
from tests.architecture.tree import ROOT

RECORDED: dict[str, float] = json.loads(
    (ROOT / "tests/architecture/structure.json").read_text(encoding="utf-8")
)
OFFENDERS = {
    "small_single_importer_modules": small_single_importers,
    "repeated_class_names": repeated_class_names,
    "unused_lines": unused_modules,
}


@pytest.mark.parametrize("measure", sorted(RECORDED))
def test_a_measure_of_the_structure_does_not_grow(measure: str) -> None:
    """Lower the number in structure.json when it falls; raise it in a commit that says why."""
    found = OFFENDERS[measure]() if measure in OFFENDERS else ""
    assert getattr(measured(), measure) <= RECORDED[measure], found


MOST_WEB_LINES = 8_841
"""The limit of the pages' size: 1,500 lines more than when their present extent was planned."""


def test_the_pages_stay_small() -> None:
    """The APIs of other systems do not count. What knows no HTTP belongs in another package."""
    folder = ROOT / "bot/web"
    files = [each for each in folder.rglob("*.py") if not each.is_relative_to(folder / "compat")]
    assert sum(len(each.read_text("utf-8").splitlines()) for each in files) <= MOST_WEB_LINES


def test_the_drawing_names_every_package() -> None:
    drawn = drawing()
    assert all(f">{package} (" in drawn for package in ("bot.domain", "runners.harness"))
