"""Walked by people who know GPU types by other names: those of Modal and of public tasks.

Ada runs the machines and opens a board, both with names that Modal has; Grace and Ken hand in a
kernel that the task ships, each by a door and a name of their own. All mean the same two cards.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from tests.architecture.tree import ROOT
from tests.e2e.command import Podium, fresh, read_until_up, terminate

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(300)]

TASK = ROOT / "tasks" / "examples" / "identity"
KERNEL = TASK / "solutions" / "correct" / "torch_copy.py"
BOARD = "identity"
CONFIRMED_WITHIN_S = 60


@dataclass(frozen=True, slots=True)
class Site:
    """A Podium that is up, its client, and what it said when it began."""

    podium: Podium
    client: httpx.Client
    said: str

    def pending(self, gpu: str) -> list[object]:
        """The runs that wait for their confirmation."""
        found = self.client.get(f"/api/v1/leaderboards/{BOARD}/standings", params={"gpu": gpu})
        waiting: list[object] = found.json()["leaderboards"][0]["pending"]
        return waiting


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with fresh("fake:A100-40GB=2:H100!=2") as podium:
        podium.environment["PODIUM_HTTP_PORT"] = "0"
        process = podium.start("up")
        try:
            said = read_until_up(process)
            (url,) = re.findall(r"https?://\S+", said)
            names = ("--gpu", "A100-40GB", "--gpu", "H100!", "--gpu", "A100", "--gpu", "NVIDIA")
            published = podium("task", "publish", TASK, *names, "--unchecked")
            assert published.returncode == 0, published.stderr
            with httpx.Client(base_url=url, timeout=60) as client:
                yield Site(podium, client, said)
        finally:
            terminate(process)


def test_one_card_is_one_board_whatever_it_is_called(site: Site) -> None:
    assert "2 x A100, 2 x H100" in site.said
    assert site.client.get(f"/popcorn/gpus/{BOARD}").json() == ["A100", "H100", "NVIDIA"]

    by_command = ("submit", KERNEL, "--gpu", "A100-40GB", "--gpu", "h100!", "--as", "grace")
    handed_in = site.podium(*by_command)
    assert handed_in.returncode == 0, handed_in.stderr

    token = site.podium("token", "create", "--person", "ken").stdout.strip()
    sent = site.client.post(
        f"/popcorn/{BOARD}/A100:1/leaderboard",
        files={"file": (KERNEL.name, KERNEL.read_bytes())},
        headers={"X-Popcorn-Cli-Id": token},
    )
    assert sent.status_code == 200, sent.text
    assert "event: result" in sent.text

    until = time.monotonic() + CONFIRMED_WITHIN_S
    while site.pending("A100"):  # both are equally fast: the second is compared with the first
        assert time.monotonic() < until
        time.sleep(0.2)
    for name in ("A100", "a100-40gb", "A100-40GB"):
        shown = site.podium("show", BOARD, "--gpu", name)
        assert shown.returncode == 0, shown.stderr
        assert "identity on A100\n" in shown.stdout
        assert {"grace", "ken"} <= set(shown.stdout.split())
        page = site.client.get(f"/boards/{BOARD}", params={"gpu": name}).text
        assert f"{BOARD} on A100" in page
        found = site.client.get(
            f"/api/v1/leaderboards/{BOARD}/standings", params={"gpu": name}
        ).json()
        (leaderboard,) = found["leaderboards"]
        people = {(each["person"], each["pool"]) for each in leaderboard["entries"]}
        assert (leaderboard["gpu"], people) == ("A100", {("grace", "fake"), ("ken", "fake")})

    queue = site.client.get("/popcorn/runner_queue/H100!").json()
    assert (queue["gpu"], queue["status"]) == ("H100", "available")


def test_a_type_whose_times_are_not_comparable_stays_one_of_its_own(site: Site) -> None:
    refused = site.podium("submit", KERNEL, "--gpu", "B200_Nebius", "--as", "grace")
    assert refused.returncode != 0
    assert "the board runs on A100, H100, NVIDIA" in refused.stderr
    entries = site.client.get(
        f"/api/v1/leaderboards/{BOARD}/standings", params={"gpu": "nvidia"}
    ).json()
    assert entries["leaderboards"][0]["entries"] == []
