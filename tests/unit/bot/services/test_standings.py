import pytest

from bot.domain.board import Access, SourceVisibility, Viewer
from bot.domain.errors import UserError
from bot.domain.publication import PublishRequest
from bot.services import standings
from bot.services.moderation import withdraw
from bot.services.publishing.publish import publish
from bot.services.standings import board_standings, opening_gpu, ranks_at
from runners.contract.evaluation import CaseKind, CaseResult, CaseStatus
from runners.contract.task import Grader
from runners.contract.verdict import Stage, Verdict
from tests.doubles.factories import (
    make_case,
    make_evaluation,
    make_measurement,
    make_noisy_case,
    make_task,
)
from tests.doubles.place import Place


async def ran(place: Place, name: str, time_ns: float) -> None:
    case = make_case(CaseKind.BENCHMARK, measurement=make_measurement(time_ns, 0))
    await place.judged(await place.submit(await place.person(name)), cases=(case,))


async def failed(place: Place, name: str, verdict: Verdict, **changes: object) -> None:
    submission = await place.submit(await place.person(name))
    await place.judged(submission, verdict=verdict, **changes)


async def test_people_are_ranked_by_their_best_time(place: Place) -> None:
    await ran(place, "bob", 300)
    await ran(place, "ada", 200)
    await ran(place, "bob", 100)
    (board,) = await board_standings(place.store, Viewer(place.ada), "vectoradd")
    lines = [(each.rank, each.score.person_name, each.attempts) for each in board.entries]
    assert lines == [(1, "bob", 2), (2, "ada", 1)]
    assert (board.gpu, board.version, board.refused) == ("CPU", 1, ())


async def test_the_absent_are_listed_once_with_their_latest_reason(place: Place) -> None:
    await ran(place, "bob", 300)
    await failed(place, "bob", Verdict.CRASHED)
    await failed(place, "eve", Verdict.CRASHED, message="first")
    await failed(place, "eve", Verdict.BUILD_FAILED, message="line 3", stage=Stage.BUILD)
    (board,) = await board_standings(place.store, Viewer(place.ada, sees_all=True), "vectoradd")
    refused = [(each.person_name, each.verdict, each.message) for each in board.refused]
    assert refused == [("eve", "build_failed", "line 3")]


async def test_who_passed_too_noisily_is_not_ranked_until_a_run_is(place: Place) -> None:
    async def listed() -> list[tuple[str, str, str]]:
        (board,) = await board_standings(place.store, Viewer(place.ada), "vectoradd")
        return [(each.person_name, each.verdict, each.message) for each in board.refused]

    noisy = ("eve", "passed", "passed, but too noisy to be ranked")
    await failed(place, "eve", Verdict.CRASHED, stage=Stage.TEST, message="line 3")
    await failed(place, "eve", Verdict.PASSED, cases=(make_noisy_case(),))
    assert await listed() == [noisy]
    submission = await place.submit(await place.person("eve"))
    await place.judged(submission)
    await failed(place, "eve", Verdict.PASSED, cases=(make_noisy_case(),))
    assert await listed() == []
    await withdraw(place.store, Viewer(await place.person("eve")), "", submission.id)
    assert await listed() == [noisy]


async def test_only_admins_read_the_exceptions_of_other_people(place: Place) -> None:
    await failed(place, "eve", Verdict.BUILD_FAILED, message="name 'trick'", stage=Stage.BUILD)
    await failed(place, "kay", Verdict.WRONG_ANSWER, message="1 differs", stage=Stage.TEST)
    admin = Viewer(place.ada, sees_all=True)
    for source in SourceVisibility:
        await place.store.boards.restrict(place.board.id, Access(source=source))
        for viewer, words in ((Viewer(place.ada), ""), (admin, "name 'trick'")):
            (board,) = await board_standings(place.store, viewer, "vectoradd")
            told = {each.person_name: each.message for each in board.refused}
            assert told == {"eve": words, "kay": "1 differs"}
            assert board.quotes == bool(words)


async def test_a_board_that_its_own_evaluation_times_says_so(place: Place) -> None:
    task = make_task(
        name="own", files={"reference.py": "", "eval.py": "print()\n"}, grader=Grader.POPCORN
    )
    await publish(
        place.store,
        place.clock,
        PublishRequest(place.ada, gpus=("CPU",)),
        task,
    )
    viewer = Viewer(place.ada)
    assert (await board_standings(place.store, viewer, "own"))[0].in_process
    assert not (await board_standings(place.store, viewer, "vectoradd"))[0].in_process


async def test_two_people_of_the_same_name_are_two_people(place: Place) -> None:
    await ran(place, "bob", 300)
    other = (await place.store.people.ensure("discord:7", "bob")).id
    await place.judged(await place.submit(other), verdict=Verdict.CRASHED)
    (board,) = await board_standings(place.store, Viewer(place.ada), "vectoradd")
    assert [each.person_name for each in board.refused] == ["bob (@discord:7)"]


async def test_the_reason_of_a_secret_run_tells_nothing_of_its_inputs(place: Place) -> None:
    hidden = "seed 4711"
    case = CaseResult(
        spec=hidden, kind=CaseKind.BENCHMARK, status=CaseStatus.FAILED, message=hidden
    )
    await failed(
        place,
        "eve",
        Verdict.WRONG_ANSWER,
        message=hidden,
        stage=Stage.TIMING,
        cases=(case,),
    )
    (board,) = await board_standings(place.store, Viewer(place.ada), "vectoradd")
    assert board.refused[0].message == "wrong_answer at benchmark 1 of the ranked run"


async def test_versions_of_a_task_are_kept_apart(place: Place) -> None:
    await ran(place, "bob", 300)
    changed = make_task(description="Add them faster.", gpus=())
    await publish(place.store, place.clock, PublishRequest(place.ada), changed)
    (now,) = await board_standings(place.store, Viewer(place.ada), "vectoradd")
    (before,) = await board_standings(place.store, Viewer(place.ada), "vectoradd", "CPU", version=1)
    assert (now.version, len(now.entries)) == (2, 0)
    assert (before.version, len(before.entries)) == (1, 1)


async def test_a_gpu_type_may_be_spelled_in_any_case(place: Place) -> None:
    (board,) = await board_standings(place.store, Viewer(place.ada), "vectoradd", "cpu")
    assert board.gpu == "CPU"


async def test_each_gpu_type_has_its_own_standings(place: Place) -> None:
    await place.store.boards.configure(place.board.id, ("CPU", "H100"), None)
    await place.judged(await place.submit(gpus=("CPU",)))
    cpu, h100 = await board_standings(place.store, Viewer(place.ada), "vectoradd")
    assert (cpu.gpu, len(cpu.entries)) == ("CPU", 1)
    assert (h100.gpu, len(h100.entries)) == ("H100", 0)


async def test_the_viewers_gpu_type_opens_first_or_else_the_one_with_most_people(
    place: Place,
) -> None:
    await place.store.boards.configure(place.board.id, ("CPU", "H100", "L4"), None)
    for name, gpu in (("ada", "CPU"), ("bob", "L4"), ("eve", "L4")):
        await place.judged(await place.submit(await place.person(name), gpus=(gpu,)))
    opened = {
        name: await opening_gpu(place.store, Viewer(await place.person(name)), "vectoradd")
        for name in ("ada", "bob", "new")
    }
    assert opened == {"ada": "CPU", "bob": "L4", "new": "L4"}


@pytest.mark.parametrize(
    ("name", "gpu", "version", "code"),
    [
        ("vectorad", None, None, "unknown-board"),
        ("vectoradd", "H100", None, "unknown-gpu"),
        ("vectoradd", None, 7, "unknown-version"),
    ],
)
async def test_a_wrong_name_is_refused(
    place: Place, name: str, gpu: str | None, version: int | None, code: str
) -> None:
    with pytest.raises(UserError, match=r"available|did you mean") as refusal:
        await board_standings(place.store, Viewer(place.ada), name, gpu, version=version)
    assert refusal.value.code == code


async def test_who_failed_on_several_gpus_is_told_of_each_why(place: Place) -> None:
    gpus = ("H100", "CPU")
    await publish(place.store, place.clock, PublishRequest(place.ada, gpus=gpus), make_task())
    submission = await place.submit(gpus=gpus)
    for gpu, verdict in zip(gpus, (Verdict.WRONG_ANSWER, Verdict.TIMED_OUT), strict=True):
        job = await place.claim(gpu=gpu)
        failed_there = make_evaluation(
            verdict=verdict, stage=Stage.TIMING, mode=submission.mode, gpu=gpu
        )
        assert await place.store.jobs.accept(job.id, job.fence, failed_there, None)
    boards = await board_standings(place.store, Viewer(place.ada), "vectoradd")
    assert {board.gpu: [each.message for each in board.refused] for board in boards} == {
        "CPU": ["timed_out in the ranked run"],
        "H100": ["wrong_answer in the ranked run"],
    }


async def test_the_ranks_at_a_moment_are_those_of_the_best_times_at_that_moment(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ran(place, "bob", 300)
    await ran(place, "ada", 200)
    place.clock.advance(3600)
    moment = place.clock.now()
    place.clock.advance(3600)
    await ran(place, "bob", 100)
    await ran(place, "eve", 50)
    (board,) = await board_standings(place.store, Viewer(place.ada), "vectoradd")
    assert [each.score.person_name for each in board.entries] == ["eve", "bob", "ada"]
    bob = await place.person("bob")
    assert await ranks_at(place.store, board.entries, moment) == {place.ada: 1, bob: 2}
    monkeypatch.setattr(standings, "MOST_CHANGED", 1)
    assert await ranks_at(place.store, board.entries, moment) is None
