"""Holds the slices to their promise: each can be deleted, and all else works without its routes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, tracked_files

SLICES = ROOT / "bot" / "web" / "compat"
ROUTES = {"evaluation_server": {"/eval/health", "/evaluate"}, "kernelbot": {"/popcorn/health"}}
OTHERS = {"/", "/healthz", "/api/v1/leaderboards"}
PROGRAM = """
import sys
from types import SimpleNamespace
import bot
from bot.web.app import build

print(bot.__file__)
routes = build(SimpleNamespace(requests_per_minute=0)).routes
for path in sys.argv[1:]:
    for method in ("GET", "POST"):
        asked = {"type": "http", "path": path, "method": method, "headers": []}
        if any(route.matches(asked)[0].name == "FULL" for route in routes):
            print(path)
"""


def _copy(folder: Path) -> None:
    """The code and its contracts, as git has them."""
    for name in tracked_files():
        if name.startswith(("bot/", "runners/")) or name == "pyproject.toml":
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)


def _ran(folder: Path, *command: str | Path) -> str:
    answer = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=100
    )
    assert answer.returncode == 0, answer.stdout[-4000:] + answer.stderr[-2000:]
    return answer.stdout


def _served(folder: Path) -> set[str]:
    """Which of the addresses the application in this folder has."""
    asked = OTHERS.union(*ROUTES.values())
    module, *served = _ran(folder, sys.executable, "-c", PROGRAM, *asked).split()
    assert Path(module).is_relative_to(folder)
    return set(served)


def test_every_slice_is_deleted_below() -> None:
    assert {each.parent.name for each in SLICES.glob("*/__init__.py")} == set(ROUTES)


@pytest.mark.parametrize("name", sorted(ROUTES))
def test_a_slice_can_be_deleted(tmp_path: Path, name: str) -> None:
    _copy(tmp_path)
    everything = OTHERS.union(*ROUTES.values())
    assert _served(tmp_path) == everything
    shutil.rmtree(tmp_path / SLICES.relative_to(ROOT) / name)
    _ran(tmp_path, Path(sys.executable).with_name("lint-imports"), "--no-cache")
    assert _served(tmp_path) == everything - ROUTES[name]
