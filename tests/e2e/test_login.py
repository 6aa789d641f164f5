"""A participant at a server, as real processes: signed in, following, and the server killed."""

import json
import re
import signal
import subprocess
import threading
from collections.abc import Iterator

import pytest

from tests.e2e.command import Podium, fresh, terminate

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

SLOW = "# fake: time_us=30 seconds=1\ndef custom_kernel(data): ...\n"


@pytest.fixture
def podium() -> Iterator[Podium]:
    with fresh() as podium:
        podium.environment |= {"PODIUM_HTTP_PORT": "0", "PODIUM_LEASE_S": "2"}
        yield podium


@pytest.fixture
def laptop(podium: Podium) -> Podium:
    """Another machine of its user's, with nothing of the server's but its address."""
    home = podium.folder / "laptop"
    home.mkdir()
    laptop = Podium(home)
    for name in ("PODIUM_DATA_DIR", "PODIUM_RUNNERS", "PODIUM_LEASE_S"):
        del laptop.environment[name]
    return laptop


def _up(podium: Podium, started: list[subprocess.Popen[str]]) -> str:
    """A served Podium; gives the address of its door, which is the same the next time."""
    process = podium.start("up")
    started.append(process)
    url: str
    (url,) = re.findall(r"https?://\S+", _read_until(process, "Ctrl-C"))
    podium.environment["PODIUM_HTTP_PORT"] = url.rpartition(":")[2]
    return url


def _sign_in(laptop: Podium, url: str, token: str) -> None:
    signed = laptop("login", url, PODIUM_CLI_TOKEN=token)
    assert (signed.returncode, signed.stdout) == (0, f"signed in to {url} as ada\n"), signed.stderr
    assert token not in signed.stderr
    kept = laptop.folder / ".config" / "podium" / "credentials.json"
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_participant_follows_through_the_death_of_the_server(
    podium: Podium, laptop: Podium
) -> None:
    started: list[subprocess.Popen[str]] = []
    try:
        url = _up(podium, started)
        podium.publish()
        token = podium("token", "create", "--person", "ada").stdout.strip()
        _sign_in(laptop, url, token)
        kernel = laptop.file("k.py", SLOW)
        following = laptop.start("submit", kernel, "--leaderboard", "identity")
        started.append(following)
        _read_until(following, "#1: CPU: ")
        started[0].send_signal(signal.SIGKILL)
        started[0].wait()
        _read_until(following, "retrying for")
        assert _up(podium, started) == url
        said = _read_until(following, None)
        assert following.wait(60) == 0, said
        assert "answers again" in said
        assert "30.00 µs" in said
        (board,) = json.loads(laptop("show", "identity", "--json").stdout)
        assert [entry["person"] for entry in board["entries"]] == ["ada"]
    finally:
        for each in started:
            terminate(each)


def _read_until(process: subprocess.Popen[str], words: str | None) -> str:
    """What it says until these words are in a line; None for all of it."""
    overdue = threading.Timer(60, process.kill)
    overdue.start()
    said = ""
    assert process.stdout is not None
    for line in process.stdout:
        said += line
        if words is not None and words in line:
            break
    overdue.cancel()
    assert words is None or words in said, said
    return said
