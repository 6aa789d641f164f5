import os
from collections.abc import Iterator

import pytest

from runners.contract.verdict import Verdict
from runners.harness.supervision.process import OutputPipe
from runners.harness.verdicts import VerdictError


@pytest.fixture
def printed() -> Iterator[OutputPipe]:
    made = OutputPipe(2048)
    yield made
    made.close()
    made.close()


def test_what_is_there_is_read_and_nothing_is_waited_for(printed: OutputPipe) -> None:
    printed.drain()
    for text in (b"one ", b"two"):
        os.write(printed.writer, text)
        printed.drain()

    assert (bytes(printed.text), printed.ended) == (b"one two", False)


def test_the_end_is_noted_and_what_came_before_it_is_kept(printed: OutputPipe) -> None:
    os.write(printed.writer, b"last")
    printed.close_writer()
    for _ in range(2):
        printed.drain()

    assert (bytes(printed.text), printed.ended) == (b"last", True)


def test_as_much_as_the_limit_may_be_printed_and_no_byte_more(printed: OutputPipe) -> None:
    os.write(printed.writer, b"x" * 2048)
    printed.drain()
    os.write(printed.writer, b"y")

    with pytest.raises(VerdictError, match="more than 2 KiB were written") as ruling:
        printed.drain()

    assert ruling.value.verdict is Verdict.OUTPUT_EXCEEDED
    assert bytes(printed.text) == b"x" * 2048
