"""`podium` with Modal's GPUs, from the token to a judged kernel, as who sets it up sees it."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from runners.harness import HARNESS_VERSION
from tests.doubles.evaluating import RIGHT
from tests.doubles.modal.server import LocalModal
from tests.doubles.modal.visible import local_modal
from tests.e2e.command import IDENTITY, Podium

pytestmark = pytest.mark.slow


@pytest.fixture
async def server() -> AsyncIterator[LocalModal]:
    async with local_modal() as server:
        yield server


@pytest.fixture
def podium(tmp_path: Path, server: LocalModal) -> Podium:
    return Podium(tmp_path, "modal:CPU=2", **server.environment)


async def ran(podium: Podium, *arguments: str | Path, **more: str) -> CompletedProcess[str]:
    return await asyncio.to_thread(podium, *arguments, **more)


async def test_the_doctor_says_what_to_do_until_modal_is_ready(podium: Podium) -> None:
    told = await ran(podium, "doctor", MODAL_TOKEN_ID="", MODAL_TOKEN_SECRET="")
    assert told.returncode == 3
    assert "MISSING  runner: Modal refuses the token" in told.stdout
    assert "run `modal token new`" in told.stdout
    told = await ran(podium, "doctor")
    assert told.returncode == 3
    assert "run `podium modal deploy`" in told.stdout
    told = await ran(podium, "modal", "deploy")
    assert told.returncode == 0, told.stderr
    assert "deployed: http" in told.stdout
    told = await ran(podium, "doctor")
    assert told.returncode == 0, told.stdout
    assert "MISSING" not in told.stdout


async def test_deploying_answers_in_json_alone(podium: Podium) -> None:
    told = await ran(podium, "modal", "deploy", "--json")
    assert json.loads(told.stdout)["page"].startswith("http")


async def test_a_kernel_is_judged_at_modal(podium: Podium, server: LocalModal) -> None:
    assert (await ran(podium, "modal", "deploy")).returncode == 0
    told = await ran(podium, "judge", IDENTITY, podium.file("right.py", RIGHT), "--json")
    assert told.returncode == 0, told.stderr
    evaluation = json.loads(told.stdout)
    assert evaluation["verdict"] == "passed"
    assert evaluation["environment"]["harness_version"] == HARNESS_VERSION
    assert server.scheduler.begun >= 1


async def test_a_gpu_type_that_modal_lacks_is_refused_with_those_there_are(podium: Podium) -> None:
    told = await ran(podium, "worker", PODIUM_RUNNERS="modal:H9000=1")
    assert told.returncode == 3
    assert "Modal has no GPU type H9000; it has T4" in told.stderr
