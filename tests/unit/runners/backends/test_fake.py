import asyncio

import pytest

from runners.backends.fake import FakeRunner, create
from runners.contract.evaluation import CaseStatus, Evaluation, Progress
from runners.contract.runner import CallId, RunnerError, UnknownCallError
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict
from tests.doubles.factories import make_request, make_task


async def judged(directive: str = "", mode: Mode = Mode.RANKED) -> Evaluation:
    runner = create()
    call = await runner.start(make_request(source=f"x = 1\n{directive}\n", mode=mode))
    return await runner.wait(call, lambda _: None)


async def test_a_source_without_a_directive_passes_the_request_s_cases() -> None:
    evaluation = await judged()
    assert evaluation.verdict is Verdict.PASSED
    assert (evaluation.request_id, evaluation.task, evaluation.gpu) == ("job-1", "vectoradd", "CPU")
    assert [case.spec for case in evaluation.cases] == ["size: 16", "size: 17", "size: 1024"]


async def test_the_directive_sets_verdict_and_time() -> None:
    timed = await judged("# fake: time_us=30")
    assert timed.cases[-1].measurement is not None
    assert timed.cases[-1].measurement.time_ns == 30_000
    assert timed.cases[-1].measurement.half_width_ns == 30
    noisy = await judged("# fake: time_us=30 half_width_us=20")
    assert noisy.cases[-1].measurement is not None
    assert noisy.cases[-1].measurement.half_width_ns == 20_000
    wrong = await judged("  // fake: verdict=wrong_answer message=off_by_one")
    assert (wrong.verdict, wrong.stage, wrong.message) == (
        Verdict.WRONG_ANSWER,
        Stage.TEST,
        "off by one",
    )


@pytest.mark.parametrize(
    ("directive", "mode", "statuses"),
    [
        ("verdict=build_failed", Mode.RANKED, "skipped skipped skipped"),
        ("verdict=crashed", Mode.RANKED, "failed skipped skipped"),
        ("verdict=crashed stage=timing", Mode.RANKED, "passed passed failed"),
        ("verdict=timing_rejected", Mode.BENCHMARK, "failed"),
        ("verdict=crashed", Mode.TEST, "failed skipped"),
        ("time_us=5", Mode.TEST, "passed passed"),
    ],
)
async def test_cases_end_where_the_verdict_falls(directive: str, mode: Mode, statuses: str) -> None:
    evaluation = await judged(f"# fake: {directive}", mode)
    assert [case.status for case in evaluation.cases] == [
        CaseStatus(status) for status in statuses.split()
    ]


@pytest.mark.parametrize("verdict", list(Verdict))
async def test_every_verdict_can_be_asked_for(verdict: Verdict) -> None:
    assert (await judged(f"# fake: verdict={verdict}")).verdict is verdict


async def test_equal_requests_get_equal_evaluations() -> None:
    assert await judged("# fake: time_us=7") == await judged("# fake: time_us=7")


async def test_a_submission_over_its_limit_times_out() -> None:
    runner = create()
    task = make_task(ranked_timeout=1)
    source = "# fake: seconds=1.5"
    call = await runner.start(make_request(task=task, source=source, mode=Mode.RANKED))
    evaluation = await asyncio.wait_for(runner.wait(call, lambda _: None), 5)
    assert evaluation.verdict is Verdict.TIMED_OUT


@pytest.mark.parametrize("directive", ["error=boom", "lost", "seconds=soon", "verdict=great"])
async def test_the_runner_fails_when_it_is_told_to_or_cannot_read(directive: str) -> None:
    with pytest.raises(RunnerError):
        await judged(f"# fake: {directive}")


async def test_a_lost_call_is_not_known_afterwards() -> None:
    runner = create()
    call = await runner.start(make_request(source="# fake: lost"))
    with pytest.raises(RunnerError, match="lost"):
        await runner.wait(call, lambda _: None)
    with pytest.raises(UnknownCallError):
        await runner.wait(call, lambda _: None)


async def test_progress_names_the_stages_in_order() -> None:
    steps: list[Progress] = []
    runner = create()
    call = await runner.start(make_request(source="# fake: seconds=0.03", mode=Mode.RANKED))
    await runner.wait(call, steps.append)
    assert [step.stage for step in steps] == [Stage.BUILD, Stage.TEST, Stage.TIMING]


async def running(runner: FakeRunner, seconds: float) -> CallId:
    return await runner.start(make_request(source=f"# fake: seconds={seconds}", gpu="B200"))


async def test_no_more_run_at_once_than_there_are_slots() -> None:
    runner = create(slots={"B200": 2})
    calls = [await running(runner, 0.05) for _ in range(4)]
    begun = asyncio.get_running_loop().time()
    await asyncio.gather(*(runner.wait(call, lambda _: None) for call in calls))
    assert 0.09 < asyncio.get_running_loop().time() - begun < 1
    assert (await runner.capabilities()).gpus == {"B200": 2}


async def test_a_gpu_type_that_it_was_not_given_is_refused() -> None:
    with pytest.raises(RunnerError, match="H100"):
        await create().start(make_request(gpu="H100"))


async def test_a_cancelled_call_ends_its_wait_and_frees_its_slot() -> None:
    runner = create(slots={"B200": 1})
    call = await running(runner, 60)
    waiting = asyncio.create_task(runner.wait(call, lambda _: None))
    await asyncio.sleep(0)
    await runner.cancel(call)
    with pytest.raises(RunnerError, match="cancelled"):
        await waiting
    await runner.wait(await running(runner, 0), lambda _: None)
    await runner.cancel(call)
    await runner.cancel(CallId("never was"))


async def test_closing_stops_every_call_and_refuses_more() -> None:
    runner = create(slots={"B200": 2})
    waiting = [
        asyncio.create_task(runner.wait(await running(runner, 60), lambda _: None))
        for _ in range(2)
    ]
    await asyncio.sleep(0)
    await runner.aclose()
    for each in waiting:
        with pytest.raises(RunnerError):
            await each
    with pytest.raises(RunnerError, match="closed"):
        await running(runner, 0)


async def test_calls_of_two_lives_have_different_names() -> None:
    assert await create().start(make_request()) != await create().start(make_request())
