"""Two people and an admin, who use only what a fresh Podium on a CPU serves.

The second kernel is faster, so it would take the first place: it waits for its confirmation, and is
ranked once it was compared with the holder. In the end a final decides the order.
"""

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.command import IDENTITY, Podium, serving_identity

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(400)]

WITHIN_S = 150
FAST = (IDENTITY / "solutions" / "correct" / "torch_copy.py").read_text()
REPEATED = "    for _ in range(30):\n        output.copy_(source)\n    return"
SLOW = FAST.replace("    return", REPEATED)


@pytest.fixture(scope="module")
def podium() -> Iterator[Podium]:
    with serving_identity() as made:
        yield made


def submitted(podium: Podium, who: str, source: str) -> dict[str, Any]:
    """What the command says once the run was judged."""
    file = podium.file(f"{who}.py", source)
    told = podium(
        "submit", file, "--leaderboard", "identity", "--mode", "ranked", "--as", who, "--json"
    )
    assert told.returncode == 0, told.stderr
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def board(podium: Podium) -> dict[str, Any]:
    """What `podium show` says of the board."""
    (found,) = json.loads(podium("show", "identity", "--json").stdout)
    return dict(found)


def settled(podium: Podium, submission: int) -> dict[str, Any]:
    """The comparison of a submission, once it has ended."""
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        (job,) = podium.shown(submission)["jobs"]
        found: dict[str, Any] = job["confirmation"]
        if found["state"] != "pending":
            return found
        time.sleep(1)
    raise TimeoutError(f"#{submission} is still pending")


def told_of_the_loss(podium: Podium, first: int, number: int) -> None:
    """Check that each front end names the person who took the place of ada's run."""
    assert ", confirmed" in podium("history", "--as", "bob").stdout
    (past,) = json.loads(podium("history", "--as", "ada", "--json").stdout)
    assert past["results"][0]["lost_to"] == number
    (job,) = podium.shown(first)["jobs"]
    assert (job["lost_place"]["submission"], job["lost_place"]["person_name"]) == (number, "bob")
    address = f"{podium.environment['URL']}/submissions/{first}"
    assert f"lost 1st place to #{number} by bob" in httpx.get(address, timeout=20).text
    address = address.replace("/submissions", "/api/v1/submissions")
    (job,) = httpx.get(address, timeout=20).json()["jobs"]
    assert (job["lost_place"]["submission"], job["lost_place"]["place"]) == (number, 1)


def test_a_faster_kernel_is_pending_then_confirmed_and_a_final_publishes_the_table(
    podium: Podium,
) -> None:
    first = submitted(podium, "ada", SLOW)
    assert first["jobs"][0]["confirmation"] is None

    second = submitted(podium, "bob", FAST)
    number = second["submission"]
    assert second["jobs"][0]["confirmation"]["state"] == "pending"
    assert [each["person"] for each in board(podium)["pending"]] == ["bob"]
    assert [each["person"] for each in board(podium)["entries"]] == ["ada"]
    assert "confirmation pending" in podium("show", str(number)).stdout
    page = httpx.get(f"{podium.environment['URL']}/boards/identity", timeout=20)
    assert "Not confirmed yet" in page.text

    confirmed = settled(podium, number)
    assert (confirmed["state"], confirmed["rival"]) == ("confirmed", first["submission"]), confirmed
    assert [each["person"] for each in board(podium)["entries"]] == ["bob", "ada"]
    assert re.search(
        r"confirmed: .+ (faster than|as fast as) #1", podium("show", str(number)).stdout
    )
    told_of_the_loss(podium, int(first["submission"]), number)

    final = podium("final", "identity", "--as", "ada", "--json")
    assert final.returncode == 0, final.stderr
    assert "comparison made" in final.stderr or "comparisons made" in final.stderr
    (table,) = json.loads(final.stdout)["finals"]
    assert [each["person_name"] for each in table["rows"]] == ["bob", "ada"]
    assert "Vs the one before" in httpx.get(page.url, timeout=20).text
    told = httpx.get(f"{podium.environment['URL']}/api/v1/leaderboards/identity/finals", timeout=20)
    assert [each["person"] for each in told.json()["finals"][0]["rows"]] == ["bob", "ada"]
