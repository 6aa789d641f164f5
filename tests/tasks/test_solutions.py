"""Every shipped solution gets its verdict from the real judge on this machine."""

from pathlib import Path

import pytest

from bot.domain.tasks.bundle import TaskBundle
from bot.domain.tasks.lint import Level, TaskReport
from bot.domain.tasks.scaffold import scaffold
from bot.domain.tasks.task_file import parse_task
from bot.services.publishing.check import check_task
from bot.store.task_folders import read_folder
from runners.backends.local_process import create

EXAMPLES = Path(__file__).parents[2] / "tasks" / "examples"
JUDGED = ("identity", "matmul")
"""Of the others `make demo` says whether each kernel gets its verdict, which takes two minutes."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


async def check(bundle: TaskBundle) -> TaskReport:
    runner = create()
    try:
        gpu = next(iter((await runner.capabilities()).gpus))
        return await check_task(runner, bundle, parse_task(bundle), gpu)
    finally:
        await runner.aclose()


@pytest.mark.parametrize("name", JUDGED)
async def test_an_example_passes_its_own_check(name: str) -> None:
    report = await check(read_folder(EXAMPLES / name))
    assert report.was_run
    assert [each for each in report.findings if each.level is not Level.INFO] == []
    skipped = [each.message for each in report.findings if "skipped" in each.message]
    assert all("needs triton" in message or "needs cuda" in message for message in skipped)


async def test_a_scaffolded_task_passes_its_own_check() -> None:
    files = {f"double/{path}": text.encode() for path, text in scaffold("double").items()}
    report = await check(TaskBundle(files, "double"))
    assert [each for each in report.findings if each.level is not Level.INFO] == []


async def test_a_task_whose_tolerance_lets_zeros_pass_is_refused() -> None:
    files = {f"double/{path}": text.encode() for path, text in scaffold("double").items()}
    reference = files["double/reference.py"]
    files["double/reference.py"] = reference.replace(b"<= 1e-6 * data.abs()", b"<= 100")
    assert files["double/reference.py"] != reference
    errors = [
        each.message
        for each in (await check(TaskBundle(files, "double"))).findings
        if each.level is Level.ERROR
    ]
    assert any("an answer of zeros passes every test" in message for message in errors)
    assert any("expected wrong answer" in message for message in errors)
