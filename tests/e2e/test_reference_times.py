"""A task's own reference, timed by the real judge, and what people gain on it."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from bot.domain.times import show_factor
from tests.architecture.tree import ROOT
from tests.doubles.databases import fresh_database
from tests.e2e.command import Podium, fresh, running, served, timed_briefly

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

MATMUL = ROOT / "tasks" / "examples" / "matmul"
TORCH = MATMUL / "solutions" / "correct" / "torch_matmul.py"
WITHIN_S = 90
PEEKS = "import reference\n\ncustom_kernel = reference.ref_kernel\n"
BROKEN = """
def generate_input(size: int, seed: int):
    return size


def ref_kernel(data):
    raise RuntimeError("a secret of the task")


def check_implementation(data, output):
    return output == data, "it differs"
"""


@pytest.fixture
def podium() -> Iterator[Podium]:
    with fresh("local") as podium, served(podium):
        yield podium


def brief(podium: Podium) -> Path:
    return timed_briefly(MATMUL, podium.folder)


def standings(podium: Podium, board: str) -> dict[str, Any]:
    [found] = json.loads(podium("show", board, "--json").stdout)
    return dict(found)


def standings_with(podium: Podium, board: str, key: str) -> dict[str, Any]:
    """The standings as soon as they have a value for the key."""
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        found = standings(podium, board)
        if found[key]:
            return found
        time.sleep(0.3)
    raise TimeoutError(f"{board} has no {key} within {WITHIN_S} s")


def test_people_are_compared_with_the_reference_that_no_kernel_can_see(podium: Podium) -> None:
    assert podium("task", "publish", brief(podium), "--unchecked").returncode == 0
    reference = standings_with(podium, "matmul", "reference")["reference"]
    assert reference["time_ns"] > 0
    right = podium("submit", TORCH, "--leaderboard", "matmul", "--as", "ada")
    assert right.returncode == 0, right.stderr
    peeking = podium.file("peeks.py", PEEKS)
    peeked = podium("submit", peeking, "--leaderboard", "matmul", "--as", "eve", "--json")
    assert json.loads(peeked.stdout)["jobs"][0]["verdict"] == "build_failed"
    found = standings(podium, "matmul")
    (entry,) = found["entries"]
    assert (entry["person"], entry["attempts"], entry["submission"]) == ("ada", 1, 1)
    if entry["vs_reference_in_turn"]:  # a busy machine made the kernel slow enough for that
        assert entry["vs_reference_low"] < entry["vs_reference"] < entry["vs_reference_high"]
    else:
        assert entry["vs_reference"] == pytest.approx(reference["time_ns"] / entry["time_ns"])
    assert found["reference"] == reference
    shown = podium("show", "matmul").stdout
    assert "vs reference" in shown
    assert show_factor(entry["vs_reference"]) in shown
    assert "  reference: " in shown


def test_a_reference_that_fails_is_told_and_blocks_nobody(podium: Podium) -> None:
    made = podium("task", "new", podium.folder / "broken")
    assert made.returncode == 0, made.stderr
    (podium.folder / "broken" / "reference.py").write_text(BROKEN, encoding="utf-8")
    assert podium("task", "publish", podium.folder / "broken", "--unchecked").returncode == 0
    failure = standings_with(podium, "broken", "reference_failure")["reference_failure"]
    assert failure.startswith(("crashed", "task_error"))
    shown = podium("show", "broken").stdout
    assert "reference: no time" in shown
    assert "vs reference" not in shown
    log = podium.folder / "data" / "podium.log"
    deadline = time.monotonic() + WITHIN_S
    while "reference-failed" not in log.read_text(encoding="utf-8"):
        assert time.monotonic() < deadline, "the failure is not in the log"
        time.sleep(0.2)


async def test_a_kill_and_two_copies_leave_one_time(open_folder_root: Path) -> None:
    async with fresh_database() as dsn:
        first, second = (copy_of_podium(open_folder_root / name, dsn) for name in ("a", "b"))
        published = first("task", "publish", brief(first), "--unchecked", "--gpu", "CPU")
        assert published.returncode == 0, published.stderr
        await asyncio.to_thread(_killed_while_it_times, first, dsn)
        with ExitStack() as stack:
            for each in (first, second):
                stack.enter_context(running(each))
            found = await asyncio.to_thread(standings_with, first, "matmul", "reference")
        assert found["reference"]["time_ns"] > 0
        (row,) = await rows(dsn, OUTCOME)
        assert dict(row) == {"submissions": 1, "jobs": 1, "evaluations": 1, "scores": 0, "times": 1}


OUTCOME = """
select (select count(*) from submissions) as submissions, (select count(*) from jobs) as jobs,
    (select count(*) from evaluations) as evaluations, (select count(*) from scores) as scores,
    (select count(*) from reference_times where time_ns is not null) as times
"""


def copy_of_podium(folder: Path, dsn: str) -> Podium:
    folder.mkdir()
    return Podium(folder, "local", DATABASE_URL=dsn)


def _killed_while_it_times(podium: Podium, dsn: str) -> None:
    with running(podium) as process:
        deadline = time.monotonic() + WITHIN_S
        while not asyncio.run(rows(dsn, "select from job_events where kind = 'timing'")):
            assert time.monotonic() < deadline, "the reference is never timed"
            time.sleep(0.1)
        process.kill()
        process.wait()


async def rows(dsn: str, statement: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetch(statement)
    finally:
        await connection.close()
