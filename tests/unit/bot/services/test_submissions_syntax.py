import asyncio
from datetime import timedelta

import pytest

from bot.domain.errors import UserError
from bot.services import submissions as syntax
from bot.services.parser_process import ParserProcess
from bot.services.submissions import PARSER_VERSION, check_syntax, fault_of
from runners.contract.evaluation import CPU
from tests.doubles.factories import make_capabilities, make_task
from tests.doubles.place import Place

BROKEN = "import torch\n\ndef custom_kernel(data):\n    return (\n"
LEASE = timedelta(seconds=30)
SAID = "'(' was never closed (line 4)"


async def offer(place: Place, **pythons: str) -> None:
    """Have a worker at work with one runner for each Python."""
    offers = {name: make_capabilities(python=each) for name, each in pythons.items()}
    await place.store.workers.announce("w", [CPU], LEASE, offers)


async def test_what_is_wrong_is_told_with_its_line() -> None:
    assert await fault_of(BROKEN) == SAID
    assert await fault_of("x = 1\n") is None


async def test_it_is_refused_where_the_runners_python_is_no_newer(place: Place) -> None:
    await offer(place, local=f"{PARSER_VERSION[0]}.{PARSER_VERSION[1]}.7", old="3.9.2")
    with pytest.raises(UserError, match="was never closed") as refusal:
        await place.submit(content=BROKEN.encode())
    assert refusal.value.code == "syntax-error"
    assert await place.store.submissions.history(place.ada) == ()


@pytest.mark.parametrize("newer", ["3.99.0", ""])
async def test_it_is_taken_with_a_warning_where_a_newer_python_may_run_it(
    place: Place, newer: str
) -> None:
    await offer(place, local=f"{PARSER_VERSION[0]}.{PARSER_VERSION[1]}.7", other=newer)
    submission = await place.submit(content=BROKEN.encode())
    assert SAID in submission.warning
    stored = await place.store.submissions.get(submission.id)
    assert stored is not None
    assert stored.warning == submission.warning


async def test_without_a_runner_at_work_it_is_a_warning(place: Place) -> None:
    assert SAID in await check_syntax(place.store, BROKEN, [CPU])


async def test_runners_of_other_gpus_do_not_count(place: Place) -> None:
    offers = {"far": make_capabilities(python="3.99.0", gpus={"H100": 1})}
    await place.store.workers.announce("far", ["H100"], LEASE, offers)
    await offer(place, local="3.11.0")
    with pytest.raises(UserError, match="not valid Python"):
        await check_syntax(place.store, BROKEN, [CPU])


async def test_cuda_is_not_read_as_python(place: Place) -> None:
    task = make_task(lang="cu", files={}, submission_file="submission.cu")
    await place.store.boards.add_version(place.board.id, task, "other")
    submission = await place.submit(file_name="k.cu", content=b"__global__ void f() {}")
    assert submission.warning == ""


@pytest.mark.parametrize(
    "source",
    [
        "x = f'" + "{a}" * 60_000 + "'\n",
        "x = " + "[" * 150 + "1" + "]" * 150 + "\n" * 10 + "x = 1" + " + 1" * 240_000,
        "# coding: utf-16\n" + "x" * 900_000,
    ],
)
async def test_what_the_parser_takes_long_for_holds_up_nobody(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syntax, "SOURCES", ParserProcess(0.2, 60))
    others = 0
    asked = asyncio.create_task(fault_of(source))
    while not asked.done():
        await asyncio.sleep(0)
        others += 1
    assert others > 10
    await asked
