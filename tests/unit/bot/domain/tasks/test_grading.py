"""Which grader grades a task: what is decided before its check, and what the check decides."""

import pytest

from bot.domain.errors import UserError
from bot.domain.tasks import grading
from bot.domain.tasks.grading import (
    Basis,
    choose_grader,
    choose_later,
    not_run,
    script_hash,
    settle,
)
from bot.domain.tasks.lint import Finding, GraderComparison, Level, TaskReport
from bot.domain.tasks.task_file import ParsedTask, read_task
from runners.contract.task import Device, Grader
from tests.doubles.factories import make_task
from tests.unit.bot.domain.tasks.test_task_file import BASE, LAUNCHED, REFERENCE, make_bundle

SCRIPT = "import sys\n\nsys.exit(3)\n"
WITH_EVAL = BASE.replace("lang: py\n", "  - {name: eval.py, source: eval.py}\nlang: py\n")
NATIVE, POPCORN = Grader


def read(text: str = WITH_EVAL, grader: Grader | None = None, **files: str) -> ParsedTask:
    contents = {f"add/{name.replace('__', '.')}": content for name, content in files.items()}
    return read_task(make_bundle(text, **{"add/eval.py": SCRIPT, **contents}), grader=grader)


def known(monkeypatch: pytest.MonkeyPatch) -> ParsedTask:
    monkeypatch.setattr(grading, "ONE_CALL", frozenset({script_hash(SCRIPT)}))
    return read()


def test_six_public_scripts_that_were_read_are_known() -> None:
    assert len(grading.ONE_CALL) == 6
    assert {len(each) for each in grading.ONE_CALL} == {64}


def test_a_scripts_hash_does_not_depend_on_line_ends_and_trailing_blanks() -> None:
    plain = "a = 1\n\nb = '  '\n"
    assert len({script_hash(each) for each in (
        plain, plain.replace("\n", "\r\n"), plain.replace("\n", "\r"), "a = 1 \t\n  \nb = '  '",
        plain + "\n \n\n",
    )}) == 1  # fmt: skip
    assert script_hash(plain) != script_hash(plain.replace("'  '", "' '"))
    assert script_hash(plain) != script_hash("\n" + plain)
    assert script_hash("x\n") == "73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac"


@pytest.mark.parametrize(
    ("chosen", "basis", "why"),
    [
        (None, Basis.UNKNOWN, "The task's own eval.py grades: Podium does not know this program."),
        (POPCORN, Basis.CHOSEN, "The task's own eval.py grades: the task's creator chose so."),
        (
            NATIVE,
            Basis.CHOSEN,
            "Podium's judge grades, and eval.py is not run: the task's creator chose so.",
        ),
    ],
)
def test_an_unknown_program_grades_unless_its_creator_chooses(
    chosen: Grader | None, basis: Basis, why: str
) -> None:
    parsed = read(grader=chosen)
    assert (parsed.grading.basis, parsed.grading.why) == (basis, why)
    assert parsed.task.grader is parsed.grading.grader is (chosen or POPCORN)
    in_task_yml = read(WITH_EVAL + ("" if chosen is None else f"grader: {chosen}\n"))
    assert in_task_yml == parsed


def test_the_choice_when_publishing_overrides_the_one_in_task_yml() -> None:
    assert read(WITH_EVAL + "grader: native\n", grader=POPCORN).task.grader is POPCORN


def test_a_known_program_is_replaced_if_the_check_shows_that_both_agree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed = known(monkeypatch)
    assert (parsed.task.grader, parsed.grading.basis) == (NATIVE, Basis.KNOWN)
    other = parsed.grading.other_task(parsed.task)
    assert other is not None
    assert other == parsed.task.model_copy(update={"grader": POPCORN})


def test_the_device_of_each_grader_is_its_own() -> None:
    parsed = read(eval__py="x = torch.zeros(1).cuda()\n")
    other = parsed.grading.other_task(parsed.task)
    assert other is not None
    assert (parsed.task.device, other.device) == (Device.CUDA, Device.ANY)


def test_a_program_that_python_cannot_parse_is_refused_unless_it_is_not_run() -> None:
    with pytest.raises(UserError, match=r"^eval\.py:1: Python cannot parse this"):
        read(eval__py="def (:\n")
    chosen = read(grader=NATIVE, eval__py="def (:\n")
    assert chosen.task.grader is NATIVE
    assert chosen.grading.other_task(chosen.task) is not None


@pytest.mark.parametrize(
    ("text", "reference", "grader", "why"),
    [
        (BASE, REFERENCE, NATIVE, "Podium's judge grades, and eval.py is not run: 'eval.py' is"),
        (
            BASE + "config: {main: bench.py}\n",
            REFERENCE,
            NATIVE,
            "Podium's judge grades: the task has no evaluation program of its own.",
        ),
        (
            WITH_EVAL,
            "def generate_input(): ...\n",
            POPCORN,
            "The task's own eval.py grades, because Podium's judge cannot: reference.py must",
        ),
        (
            LAUNCHED,
            REFERENCE + "def ref_kernel(data): ...\n",
            NATIVE,
            "Podium's judge grades, and eval.py is not run: a task with a 'launch' needs grader",
        ),
    ],
)
def test_where_only_one_grader_can_grade_the_reason_is_given(
    text: str, reference: str, grader: Grader, why: str
) -> None:
    parsed = read(text, reference__py=reference)
    assert parsed.grading.why.startswith(why)
    assert (parsed.task.grader, parsed.grading.basis) == (grader, Basis.ONLY)
    assert parsed.grading.other_task(parsed.task) is None
    assert settle(parsed.task, parsed.grading, ()) == (parsed.task, parsed.grading)


def test_a_chosen_grader_that_cannot_grade_is_refused() -> None:
    with pytest.raises(UserError, match=r"reference\.py must define check_implementation"):
        read(grader=NATIVE, reference__py="def generate_input(): ...\n")
    with pytest.raises(UserError, match=r"'eval\.py' is not listed in files"):
        read(BASE, grader=POPCORN)


def report(*agreed: tuple[bool, bool], uncompared: str = "", obstacle: str = "") -> TaskReport:
    """A check by both graders: whether each solution is right, and whether they agree on it."""
    findings = tuple(
        Finding(Level.INFO, f"{n}.py", "", GraderComparison(right, "passed", "passed", agrees))
        for n, (right, agrees) in enumerate(agreed)
    )
    return TaskReport("add", "CPU", findings, obstacle, uncompared=uncompared)


RIGHT, WRONG = (True, True), (False, True)


def test_both_that_agree_on_a_right_and_a_wrong_solution_let_the_judge_replace_a_known_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed = known(monkeypatch)
    task, found = settle(parsed.task, parsed.grading, (report(RIGHT), report(WRONG, RIGHT)))
    assert task == parsed.task
    assert found.why.endswith(
        "as the judge does. Both agree on all solutions (2 correct, 1 wrong)."
    )


@pytest.mark.parametrize(
    ("reports", "why"),
    [
        ((), "no solution was run"),
        ((report(),), "no correct solution was run by both"),
        ((report(WRONG),), "no correct solution was run by both"),
        ((report(RIGHT),), "no wrong solution was run by both"),
        ((report(uncompared="missing the device cuda on CPU"),), "missing the device cuda on CPU"),
    ],
)
def test_a_known_program_that_was_not_compared_grades(
    reports: tuple[TaskReport, ...], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = known(monkeypatch)
    task, found = settle(parsed.task, parsed.grading, reports)
    assert (task.grader, found.grader, found.basis) == (POPCORN, POPCORN, Basis.ONLY)
    assert found.why == (
        "The task's own eval.py grades, because Podium's judge was not compared with it: "
        f"{why}. To have Podium's judge grade instead, choose the grader native."
    )


def test_a_known_program_that_ran_nowhere_is_not_judged_by_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed = known(monkeypatch)
    task, found = settle(parsed.task, parsed.grading, (report(obstacle="missing GPU type H100"),))
    assert (task, found.basis) == (parsed.task, Basis.KNOWN)


def test_a_difference_leaves_the_choice_to_the_creator(monkeypatch: pytest.MonkeyPatch) -> None:
    for parsed in (known(monkeypatch), read(eval__py="another = 1\n")):
        reports = (report(RIGHT, WRONG), report((True, False)))
        task, found = settle(parsed.task, parsed.grading, reports)
        assert task == parsed.task
        assert found.is_open
        assert found.why == (
            "Podium's judge and the task's own eval.py disagree, and the creator has not chosen "
            "which one grades."
        )


def test_a_choice_stands_and_says_what_was_compared() -> None:
    parsed = read(grader=NATIVE)
    task, found = settle(parsed.task, parsed.grading, (report((True, False)),))
    assert (task, found.is_open) == (parsed.task, False)
    assert found.why.endswith("eval.py disagree, as listed.")
    _, compared = settle(parsed.task, parsed.grading, (report(RIGHT, WRONG),))
    assert compared.why.endswith("Both agree on all solutions (1 correct, 1 wrong).")


def test_an_unknown_program_grades_also_if_both_agree() -> None:
    parsed = read()
    task, found = settle(parsed.task, parsed.grading, (report(RIGHT, WRONG),))
    assert task.grader is POPCORN
    assert "Both agree on all solutions (1 correct, 1 wrong). To have Podium's judge" in found.why
    _, alone = settle(parsed.task, parsed.grading, (report(RIGHT),))
    assert alone.why.endswith("were not compared: no wrong solution was run by both.")


def test_the_tasks_own_evaluation_is_named_if_it_does_not_run() -> None:
    files = {"eval.py": "", "bench.py": "", "reference.py": ""}
    task = make_task(files=files, config={"main": "bench.py"})
    assert not_run(task) == {"bench.py", "eval.py"}
    assert not_run(task.model_copy(update={"grader": POPCORN})) == frozenset()
    assert not_run(make_task(files={"reference.py": ""})) == frozenset()


def test_a_program_of_several_sources_is_named_by_the_tasks_own() -> None:
    faults = {NATIVE: "it cannot", POPCORN: ""}
    found = choose_grader(None, faults, "eval.cu", None)
    assert found.why == "The task's own eval.cu grades, because Podium's judge cannot: it cannot."


def test_a_later_choice_of_the_grader_that_grades_changes_the_reason_alone() -> None:
    parsed = read()

    task, grading = choose_later(parsed.task, parsed.grading, POPCORN)

    assert task == parsed.task
    assert grading.why == "The task's own eval.py grades: the task's creator chose so."
    assert (grading.grader, grading.basis, grading.other_device) == (POPCORN, Basis.CHOSEN, None)


def test_after_the_choice_of_podiums_judge_the_check_still_compares_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known_one, unknown_one = known(monkeypatch), read(eval__py=SCRIPT + "# another\n")
    for parsed in (known_one, unknown_one):
        task, grading = choose_later(parsed.task, parsed.grading, NATIVE)

        assert (task.grader, grading.grader) == (NATIVE, NATIVE)
        assert grading.why.startswith("Podium's judge grades, and eval.py is not run: the task's")
        assert grading.basis is Basis.CHOSEN
        assert grading.other_device is parsed.task.device
        other = grading.other_task(task)
        assert other is not None
        assert other.grader is POPCORN
