"""What is Modal's alone; what every runner promises is in the conformance suite."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import modal
import pytest
from modal_proto import api_pb2

from runners.backends import modal_app
from runners.backends.modal_app import runner
from runners.backends.modal_app.app import APP, FUNCTION, NotDeployedError, NoTokenError
from runners.backends.modal_app.transport import output
from runners.contract.evaluation import CPU, Progress
from runners.contract.runner import CallId, RunnerError, RunnerLostError
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from runners.harness.toolchains import nvcc
from tests.doubles.evaluating import ENDLESS, make_request
from tests.doubles.modal import sample
from tests.doubles.modal.model import Function
from tests.doubles.modal.server import LocalModal
from tests.doubles.modal.visible import local_modal

SPENT = {"modal_cold_start", "modal_ready"}


@pytest.fixture
async def server() -> AsyncIterator[LocalModal]:
    async with local_modal() as server:
        yield server


def ignore(_: Progress) -> None:
    return


def bound(server: LocalModal) -> list[Function]:
    return [each for each in server.rpcs.deployed.functions.values() if each.options]


async def deploy_instead(name: str, *, pickles: bool = True) -> None:
    """Deploy a function of the sample in the place of ours."""
    app = modal.App(APP)
    app.function(
        name=FUNCTION,
        image=modal.Image.debian_slim(),
        include_source=False,
        _experimental_restrict_output=not pickles,
    )(getattr(sample, name))
    await app.deploy.aio()


async def test_the_function_is_walled_off_and_never_tried_again(server: LocalModal) -> None:
    await modal_app.deploy()
    (deployed,) = [each.definition for each in server.rpcs.deployed.functions.values()]
    assert deployed.function_name == FUNCTION
    assert deployed.block_network
    assert deployed.untrusted
    assert deployed.single_use_containers
    assert deployed.retry_policy.retries == 0
    assert list(deployed.supported_output_formats) == [api_pb2.DATA_FORMAT_CBOR]


async def test_gpu_time_limit_and_slots_are_asked_for_by_call(server: LocalModal) -> None:
    await modal_app.deploy()
    made = modal_app.create(slots={"H100": 3})
    call = await made.start(make_request(gpu="H100", mode=Mode.RANKED, timeout_s=400))
    (asked,) = bound(server)
    assert (asked.gpu, asked.timeout_s, asked.limit) == ("H100!", 3600, 3)
    await made.cancel(call)
    await made.aclose()


async def test_what_a_call_cost_is_told_with_its_evaluation(server: LocalModal) -> None:
    await modal_app.deploy()
    made = modal_app.create()
    answer = await made.wait(await made.start(make_request()), ignore)
    assert answer.verdict is Verdict.PASSED
    assert answer.durations_s.keys() >= SPENT
    assert all(answer.durations_s[name] > 0 for name in SPENT)
    assert answer.gpu_s > answer.wall_s > 0
    await made.aclose()


async def test_who_waits_at_modal_is_told_behind_how_many(server: LocalModal) -> None:
    await modal_app.deploy()
    made = modal_app.create()
    calls = [await made.start(make_request(ENDLESS, timeout_s=60)) for _ in range(3)]
    notes: list[str] = []
    for call in reversed(calls):
        waiting = asyncio.create_task(made.wait(call, lambda told: notes.append(told.note)))
        await asyncio.sleep(0)
        waiting.cancel()
    await made.aclose()
    # The first one may have a container already when the others come.
    assert notes[2] == "at Modal"
    assert notes[0] in {f"at Modal, {count} before it" for count in (1, 2)}


@pytest.mark.usefixtures("server")
async def test_a_modal_that_does_not_tell_who_waits_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []

    async def hangs(function: object) -> object:
        asked.append(function)
        return await asyncio.Event().wait()

    def hanging(function: object) -> object:
        return SimpleNamespace(aio=lambda: hangs(function))

    monkeypatch.setattr(modal.Function, "get_current_stats", property(hanging))
    monkeypatch.setattr(runner, "_STATS_S", 0.1)
    await modal_app.deploy()
    made = modal_app.create()
    assert await asyncio.wait_for(made.start(make_request(ENDLESS, timeout_s=60)), 10)
    assert len(asked) == 1
    await made.aclose()


async def test_a_call_is_found_again_by_another_runner(server: LocalModal) -> None:
    await modal_app.deploy()
    call = await modal_app.create().start(make_request())
    await (await modal.Client.from_env.aio()).close.aio()
    after = modal_app.create()
    assert (await after.wait(call, ignore)).verdict is Verdict.PASSED
    assert server.scheduler.begun == 1
    await after.aclose()


async def test_an_app_that_is_not_there_is_told_with_what_to_do(server: LocalModal) -> None:
    made = modal_app.create()
    with pytest.raises(NotDeployedError, match="run `podium modal deploy`"):
        await made.start(make_request())
    with pytest.raises(NotDeployedError):
        await made.capabilities()
    await modal_app.deploy()
    assert (await made.capabilities()).gpus == {CPU: 1}
    await made.aclose()


async def test_device_code_is_offered_beside_a_gpu(server: LocalModal) -> None:
    await modal_app.deploy()
    programs = ("cu",) if nvcc.toolchain() else ()
    for slots, languages in (
        ({CPU: 1}, ("py", *programs)),
        ({CPU: 1, "H100": 2}, ("py", "cu")),
    ):
        made = modal_app.create(slots=slots)
        assert (await made.capabilities()).languages == languages
        await made.aclose()


async def test_an_app_of_another_harness_version_is_told_with_what_to_do(
    server: LocalModal,
) -> None:
    await modal_app.deploy()
    made = modal_app.create(version="0.0.1")
    with pytest.raises(RunnerError, match=r"this is 0\.0\.1; run `podium modal deploy`"):
        await made.capabilities()
    await made.aclose()


async def test_a_missing_token_is_told_with_what_to_do(
    server: LocalModal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        without.delenv("MODAL_TOKEN_ID")
        without.delenv("MODAL_TOKEN_SECRET")
        with pytest.raises(NoTokenError, match="modal token new"):
            await modal_app.create().capabilities()


async def test_a_container_over_its_limit_is_an_error_and_not_a_loss(server: LocalModal) -> None:
    await deploy_instead("hang_whatever")
    made = modal_app.create()
    function = modal.Function.from_name(APP, FUNCTION).with_options(timeout=2)
    call = CallId((await function.spawn.aio("")).object_id)
    with pytest.raises(RunnerError, match="exceeded its time limit") as raised:
        await made.wait(call, ignore)
    assert not isinstance(raised.value, RunnerLostError)
    await made.aclose()


async def test_a_lost_machine_is_told_from_other_errors(server: LocalModal) -> None:
    await modal_app.deploy()
    made = modal_app.create()
    waiting = asyncio.create_task(
        made.wait(await made.start(make_request(ENDLESS, timeout_s=60)), ignore)
    )
    async with asyncio.timeout(30):
        while not server.scheduler.running:  # noqa: ASYNC110 - it has no event of its own
            await asyncio.sleep(0.02)
    server.lose_machine()
    with pytest.raises(RunnerLostError, match="the container was lost"):
        await waiting
    await made.aclose()


async def test_a_call_is_asked_for_again_while_modal_is_out_of_reach(
    server: LocalModal, monkeypatch: pytest.MonkeyPatch
) -> None:
    await modal_app.deploy()
    made = modal_app.create()
    call = await made.start(make_request())
    failures = [modal.exception.ConnectionError("no route"), OSError("gone")]

    async def flaky(client: modal.Client, call: str) -> str | None:
        if failures:
            raise failures.pop()
        return await output(client, call)

    monkeypatch.setattr(runner, "output", flaky)
    monkeypatch.setattr(runner, "_RETRY_S", 0.01)
    assert (await made.wait(call, ignore)).verdict is Verdict.PASSED
    assert failures == []
    await made.aclose()


async def test_a_call_counts_as_lost_when_modal_stays_out_of_reach(
    server: LocalModal, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(client: modal.Client, call: str) -> str | None:
        raise modal.exception.ConnectionError("no route")

    monkeypatch.setattr(runner, "output", away)
    monkeypatch.setattr(runner, "_RETRY_S", 0.01)
    monkeypatch.setattr(runner, "_UNAVAILABLE_S", 0.1)
    with pytest.raises(RunnerLostError, match="cannot be reached: no route"):
        await modal_app.create().wait(CallId("fc-1"), ignore)


async def test_a_pickle_from_a_container_is_never_loaded(
    server: LocalModal, tmp_path: Path
) -> None:
    await deploy_instead("pickled")
    made = modal_app.create()
    function = modal.Function.from_name(APP, FUNCTION)
    call = CallId((await function.spawn.aio(str(tmp_path / "loaded"))).object_id)
    with pytest.raises(RunnerError, match="not in the CBOR format"):
        await made.wait(call, ignore)
    assert not (tmp_path / "loaded").exists()
    with pytest.raises(Exception, match="deserializing"):
        await modal.FunctionCall.from_id(call).get.aio()  # Modal's own client does load it
    assert (tmp_path / "loaded").exists()
    await made.aclose()


async def test_an_answer_that_breaks_the_contract_is_an_error(server: LocalModal) -> None:
    await deploy_instead("echo", pickles=False)
    made = modal_app.create()
    with pytest.raises(RunnerError, match="broke the contract"):
        await made.wait(await made.start(make_request()), ignore)
    await made.aclose()


async def test_a_closed_runner_takes_no_call(server: LocalModal) -> None:
    await modal_app.deploy()
    made = modal_app.create()
    await made.aclose()
    with pytest.raises(RunnerError, match="closed"):
        await made.start(make_request())
