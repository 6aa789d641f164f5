"""Holds that one loop checks and publishes, and that the GPU types of a board have one rule."""

import re

import pytest

from tests.architecture.tree import ROOT, modules

PUBLISHING = "bot/services/publishing"
PLACES = {
    r"\bpublications\.claim\(": {f"{PUBLISHING}/engine.py", f"{PUBLISHING}/queued_runner.py"},
    r"\bcheck_and_publish\(": {
        f"{PUBLISHING}/engine.py",
        f"{PUBLISHING}/pipeline.py",
        "bot/cli/client.py",
    },
    r"\bcheck_on\(": {
        f"{PUBLISHING}/check.py",
        f"{PUBLISHING}/pipeline.py",
    },
    r"\bcheck_draft\(": {
        f"{PUBLISHING}/pipeline.py",
        "bot/cli/commands/task.py",
    },
    r"\bhas_device\(": {
        f"{PUBLISHING}/publish.py",
        "bot/domain/requirements.py",
    },
}
"""What stands in these modules alone."""


@pytest.mark.parametrize(("pattern", "places"), PLACES.items())
def test_it_stands_where_it_belongs(pattern: str, places: set[str]) -> None:
    found = {name for name in modules("bot") if re.search(pattern, (ROOT / name).read_text())}
    assert found == places
