"""Walked by a creator with cards of their own and cards that are rented, of one GPU type.

Ada's times must be comparable, so she has her own machine time all ranked runs on the A100. Grace
hands in while that machine is off, and is told what her run waits for. Ada turns the machine on,
and later gives it up. The fake runner stands for both machines: the rented cards are the server's.
"""

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.architecture.tree import ROOT
from tests.e2e.command import Podium, fresh, read_until_up, terminate

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(300)]

TASK = ROOT / "tasks" / "examples" / "identity"
KERNEL = TASK / "solutions" / "correct" / "torch_copy.py"
BOARD = "identity"
OWN = "box fake"
WITHIN_S = 60


@dataclass(frozen=True, slots=True)
class Site:
    """A Podium that is up and its client."""

    podium: Podium
    client: httpx.Client

    def done(self, *arguments: str) -> str:
        ran = self.podium(*arguments)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout + ran.stderr

    def submitted(self, mode: str, person: str = "grace") -> int:
        """The number of a submission that its person does not wait for."""
        words = ("--mode", mode, "--gpu", "A100", "--as", person, "--no-wait")
        (number,) = re.findall(r"#(\d+)", self.done("submit", str(KERNEL), *words))[:1]
        return int(number)

    def seen(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(f"/api/v1/submissions/{number}").json()
        return found

    def finished(self, number: int) -> None:
        until = time.monotonic() + WITHIN_S
        while self.seen(number)["state"] != "finished":
            assert time.monotonic() < until, self.seen(number)
            time.sleep(0.2)

    def pools(self) -> set[str]:
        """The pools of the ranked runs, once each run for one of the first places is confirmed."""
        until = time.monotonic() + WITHIN_S
        while True:
            shown = self.client.get(f"/api/v1/leaderboards/{BOARD}/standings?gpu=A100").json()
            (leaderboard,) = shown["leaderboards"]
            if not leaderboard["pending"]:
                return {each["pool"] for each in leaderboard["entries"]}
            assert time.monotonic() < until, leaderboard
            time.sleep(0.2)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with fresh("fake:A100=2:H100=2") as podium:
        podium.environment["PODIUM_HTTP_PORT"] = "0"
        process = podium.start("up")
        try:
            (url,) = re.findall(r"https?://\S+", read_until_up(process))
            token = podium("token", "create", "--person", "grace").stdout.strip()
            access = {"Authorization": f"Bearer {token}"}
            with httpx.Client(base_url=url, headers=access, timeout=60) as client:
                yield Site(podium, client)
        finally:
            terminate(process)


@contextmanager
def own_machine(site: Site) -> Iterator[subprocess.Popen[str]]:
    """Ada's machine, turned on."""
    token = site.podium("token", "create", "--worker", "box").stdout.strip()
    machine = Podium(
        site.podium.folder,
        "fake:A100=1",
        PODIUM_SERVER=str(site.client.base_url).rstrip("/"),
        PODIUM_WORKER_TOKEN=token,
        PODIUM_DATA_DIR=str(site.podium.folder / "box"),
    )
    process = machine.start("worker")
    try:
        assert process.stdout is not None
        assert any("Ctrl-C" in line for line in process.stdout)
        yield process
    finally:
        terminate(process)


def test_one_pool_times_the_ranked_runs_of_a_gpu_type(site: Site) -> None:
    gpus = ("--gpu", "A100", "--gpu", "H100")
    published = site.done(
        "task", "publish", str(TASK), *gpus, "--pool", f"A100={OWN}", "--unchecked"
    )
    assert f"timed only by A100={OWN}" in published
    assert f"timed only by pool {OWN}" in site.done("show", BOARD, "--gpu", "A100")
    assert "timed only" not in site.done("show", BOARD, "--gpu", "H100")
    assert f"timed only by pool {OWN}" in site.client.get(f"/boards/{BOARD}?gpu=A100").text
    assert f"timed only by pool {OWN}" in site.client.get(f"/boards/{BOARD}").text
    board = site.client.get(f"/api/v1/leaderboards/{BOARD}").json()
    assert board["pools"] == {"A100": OWN}

    tested, ranked = site.submitted("test"), site.submitted("ranked")
    site.finished(tested)
    waits = site.seen(ranked)
    assert (waits["state"], waits["unserved"]) == ("queued", ["A100"])
    assert waits["jobs"][0]["pool"] == OWN
    waiting = site.podium(
        "submit",
        KERNEL,
        "--gpu",
        "A100",
        "--as",
        "ken",
    )
    assert f"A100 of pool {OWN}" in waiting.stderr

    with own_machine(site):
        site.finished(ranked)
        assert site.pools() == {OWN}

    last = site.submitted("ranked", "lin")
    assert site.seen(last)["state"] == "queued"
    assert "timed only" not in site.done(
        "task", "publish", str(TASK), "--pool", "any", "--unchecked"
    )
    site.finished(last)
    assert site.pools() == {OWN, "fake"}
