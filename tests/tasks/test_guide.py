"""The author's guide shows a task that is one, and names every key."""

import re
from pathlib import Path

import pytest

from bot.domain.tasks.bundle import TaskBundle, solutions
from bot.domain.tasks.lint import Level, lint
from bot.domain.tasks.schema import TaskYaml
from bot.domain.tasks.task_file import parse_task, read_task
from bot.services.publishing.check import check_task
from runners.backends.local_process import create
from runners.contract.task import Grader

GUIDE = Path(__file__).parents[2] / "tasks" / "README.md"
BLOCK = re.compile(
    r"^```(?:yaml|python)\n# (?P<name>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


def make_bundle() -> TaskBundle:
    found = {each["name"]: each["text"].encode() for each in BLOCK.finditer(GUIDE.read_text())}
    return TaskBundle({f"scale/{name}": text for name, text in found.items()}, "scale")


def test_the_example_of_the_guide_is_a_task_without_a_remark() -> None:
    bundle = make_bundle()
    task = parse_task(bundle)
    shipped = solutions(bundle)
    assert [each.name for each in shipped] == [
        "solutions/correct/torch_mul.py",
        "solutions/wrong/doubles.py",
    ]
    assert lint(task, shipped) == ()


def test_the_guide_names_every_key_and_no_other() -> None:
    table = GUIDE.read_text().split("## The keys of task.yml")[1].split("## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = {key for row in rows for key in re.findall(r"`(\w+)`", row)}
    assert named == set(TaskYaml.model_fields)


def test_the_guide_draws_files_that_exist() -> None:
    for path in ("examples.yaml", "examples/utils.py", "examples/vectoradd/reference.py"):
        assert (GUIDE.parent / path).is_file()


@pytest.mark.slow
async def test_the_example_of_the_guide_passes_its_check() -> None:
    bundle = make_bundle()
    runner = create()
    try:
        gpu = next(iter((await runner.capabilities()).gpus))
        report = await check_task(runner, bundle, parse_task(bundle), gpu)
    finally:
        await runner.aclose()
    assert [each for each in report.findings if each.level is not Level.INFO] == []


EVALUATION = re.compile(r"^```python\n(?P<text>import os\n.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
async def test_the_evaluation_of_the_guide_agrees_with_the_judge() -> None:
    found = EVALUATION.search(GUIDE.read_text())
    assert found is not None
    files = dict(make_bundle().files)
    named = b"  - {name: eval.py, source: eval.py}\nlang: py\n"
    files["scale/task.yml"] = files["scale/task.yml"].replace(b"lang: py\n", named)
    bundle = TaskBundle({**files, "scale/eval.py": found["text"].encode()}, "scale")
    parsed = read_task(bundle)
    runner = create()
    try:
        gpu = next(iter((await runner.capabilities()).gpus))
        report = await check_task(runner, bundle, parsed.task, gpu, grading=parsed.grading)
    finally:
        await runner.aclose()
    assert parsed.task.grader is Grader.POPCORN
    assert [each for each in report.findings if each.level is not Level.INFO] == []
    assert [each.agrees for each in report.comparisons] == [True, True]
