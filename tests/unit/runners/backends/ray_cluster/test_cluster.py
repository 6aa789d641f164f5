"""The runner over a real cluster: who is let in, what is refused, and what outlives whom."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from unittest.mock import patch

import psutil
import pytest

from runners.backends import ray_cluster
from runners.backends.ray_cluster import runner as ray_runner
from runners.backends.ray_cluster.bridge import Bridge, environment
from runners.backends.ray_cluster.runner import RayRunner, RaySlot
from runners.contract.evaluation import CPU, EvaluationRequest, Progress
from runners.contract.runner import RunnerError, UnknownCallError
from runners.contract.task import Workload
from runners.contract.verdict import Verdict
from tests.doubles.evaluating import ENDLESS, RIGHT, make_request
from tests.doubles.factories import make_capabilities
from tests.doubles.ray.local import LocalRay, local_ray

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif(sys.platform != "linux", reason="Ray is for Linux"),
]

NODE: dict[str, object] = {"num_cpus": 1, "num_gpus": 2, "resources": {"PODIUM_CPU": 1, "H9000": 2}}
SLOTS = {CPU: 1, "H9000": 3}
DRIVER = "runners.backends.ray_cluster.driver"
SLOW = "import time\ntime.sleep(3)\n" + RIGHT


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalRay]:
    with local_ray(NODE) as server:
        yield server


@pytest.fixture
async def runner(cluster: LocalRay) -> AsyncIterator[RayRunner]:
    with patch.dict(os.environ, cluster.environment):
        made = RayRunner(Bridge(), SLOTS, None, strict=False)
        yield made
        await made.aclose()


def ignore(_: Progress) -> None:
    return


def ours(module: str) -> list[psutil.Process]:
    """The processes of the cluster and of this test that run a module."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            found += [process] if process.cmdline()[1:3] == ["-m", module] else []
        except psutil.NoSuchProcess:
            continue
    return found


def ranks(count: int) -> EvaluationRequest:
    request = make_request(gpu="H9000")
    cases = (Workload(args={"size": 64, "seed": 1, "world_size": count}),)
    task = request.task.model_copy(update={"multi_gpu": True, "tests": cases})
    return request.model_copy(update={"task": task})


async def test_a_type_that_no_node_has_is_refused_at_once_with_those_there_are(
    runner: RayRunner,
) -> None:
    with pytest.raises(RunnerError, match=r"no node on Ray has GPU type B200; .*: CPU, H9000"):
        await runner.start(make_request(gpu="B200"))


async def test_more_gpus_than_a_node_has_are_refused_at_once(runner: RayRunner) -> None:
    with pytest.raises(RunnerError, match="needs 3 H9000 at once; a node on Ray has at most 2"):
        await runner.start(ranks(3))


async def test_only_types_that_nodes_have_are_offered(
    cluster: LocalRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_runner, "reporting_kind", lambda _: CPU)  # there is no H9000 to be fit
    with patch.dict(os.environ, cluster.environment):
        made = RayRunner(Bridge(), {"B200": 1, CPU: 1, "H9000": 3}, None, strict=False)
        offered = await made.capabilities()
        assert offered.gpus == {CPU: 1, "H9000": 3}
        assert offered.at_once == {CPU: 8, "H9000": 2}
        await made.aclose()
        nothing = RayRunner(Bridge(), {"B200": 1}, None, strict=False)
        with pytest.raises(RunnerError, match="no node on Ray has GPU type B200"):
            await nothing.capabilities()
        await nothing.aclose()


async def test_a_call_goes_on_without_its_driver_and_another_one_follows_it(
    runner: RayRunner,
) -> None:
    told = asyncio.Event()
    call = await runner.start(make_request(SLOW))
    waiting = asyncio.create_task(runner.wait(call, lambda _: told.set()))
    await told.wait()
    (driver,) = ours(DRIVER)
    driver.kill()
    assert (await waiting).verdict is Verdict.PASSED
    assert ours(DRIVER) != [driver]


async def test_a_call_of_another_process_is_taken_up_or_cancelled(runner: RayRunner) -> None:
    told = asyncio.Event()
    call = await runner.start(make_request(ENDLESS, timeout_s=60))
    waiting = asyncio.create_task(runner.wait(call, lambda _: told.set()))
    await told.wait()
    other = RayRunner(Bridge(), {CPU: 1}, None, strict=False)
    assert (await other.capabilities()).gpus == {CPU: 1}  # though there is no free slot
    following = asyncio.create_task(other.wait(call, ignore))
    await asyncio.wait({following}, timeout=0.5)
    assert not following.done()
    await RayRunner.cancel(other, call)
    for each in (following, waiting):
        with pytest.raises(RunnerError):
            await each
    with pytest.raises(UnknownCallError):
        await other._find(call)
    await other.aclose()


@pytest.mark.parametrize(("ours", "fits"), [(None, True), ("0.0.1", True), ("0.0.2", False)])
async def test_another_version_of_the_harness_is_refused(ours: str | None, *, fits: bool) -> None:
    slot = RaySlot(Bridge(), CPU, ours, strict=False)
    offered = make_capabilities(harness_version="0.0.1")
    if fits:
        assert slot._require_version(offered) == offered
        return
    with pytest.raises(RunnerError, match=r"harness 0\.0\.1, this is 0\.0\.2"):
        slot._require_version(offered)


async def test_who_has_not_the_token_is_told_what_to_set(cluster: LocalRay) -> None:
    wrong = {**cluster.environment, "RAY_AUTH_TOKEN": "a-token-of-somebody-else"}
    with patch.dict(os.environ, wrong), pytest.raises(RunnerError, match="; set RAY_AUTH_MODE"):
        await ray_cluster.create(slots=SLOTS).start(make_request())


async def test_a_cluster_that_lets_in_everybody_is_refused() -> None:
    with local_ray(token=False) as server:
        for token in ({}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "any"}):
            with (
                patch.dict(os.environ, {**server.environment, **token}),
                pytest.raises(RunnerError, match="accepts any token; start every node with"),
            ):
                await ray_cluster.create(slots=SLOTS).start(make_request())


@pytest.mark.parametrize("address", ["", "auto", "ray://head:10001"])
async def test_an_address_has_to_be_named(address: str) -> None:
    with (
        patch.dict(os.environ, {"RAY_ADDRESS": address}),
        pytest.raises(RunnerError, match="; set RAY_ADDRESS to HOST:PORT"),
    ):
        await ray_cluster.create(slots=SLOTS).capabilities()


async def test_a_cluster_that_is_away_is_named() -> None:
    with (
        patch.dict(os.environ, {"RAY_ADDRESS": "127.0.0.1:1"}),
        pytest.raises(RunnerError, match="cannot be reached"),
    ):
        await ray_cluster.create(slots=SLOTS).capabilities()


def test_a_driver_gets_no_secret_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://secret")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "for Ray")
    given = environment()
    assert "DATABASE_URL" not in given
    assert (given["RAY_AUTH_TOKEN"], given["RAY_AUTH_MODE"]) == ("for Ray", "token")


IDLE = """
import threading
from runners.backends.ray_cluster import node
node._CHECK_S, node.IDLE_S = 0.02, 0.1
slot = node.SlotActor("CPU", "")
assert slot.knows("a-1") == '{"number":0,"text":"","fault":null}'
threading.Event().wait(30)
raise SystemExit("it is still there")
"""


def test_a_slot_that_nobody_uses_ends() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", IDLE], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
