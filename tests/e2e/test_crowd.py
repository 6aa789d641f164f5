"""Many commands at once on one data folder, Ctrl-C, and what a terminal sees."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.e2e.command import IDENTITY, Podium, fresh, served

pytestmark = pytest.mark.slow

HEADING = "#!PODIUM leaderboard identity\n"
KERNEL = "def custom_kernel(data): ...\n"


@pytest.fixture
def podium() -> Iterator[Podium]:
    with fresh() as podium:
        podium.environment["PODIUM_CONFIRM_PLACES"] = "false"  # all are equally fast
        for name, seconds in (("quick", 0), ("slow", 2), ("endless", 600)):
            text = f"{HEADING}# fake: seconds={seconds}\n{KERNEL}"
            podium.file(f"{name}.py", text)
        assert podium("task", "publish", IDENTITY, "--gpu", "CPU", "--unchecked").returncode == 0
        yield podium


def _ended(started: list[subprocess.Popen[str]]) -> list[tuple[int, str]]:
    """Exit code and words of each."""
    return [(each.wait(), said) for each in started for said in [each.communicate(timeout=60)[0]]]


def _until(process: subprocess.Popen[str], words: str) -> str:
    """What the process says up to a line with these words."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if words in line:
            return said
    raise AssertionError(said)


def _ranked(podium: Podium) -> list[str]:
    [board] = json.loads(podium("show", "identity", "--json").stdout)
    return sorted(entry["person"] for entry in board["entries"])


def test_twenty_submissions_at_once_are_all_judged_once(podium: Podium) -> None:
    people = [f"person{number:02}" for number in range(20)]
    with served(podium):
        started = [podium.start("submit", "quick.py", "--no-wait", "--as", who) for who in people]
        ended = _ended(started)
        assert [code for code, _ in ended] == [0] * 20, ended
        numbers = {re.findall(r"submission #(\d+) is queued", said)[0] for _, said in ended}
        assert len(numbers) == 20
        last = podium("submit", "quick.py", "--as", "zoe")
        assert last.returncode == 0
        assert _ranked(podium) == [*people, "zoe"]


def test_submissions_without_a_server_share_one_database_and_take_turns(podium: Podium) -> None:
    del podium.environment["PODIUM_CONFIRM_PLACES"]  # no process would stay to compare them
    kernels = {"ada": "quick.py", "ken": "slow.py", "radia": "slow.py"}
    started = [podium.start("submit", file, "--as", who) for who, file in kernels.items()]
    ended = _ended(started)
    assert [code for code, _ in ended] == [0, 0, 0], ended
    assert _ranked(podium) == ["ada", "ken", "radia"]
    judged = (podium.folder / "data" / "podium.log").read_text(encoding="utf-8")
    assert judged.count("job-accepted") == 3
    assert "attempt-bug" not in judged


def test_ctrl_c_leaves_a_submission_in_the_queue_and_says_so(podium: Podium) -> None:
    process = podium.start("submit", "endless.py")
    _until(process, "test 0/")
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "submission #1 is stored and waits for `podium up`" in said
    assert "`podium cancel 1` stops it" in said
    assert said.endswith("podium: interrupted\n")
    [job] = json.loads(podium("show", "1", "--json").stdout)["jobs"]
    assert job["state"] == "queued"
    assert podium("cancel", "1").stdout == "submission #1: 1 job is being stopped\n"
    assert podium("cancel", "1").stdout == "submission #1 has already ended\n"


def test_ctrl_c_beside_a_server_leaves_the_submission_to_it(podium: Podium) -> None:
    with served(podium):
        process = podium.start("submit", "slow.py", "--as", "ada")
        _until(process, "test 0/")
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=20)
        assert process.returncode == 130
        assert "continues in `podium up`" in said
        assert podium("submit", "quick.py", "--as", "ken").returncode == 0
        assert _ranked(podium) == ["ada", "ken"]


def test_a_submission_does_not_wait_for_a_server_that_was_stopped(podium: Podium) -> None:
    podium.environment["PODIUM_LEASE_S"] = "18"  # its database outlives its judge by a while
    with served(podium):
        first = podium.start("submit", "slow.py", "--as", "ada")
        _until(first, "test 0/")
        second = podium.start("submit", "slow.py", "--as", "ken")
        _until(second, "queued")
    [(judged, _), (left, said)] = _ended([first, second])
    assert (judged, left) == (0, 3), said
    assert "submission #2 is stored and continues in `podium up`" in said
    assert said.endswith("`podium up` stopped before it judged the submission; start it again\n")
    assert "Traceback" not in said


def test_a_terminal_sees_progress_that_moves_and_then_the_result(podium: Podium) -> None:
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "bot", "submit", "slow.py", "--as", "ada"],
        cwd=podium.folder,
        env=podium.environment | {"TERM": "xterm", "COLUMNS": "100"},
        stdin=end,
        stdout=end,
        stderr=end,
    )
    os.close(end)
    seen = b""
    while True:
        try:
            seen += os.read(terminal, 65536)
        except OSError:  # so Linux says that the other end is closed
            break
    os.close(terminal)
    assert process.wait(timeout=20) == 0
    drawn = seen.decode()
    assert "\x1b[2K" in drawn
    for words in ("test 0/5", "timing 0/1", "passed"):
        assert words in drawn
    after = drawn[drawn.rindex("\x1b[2K") :]
    assert "submission #1: slow.py on identity" in after
    assert "test 0/5" not in after
