"""Tests of reading in a process of its own."""

import asyncio
import os
import subprocess
import time

import pytest
from pydantic import Base64Bytes

from bot.domain.errors import UserError
from bot.domain.tasks.lint import parse_python
from bot.services.parser_process import BusyError, ParserProcess, TooHardError
from tests.doubles import launcher

FIELDS = 300_000
"""Of one f-string: a parser needs a minute for them."""


def number_of_process() -> int:
    return os.getpid()


def length(data: Base64Bytes, words: dict[str, int]) -> dict[str, int]:
    return {"bytes": len(data), **words}


def refused(words: str) -> None:
    raise UserError("bad-task", words)


def broken() -> None:
    raise LookupError("nobody has thought of this")


def parsed(text: str) -> None:
    parse_python(text, "reference.py")


def filled(size: int) -> int:
    return len(bytearray(size))


def environment() -> list[str]:
    return [*os.environ, *(each for each in os.listdir("/proc/self/fd") if int(each) > 3)]  # noqa: PTH208


def test_nothing_of_ours_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """No environment, and no file but its line and the folder that is being listed."""
    monkeypatch.setattr(subprocess, "_fork_exec", launcher._fork_exec)  # begun by the interpreter
    found = asyncio.run(ParserProcess(10, 60).call(environment))
    assert [each for each in found if each != "LC_CTYPE"] == []


async def test_what_is_read_comes_from_another_process_which_stays() -> None:
    process = ParserProcess(10, 60)
    numbers = {await process.call(number_of_process) for _ in range(3)}
    assert len(numbers) == 1
    assert os.getpid() not in numbers
    assert await process.call(length, b"\0\xff" * 1000, {"a": 1}) == {"bytes": 2000, "a": 1}


async def test_a_refusal_is_a_refusal_and_a_bug_is_a_bug() -> None:
    process = ParserProcess(10, 60)
    with pytest.raises(UserError, match="line 3") as error:
        await process.call(refused, "line 3")
    assert error.value.code == "bad-task"
    with pytest.raises(RuntimeError, match="nobody has thought of this"):
        await process.call(broken)
    assert await process.call(filled, 10) == 10


async def test_what_takes_too_long_is_killed_and_the_loop_goes_on_meanwhile() -> None:
    process, turns = ParserProcess(0.5, 60), 0
    text = 'x = f"' + "{a}" * FIELDS + '"\n'
    began = time.process_time()
    reading = asyncio.create_task(process.call(parsed, text))
    while not reading.done():
        await asyncio.sleep(0.01)
        turns += 1
    with pytest.raises(TooHardError, match="make it smaller"):
        await reading
    assert turns > 10
    assert time.process_time() - began < 0.5, "this process has parsed nothing"
    assert await process.call(filled, 1) == 1, "the next one has a new process"


async def test_what_needs_too_much_memory_is_refused() -> None:
    process = ParserProcess(10, 60)
    with pytest.raises(TooHardError):
        await process.call(filled, 4 << 30)
    with pytest.raises(UserError):
        await process.call(parsed, "a;" * 4_000_000)
    assert await process.call(filled, 1) == 1


async def test_who_has_no_turn_is_asked_to_come_again() -> None:
    process = ParserProcess(0.5, 60)
    await process.call(parsed, "")
    process.patience_s = 1.0
    text = 'x = f"' + "{a}" * FIELDS + '"\n'
    waiting = [asyncio.create_task(process.call(parsed, text)) for _ in range(6)]
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(each) for each in found} == {TooHardError, BusyError}
