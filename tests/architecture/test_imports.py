"""Holds the direction of imports: every contract of import-linter is kept."""

import subprocess
import sys
from pathlib import Path

from tests.architecture.tree import ROOT


def test_every_import_contract_is_kept() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    answer = subprocess.run(
        [linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout[-4000:] + answer.stderr[-2000:]
