"""Boards open together, and only for tasks that were run."""

from dataclasses import replace
from datetime import timedelta

import pytest
from typing_extensions import override

from bot.domain.errors import UserError
from bot.domain.publication import Draft, PublishChange, PublishedDraft, PublishRequest
from bot.domain.tasks import grading
from bot.domain.tasks.bundle import TaskBundle
from bot.domain.tasks.grading import script_hash
from bot.domain.tasks.lint import Level
from bot.domain.tasks.scaffold import scaffold
from bot.domain.tasks.task_file import read_task
from bot.services.publishing.pipeline import Pipeline
from runners.backends.fake import FakeRunner, create
from runners.contract.evaluation import EvaluationRequest
from runners.contract.runner import CallId, Capabilities
from runners.contract.task import Grader, Mode
from tests.doubles.factories import make_capabilities
from tests.doubles.place import Place
from tests.doubles.task_zips import WITH_EVAL

REFUSED = "#!PODIUM expect wrong_answer\n# fake: verdict=wrong_answer\n"
CUDA_TEXT = scaffold("double")["task.yml"].replace("lang: py\n", "lang: py\ndevice: cuda\n")


def draft(place: Place, name: str, *gpus: str, **changes: str) -> Draft:
    """A task without degenerate answers to try, for the fake runner would let them pass."""
    files = {
        **scaffold(name),
        "solutions/correct/torch_add.py": "#!PODIUM needs mojo\n",
        "solutions/wrong/almost_two.py": REFUSED,
        **changes,
    }
    bundle = TaskBundle({f"{name}/{path}": text.encode() for path, text in files.items()}, name)
    return drafted(bundle, PublishRequest(place.ada, gpus=gpus))


def drafted(bundle: TaskBundle, request: PublishRequest) -> Draft:
    parsed = read_task(bundle, grader=request.grader)
    return Draft(bundle, parsed.task, request, parsed.grading)


async def release(
    place: Place, *drafts: Draft, runner: FakeRunner | None = None, unchecked: bool = False
) -> tuple[PublishedDraft, ...]:
    runner = runner or create()
    try:
        pipeline = Pipeline(place.store, place.clock, [runner], lambda words: None)
        return await pipeline.check_and_publish(drafts, unchecked=unchecked)
    finally:
        await runner.aclose()


async def boards(place: Place) -> list[str]:
    return [board.name for board in await place.store.boards.all()]


async def test_each_task_is_run_and_gets_its_board_for_the_gpus_that_are_here(place: Place) -> None:
    first, second = await release(place, draft(place, "double"), draft(place, "triple", "CPU"))
    assert first.published.change is second.published.change is PublishChange.CREATED
    assert [report.was_run for report in first.reports] == [True] * len(first.published.board.gpus)
    assert second.published.board.gpus == ("CPU",)


async def test_one_unsound_task_leaves_all_as_it_was(place: Place) -> None:
    before = await boards(place)
    lucky = draft(place, "triple", "CPU", **{"solutions/wrong/almost_two.py": "x = 1\n"})
    with pytest.raises(UserError, match=r"triple on CPU: \S+almost_two\.py: got passed"):
        await release(place, draft(place, "double", "CPU"), lucky)
    assert await boards(place) == before


async def test_one_task_of_somebody_else_leaves_all_as_it_was(place: Place) -> None:
    before = await boards(place)
    bob = await place.person("bob")
    theirs = draft(place, "vectoradd", "CPU")
    stolen = replace(theirs, request=PublishRequest(bob, gpus=("CPU",)))
    with pytest.raises(UserError, match="belongs to another person"):
        await release(place, draft(place, "double", "CPU"), stolen)
    assert await boards(place) == before


async def test_a_task_that_no_runner_can_run_opens_no_board_unless_somebody_vouches(
    place: Place,
) -> None:
    here = create(capabilities=Capabilities(harness_version="1", gpus={"CPU": 1}))
    wanted = draft(place, "double", "H100", **{"task.yml": CUDA_TEXT})
    with pytest.raises(
        UserError, match=r"^double: its solutions could not be run: missing GPU type H100;"
    ) as told:
        await release(place, wanted, runner=here)
    assert told.value.code == "not-dry-run"
    assert "double" not in await boards(place)
    (opened,) = await release(place, wanted, runner=here, unchecked=True)
    assert (opened.published.change, opened.reports) == (PublishChange.CREATED, ())
    assert (await place.store.audit.rows())[0].action == "publish-unchecked"


async def test_a_task_of_which_nothing_can_be_run_is_published_with_these_words(
    place: Place,
) -> None:
    files = scaffold("bare")
    text = files["task.yml"].replace("templates:\n  Python: template.py\n", "")
    kept = {"task.yml": text, **{name: files[name] for name in ("task.py", "reference.py")}}
    bundle = TaskBundle({f"bare/{path}": each.encode() for path, each in kept.items()}, "bare")
    (opened,) = await release(place, drafted(bundle, PublishRequest(place.ada, gpus=("CPU",))))
    assert opened.grading.endswith(
        "Nothing of the task was run: it has no solution and no template."
    )
    (other,) = await release(place, draft(place, "double", "CPU"))
    assert "Nothing of the task" not in other.grading


async def test_one_gpu_type_that_is_here_is_enough(place: Place) -> None:
    here = create(capabilities=Capabilities(harness_version="1", gpus={"CPU": 1}))
    (opened,) = await release(place, draft(place, "double", "CPU", "H100"), runner=here)
    assert [(each.gpu, each.was_run) for each in opened.reports] == [("CPU", True), ("H100", False)]


async def test_a_new_board_gets_only_gpu_types_that_fit_its_task(place: Place) -> None:
    here = create(capabilities=Capabilities(harness_version="1", gpus={"CPU": 1, "H100": 1}))
    await place.store.workers.announce("box", ("L4", "CPU"), timedelta(seconds=30))
    (opened,) = await release(place, draft(place, "double", **{"task.yml": CUDA_TEXT}), runner=here)
    assert opened.published.board.gpus == ("H100", "L4")
    assert [(each.gpu, each.was_run) for each in opened.reports] == [("H100", True), ("L4", False)]


async def test_nothing_is_stored_before_every_check_has_passed(place: Place) -> None:
    before, seen = await boards(place), []

    async def look(_: object) -> None:
        seen.append(await boards(place))

    runner = create()
    pipeline = Pipeline(place.store, place.clock, [runner], lambda words: None, before_publish=look)
    drafts = [draft(place, "double", "CPU"), draft(place, "triple", "CPU")]
    await pipeline.check_and_publish(drafts)
    await runner.aclose()
    assert seen == [before]
    assert len(await boards(place)) == len(before) + 2


async def test_a_state_of_the_task_is_run_once(place: Place) -> None:
    await release(place, draft(place, "double", "CPU"))
    (again,) = await release(place, draft(place, "double", "CPU"))
    assert (again.published.change, again.reports) == (PublishChange.UNCHANGED, ())


async def test_without_a_runner_nothing_is_published_that_nobody_vouches_for(place: Place) -> None:
    before = await boards(place)
    pipeline = Pipeline(place.store, place.clock, (), lambda words: None)
    with pytest.raises(UserError, match="double: no runner is available") as told:
        await pipeline.check_and_publish([draft(place, "double", "H100")])
    assert told.value.code == "no-runner"
    assert await boards(place) == before


NATIVE, POPCORN = Grader
EVAL = "import sys\n\nsys.exit(3)\n"
"""The runner does not run this eval.py; `TwoGraders` says what it and the judge find."""


class TwoGraders(FakeRunner):
    """Podium's judge is sharp; the task's own evaluation gives all solutions one verdict, or none.

    Both refuse what is in solutions/wrong, and the wrappers with a constant answer.
    """

    def __init__(self, own: str = "", graders: tuple[Grader, ...] = tuple(Grader)) -> None:
        super().__init__("fake", make_capabilities(graders=graders))
        self.own = own
        self.runs: list[tuple[Grader, Mode]] = []

    @override
    async def start(self, request: EvaluationRequest) -> CallId:
        self.runs.append((request.task.grader, request.mode))
        wrong = "_overwrite" in request.source or "expect wrong_answer" in request.source
        words = "verdict=wrong_answer" if wrong else "verdict=passed"
        if self.own and request.task.grader is POPCORN:
            words = self.own
        source = f"# fake: {words}\n{request.source}"
        return await super().start(request.model_copy(update={"source": source}))


def own_evaluation(
    place: Place, grader: Grader | None = None, *, without: str = "none", wrong: str = REFUSED
) -> Draft:
    """The scaffold's task with an eval.py of its own, and without some of its solutions."""
    files = scaffold("double") | {
        "task.yml": WITH_EVAL,
        "eval.py": EVAL,
        "solutions/wrong/almost_two.py": wrong,
    }
    kept = {path: text for path, text in files.items() if without not in path}
    bundle = TaskBundle({f"double/{path}": text.encode() for path, text in kept.items()}, "double")
    return drafted(bundle, PublishRequest(place.ada, gpus=("CPU",), grader=grader))


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task's eval.py is one that is known to time one call."""
    monkeypatch.setattr(grading, "ONE_CALL", frozenset({script_hash(EVAL)}))


async def stored_grader(place: Place, released: PublishedDraft) -> Grader:
    version = await place.store.boards.version(released.published.board.task_version)
    assert version is not None
    return version.definition.grader


CRASH = "verdict=crashed message=exited_with_status_3"


async def test_an_eval_py_that_always_fails_publishes_nothing_until_somebody_has_chosen(
    place: Place,
) -> None:
    before = await boards(place)
    with pytest.raises(UserError) as told:
        await release(place, own_evaluation(place), runner=TwoGraders(CRASH))
    assert told.value.code == "choose-grader"
    assert told.value.message.startswith(
        "Podium's judge and the task's own eval.py disagree, and the creator has not chosen which "
        "one grades. double on CPU: solutions/correct/torch_add.py: the graders disagree; Podium's "
        "judge: passed; the task's own evaluation: crashed (exited with status 3); expected: "
        "passed; nothing was published; choose which one grades: `grader: native`"
    )
    assert await boards(place) == before


@pytest.mark.usefixtures("known")
async def test_that_holds_for_an_eval_py_that_is_known_too(place: Place) -> None:
    with pytest.raises(UserError) as told:
        await release(place, own_evaluation(place), runner=TwoGraders(CRASH))
    assert told.value.code == "choose-grader"


async def test_with_the_creators_choice_the_difference_is_only_shown(place: Place) -> None:
    (done,) = await release(place, own_evaluation(place, NATIVE), runner=TwoGraders(CRASH))
    assert await stored_grader(place, done) is NATIVE
    assert done.grading == (
        "Podium's judge grades, and eval.py is not run: the task's creator chose so. Podium's "
        "judge and the task's own eval.py disagree, as listed."
    )
    (report,) = done.reports
    assert report.ok
    (warning,) = [each for each in report.findings if "disagree" in each.message]
    assert (warning.level, warning.file) == (Level.WARNING, "solutions/correct/torch_add.py")


@pytest.mark.parametrize("chosen", [NATIVE, POPCORN])
async def test_a_new_version_keeps_the_choice_for_its_board(place: Place, chosen: Grader) -> None:
    (done,) = await release(place, own_evaluation(place, chosen), runner=TwoGraders())
    board = done.published.board
    assert board.grader is chosen
    files = dict(own_evaluation(place).bundle.files)
    files["double/task.yml"] += b"seed: 5\n"
    changed = drafted(TaskBundle(files, "double"), PublishRequest(place.ada))
    (again,) = await release(place, changed, runner=TwoGraders())
    assert again.published.change is PublishChange.NEW_VERSION
    assert await stored_grader(place, again) is chosen
    assert "the task's creator chose so" in again.grading
    other = NATIVE if chosen is POPCORN else POPCORN
    decided = replace(changed, request=PublishRequest(place.ada, grader=other))
    (last,) = await release(place, decided, runner=TwoGraders())
    assert await stored_grader(place, last) is other
    assert last.published.board.grader is other


async def test_a_choice_does_not_hold_for_another_program(place: Place) -> None:
    (done,) = await release(place, own_evaluation(place, NATIVE), runner=TwoGraders())
    assert done.published.board.grader is NATIVE
    files = dict(own_evaluation(place).bundle.files)
    files["double/eval.py"] += b"# another one\n"
    changed = drafted(TaskBundle(files, "double"), PublishRequest(place.ada))
    (again,) = await release(place, changed, runner=TwoGraders())
    assert await stored_grader(place, again) is POPCORN
    assert again.published.board.grader is None
    assert again.grading.startswith("The task's own eval.py grades: Podium does not know")
    files["double/eval.py"] += b"# a third one\n"
    third = drafted(TaskBundle(files, "double"), PublishRequest(place.ada))
    with pytest.raises(UserError, match="the graders disagree") as refused:
        await release(place, third, runner=TwoGraders("verdict=crashed"))
    assert refused.value.code == "choose-grader"


async def test_the_choice_of_task_yml_is_newer_than_that_for_the_board(place: Place) -> None:
    await release(place, own_evaluation(place, NATIVE), runner=TwoGraders())
    files = dict(own_evaluation(place).bundle.files)
    files["double/task.yml"] += b"grader: popcorn\n"
    draft = drafted(TaskBundle(files, "double"), PublishRequest(place.ada))
    (done,) = await release(place, draft, runner=TwoGraders())
    assert await stored_grader(place, done) is POPCORN


async def test_a_choice_that_a_new_version_does_not_allow_is_not_needed(place: Place) -> None:
    await release(place, own_evaluation(place, POPCORN), runner=TwoGraders())
    files = scaffold("double") | {"solutions/wrong/almost_two.py": REFUSED}
    bundle = TaskBundle({f"double/{path}": text.encode() for path, text in files.items()}, "double")
    (done,) = await release(place, drafted(bundle, PublishRequest(place.ada)), runner=TwoGraders())
    assert await stored_grader(place, done) is NATIVE


async def test_a_chosen_eval_py_grades_and_is_compared_with_nothing(place: Place) -> None:
    runner = TwoGraders()
    (done,) = await release(place, own_evaluation(place, POPCORN), runner=runner)
    assert await stored_grader(place, done) is POPCORN
    assert {grader for grader, _ in runner.runs} == {POPCORN}


async def test_an_unknown_eval_py_grades_after_a_comparison(place: Place) -> None:
    runner = TwoGraders()
    (done,) = await release(place, own_evaluation(place), runner=runner)
    assert await stored_grader(place, done) is POPCORN
    assert "Both agree on all solutions (1 correct, 1 wrong)." in done.grading
    assert [each for each in runner.runs if each[0] is NATIVE] == [(NATIVE, Mode.RANKED)] * 2


@pytest.mark.usefixtures("known")
async def test_the_judge_replaces_a_known_eval_py_once_both_agree(place: Place) -> None:
    runner = TwoGraders()
    (done,) = await release(place, own_evaluation(place), runner=runner)
    assert await stored_grader(place, done) is NATIVE
    assert done.grading.endswith("Both agree on all solutions (1 correct, 1 wrong).")
    assert [each for each in runner.runs if each[0] is POPCORN] == [(POPCORN, Mode.RANKED)] * 2
    (again,) = await release(place, own_evaluation(place))
    assert (again.published.change, again.reports) == (PublishChange.UNCHANGED, ())


@pytest.mark.usefixtures("known")
async def test_a_known_eval_py_that_was_not_compared_checks_the_task_and_grades(
    place: Place,
) -> None:
    runner = TwoGraders()
    (done,) = await release(place, own_evaluation(place, without="solutions/wrong"), runner=runner)
    assert await stored_grader(place, done) is POPCORN
    assert "was not compared with it: no wrong solution was run by both." in done.grading
    (report,) = done.reports
    assert report.grading == done.grading
    assert (POPCORN, Mode.TEST) in runner.runs, "the constant answers of the grader that grades"
    same = own_evaluation(place, without="solutions/wrong")
    (again,) = await release(place, same, runner=TwoGraders())
    assert again.published.change is PublishChange.UNCHANGED
    other = replace(own_evaluation(place), request=PublishRequest(place.ada, "other", ("CPU",)))
    (unchecked,) = await release(place, other, unchecked=True)
    assert await stored_grader(place, unchecked) is POPCORN
    assert "no solution was run" in unchecked.grading


@pytest.mark.usefixtures("known")
async def test_where_an_eval_py_cannot_run_only_a_choice_publishes(place: Place) -> None:
    with pytest.raises(UserError, match="could not be run: missing grader popcorn") as told:
        await release(place, own_evaluation(place), runner=TwoGraders(graders=(NATIVE,)))
    assert told.value.code == "not-dry-run"
    assert told.value.message.startswith(
        "The task's own eval.py grades, because Podium's judge was not compared with it: missing "
        "grader popcorn on CPU. To have Podium's judge grade instead, choose the grader native. "
        "double: its solutions"
    )
    chosen = own_evaluation(place, NATIVE)
    (done,) = await release(place, chosen, runner=TwoGraders(graders=(NATIVE,)))
    assert await stored_grader(place, done) is NATIVE
    assert done.grading.endswith("were not compared: missing grader popcorn on CPU.")


async def test_a_solution_that_both_find_wrong_is_an_error_and_no_choice(place: Place) -> None:
    with pytest.raises(UserError, match="got passed, expected wrong answer; both graders") as told:
        await release(place, own_evaluation(place, wrong="x = 1\n"), runner=TwoGraders())
    assert told.value.code == "unsound-task"
