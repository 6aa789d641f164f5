"""A scaffolded task is a task from its first moment."""

import pytest

from bot.domain.errors import UserError
from bot.domain.tasks.bundle import TaskBundle, solutions
from bot.domain.tasks.lint import lint
from bot.domain.tasks.scaffold import scaffold
from bot.domain.tasks.task_file import parse_task
from runners.contract.task import Device, Grader
from runners.contract.verdict import Verdict


def make_bundle(name: str) -> TaskBundle:
    return TaskBundle(
        {f"{name}/{path}": text.encode() for path, text in scaffold(name).items()}, name
    )


def test_a_scaffolded_task_parses_without_a_remark() -> None:
    bundle = make_bundle("vector-double")
    task = parse_task(bundle)
    assert task.name == "vector-double"
    assert (task.grader, task.device) == (Grader.NATIVE, Device.ANY)
    assert task.files["template.py"].startswith("#!PODIUM leaderboard vector-double\n")
    assert {each.expect for each in solutions(bundle)} == {Verdict.PASSED, Verdict.WRONG_ANSWER}
    assert lint(task, solutions(bundle)) == ()


@pytest.mark.parametrize("name", ["", "Vector", "../x", "a b", "x" * 65, "x\n"])
def test_a_name_that_cannot_be_one_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="not a valid task name"):
        scaffold(name)
