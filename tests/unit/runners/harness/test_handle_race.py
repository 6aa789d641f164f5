"""The hand-over by words in shared memory, with a process of the test's own as the GPU's guest."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from mmap import mmap

import pytest
from typing_extensions import override

from runners.contract.evaluation import Limits
from runners.contract.verdict import Verdict
from runners.harness import handle as handling
from runners.harness.arena import DONE, GO, READY, Arena, Words
from runners.harness.channel import (
    FRAME_MAX,
    Announcement,
    Enlistment,
    Operation,
    Order,
    Reply,
    Status,
    Welcome,
    encode,
)
from runners.harness.deadline import Deadline
from runners.harness.exchange import Exchange, Window
from runners.harness.handle import Handle
from runners.harness.ruling import Ruling
from runners.harness.template import Template
from runners.harness.values import ScalarNode

ENLISTMENT = Enlistment(
    limits=Limits(memory=2 << 30),  # the guest is a fork of all of pytest
    threads=1,
    language="python",
    submission_file="submission.py",
    arena_size=1 << 20,
)
RUN = encode(Order(operation=Operation.RUN, value=ScalarNode(value=5)))
NOTHING = Window(open=lambda: None, close=lambda: None)
KERNEL_S = 0.05

Behaviour = Callable[[socket.socket, Words], None]
Start = Callable[[Behaviour], tuple[Handle, Words]]


class Impostor(Template):
    """Forks, in the place of a candidate, a guest that behaves as the test says."""

    def __init__(self, behave: Behaviour) -> None:
        self.behave = behave

    @override
    def enlist(self, enlisted: Enlistment, fds: list[int]) -> None:
        if os.fork() == 0:
            try:
                self._live(*fds)
            finally:
                os._exit(70)

    def _live(self, line: int, output: int, memory: int) -> None:
        os.dup2(output, 1)
        orders = socket.socket(fileno=line)
        orders.sendall(encode(Announcement(pid=os.getpid())))
        orders.sendall(encode(Welcome(layers=(), missing={})))
        words = Words(mmap(memory, ENLISTMENT.arena_size))
        while orders.recv(FRAME_MAX):
            words.write(READY, words.read(GO) + 1)
            words.spin(GO, words.read(READY), lambda: None)
            self.behave(orders, words)


def done(words: Words) -> None:
    words.write(DONE, words.read(GO))


def answer(orders: socket.socket, words: Words) -> None:
    time.sleep(KERNEL_S)
    done(words)
    orders.sendall(encode(Reply(status=Status.DONE, output=ScalarNode(value=words.read(GO)))))


def die(orders: socket.socket, words: Words) -> None:
    os._exit(3)


def die_before_a_child(orders: socket.socket, words: Words) -> None:
    if os.fork() == 0:  # it holds the line open for longer than the race may last
        signal.alarm(3)
        signal.pause()
    os._exit(3)


def hang(orders: socket.socket, words: Words) -> None:
    signal.pause()


def hang_up(orders: socket.socket, words: Words) -> None:
    orders.close()
    signal.pause()


def print_much(orders: socket.socket, words: Words) -> None:
    os.write(1, b"x" * (ENLISTMENT.limits.output + 1))
    signal.pause()


def print_and_answer(orders: socket.socket, words: Words) -> None:
    os.write(1, b"said\n")
    time.sleep(0.3)  # so that the spinning judge looks
    answer(orders, words)


def raise_error(orders: socket.socket, words: Words) -> None:
    orders.sendall(encode(Reply(status=Status.RAISED, message="ValueError: no")))
    signal.pause()


def answer_before_its_turn(orders: socket.socket, words: Words) -> None:
    orders.sendall(encode(Reply(status=Status.DONE)))
    signal.pause()


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts guests, frozen as a seat leaves them."""
    monkeypatch.setattr(handling, "DYING_S", 0.2)
    handles: list[Handle] = []
    with Arena(ENLISTMENT.arena_size) as arena:

        def make(behave: Behaviour) -> tuple[Handle, Words]:
            handle = Handle(Impostor(behave), ENLISTMENT, [arena.fd])
            handles.append(handle)
            handle.process.freeze()
            return handle, arena.words

        yield make
        for handle in handles:
            handle.close()


def race(started: tuple[Handle, Words], window: Window = NOTHING, seconds: float = 10) -> Exchange:
    handle, words = started
    return handle.race(RUN, Deadline.after(seconds), window, words)


def test_the_window_lasts_from_the_input_to_the_captured_answer(start: Start) -> None:
    started = start(answer)
    seen: list[tuple[str, int, int]] = []

    def note(event: str) -> None:
        seen.append((event, started[1].read(GO), started[1].read(DONE)))
        time.sleep(0.03)

    window = Window(open=lambda: note("open"), close=lambda: note("close"))
    exchange = race(started, window)

    assert seen == [("open", 0, 0), ("close", 1, 1)]
    assert (KERNEL_S + 2 * 0.03) * 1e9 <= exchange.window_ns < 1e9
    assert started[0].process.frozen


def test_every_race_is_a_turn_of_its_own(start: Start) -> None:
    started = start(answer)

    replies = [race(started).reply.output for _ in range(3)]

    assert replies == [ScalarNode(value=turn) for turn in (1, 2, 3)]


def test_what_is_printed_meanwhile_is_kept(start: Start) -> None:
    started = start(print_and_answer)

    race(started)

    assert bytes(started[0].log) == b"said\n"


@pytest.mark.parametrize(
    ("behave", "verdict", "words"),
    [
        (die, Verdict.CRASHED, "status 3"),
        (die_before_a_child, Verdict.CRASHED, "status 3"),
        (hang, Verdict.TIMED_OUT, "time limit"),
        (hang_up, Verdict.DISALLOWED, "closed its line"),
        (print_much, Verdict.OUTPUT_EXCEEDED, "64 KiB"),
        (raise_error, Verdict.CRASHED, "ValueError: no"),
        (answer_before_its_turn, Verdict.DISALLOWED, "out of turn"),
    ],
)
def test_a_guest_that_fails_ends_the_spinning(
    start: Start, behave: Behaviour, verdict: Verdict, words: str
) -> None:
    with pytest.raises(Ruling, match=words) as ruling:
        race(start(behave), seconds=1)

    assert ruling.value.verdict is verdict
