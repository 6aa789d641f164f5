"""A stranger in a fresh checkout: the demo, its boards in the browser, signing in, and cleaning up.

They type what the README and the demo's last lines say, and click what the pages offer.
"""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.architecture.tree import ROOT
from tests.doubles.databases import temporary_folder

MATMUL = ROOT / "tasks" / "examples" / "matmul"
IDENTITY = ROOT / "tasks" / "examples" / "identity"
LIMIT_S = 110.0
LINK = re.compile(r"sign in +(http://127\.0\.0\.1:\d+/sign-in/link\?key=\S+)")


class Stranger:
    """Somebody with a terminal, at a data folder that nobody has used."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "PODIUM_DATA_DIR": str(self.data),
            "PODIUM_HTTP_PORT": "0",
            "USER": "ada",
            "LOGNAME": "ada",
        }

    def types(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "bot", *map(str, words)],
            cwd=self.data.parent,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    @contextmanager
    def up(self, *, at_terminal: bool = True) -> Iterator[str]:
        """What `podium up` says until it waits, on a terminal or into a pipe."""
        reads, writes = pty.openpty() if at_terminal else os.pipe()
        process = subprocess.Popen(
            [sys.executable, "-m", "bot", "up"],
            cwd=self.data.parent,
            env=self.environment,
            stdout=writes,
            stderr=subprocess.STDOUT,
        )
        os.close(writes)
        try:
            yield _read_until(reads, "Ctrl-C")
        finally:
            process.terminate()
            process.wait(LIMIT_S)
            os.close(reads)


def _read_until(reads: int, end: str) -> str:
    said, until = b"", time.monotonic() + LIMIT_S
    while end.encode() not in said:
        ready, _, _ = select.select([reads], [], [], until - time.monotonic())
        more = os.read(reads, 4096) if ready else b""
        assert more, f"`podium up` said only {said.decode(errors='replace')}"
        said += more
    return said.decode()


@pytest.fixture(scope="module")
def stranger() -> Iterator[Stranger]:
    """Not below pytest's own folder: the database's account could not enter that one."""
    with temporary_folder("podium-test-") as folder:
        yield Stranger(folder)


@pytest.mark.slow
def test_the_demo_s_boards_stay_and_its_last_lines_say_what_to_type_next(
    stranger: Stranger,
) -> None:
    # Somebody of this machine has a board of that task already.
    own = stranger.types("task", "publish", MATMUL, "--unchecked", "--as", "katherine")
    assert own.returncode == 0, own.stderr

    demo = stranger.types("demo", "--rounds", "2", "--tasks", MATMUL)
    assert demo.returncode == 0, demo.stderr
    assert "each with the expected verdict" in demo.stdout
    steps = [line.strip() for line in demo.stdout.split("Next:")[1].splitlines() if line.strip()]
    assert len(steps) == 6
    assert steps[0].split(" ")[-1] == "up"
    assert " judge " in steps[2]
    assert steps[4].endswith("demo --remove")


@pytest.mark.slow
def test_podium_up_shows_them_and_signs_the_person_in_once(stranger: Stranger) -> None:
    with stranger.up() as said:
        link = LINK.search(said)
        assert link is not None, said
        with httpx.Client(base_url=link[1].split("/sign-in")[0]) as browser:
            _walk(browser, link[1], stranger)


@pytest.mark.slow
def test_a_second_demo_replaces_the_first_and_one_command_takes_it_away(
    stranger: Stranger,
) -> None:
    again = stranger.types("demo", "--rounds", "2", "--tasks", IDENTITY)
    assert again.returncode == 0, again.stderr
    assert "no board named" in stranger.types("show", "demo-matmul").stderr

    removed = stranger.types("demo", "--remove")
    assert removed.stdout == "removed demo-identity\n"
    assert stranger.types("demo", "--remove").stdout.startswith("no demo found")
    assert stranger.types("show", "matmul").returncode == 0
    assert "no board named" in stranger.types("show", "demo-identity").stderr


def _walk(browser: httpx.Client, link: str, stranger: Stranger) -> None:
    """Look at the boards, open the link, press its button, and look at the account."""
    assert "demo-matmul" in browser.get("/").text
    for _ in range(2):  # a preview of the link in a chat, then the person
        assert browser.get(link).status_code == 200
    key = link.partition("key=")[2]
    address = f"{browser.base_url.scheme}://{browser.base_url.netloc.decode()}"
    foreign = browser.post("/sign-in/link", data={"key": key}, headers={"Origin": "http://x.org"})
    assert foreign.status_code == 403
    form = {"data": {"key": key}, "headers": {"Sec-Fetch-Site": "same-origin", "Origin": address}}
    entered = browser.post("/sign-in/link", **form)  # type: ignore[arg-type]
    assert (entered.status_code, entered.headers["Location"]) == (303, "/")
    assert "ada" in browser.get("/me").text
    assert browser.get("/admin").status_code == 200
    with httpx.Client(base_url=address) as another:
        late = another.post("/sign-in/link", **form)  # type: ignore[arg-type]
        assert late.status_code in {400, 403}
        assert "already used" in late.text
    logs = [path.read_text() for path in stranger.data.glob("podium.log*")]
    assert logs
    assert not [log for log in logs if key in log]


@pytest.mark.slow
def test_an_empty_podium_says_what_to_do_next(stranger: Stranger) -> None:
    stranger.data = stranger.data.parent / "empty"
    stranger.environment["PODIUM_DATA_DIR"] = str(stranger.data)
    with stranger.up(at_terminal=False) as said:  # into a file, as a service has it
        assert "/sign-in/link" not in said
        assert "token create --person NAME --admin" in said
        address = re.search(r"web at (http://\S+)", said)
        assert address is not None
        assert urlsplit(address[1]).hostname == "127.0.0.1"
        with httpx.Client(base_url=address[1]) as browser:
            home = browser.get("/").text
            assert "task publish tasks/examples/softmax" in home
            assert "make demo" in home
            assert "pip install kernel-podium" not in browser.get("/docs").text
            assert "prints a link that signs you in" in browser.get("/sign-in").text
