"""The hand-over to a GPU's guest by words in shared memory; the guest is the test's own process."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from mmap import mmap
from typing import Protocol

import pytest
from typing_extensions import override

from runners.contract.evaluation import Limits
from runners.contract.verdict import Verdict
from runners.harness import handle as handling
from runners.harness.arena import READY, Arena, Words
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
from runners.harness.exchange import Exchange
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
RELEASED, DONE = 1, 2
"""Words of the test's own beside the first one: on a GPU they lie in its memory."""
KERNEL_S = 0.05
PATIENCE_S = 0.2

Behaviour = Callable[[socket.socket, Words], None]


class Start(Protocol):
    """Starts a guest; it queues its call, as one does that says READY, or leaves that out."""

    def __call__(self, behave: Behaviour, *, queues: bool = True) -> tuple[Handle, Words]: ...


class Crossing:
    """One turn by words in shared memory, in the place of a GPU's."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.turn = words.read(RELEASED) + 1
        self.patience_s = PATIENCE_S
        self.begin = self.end = 0

    def ready(self) -> bool:
        return self.words.read(READY) == self.turn

    def release(self) -> None:
        self.begin = time.perf_counter_ns()
        self.words.write(RELEASED, self.turn)

    def over(self) -> bool:
        if self.end == 0 and self.words.read(DONE) == self.turn:
            self.end = time.perf_counter_ns()
        return self.end > 0

    def window_ns(self) -> float:
        return float(self.end - self.begin)


class Impostor(Template):
    """Forks, in the place of a candidate, a guest that behaves as the test says."""

    def __init__(self, behave: Behaviour, *, queues: bool) -> None:
        self.behave = behave
        self.queues = queues

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
            turn = words.read(RELEASED) + 1
            if self.queues:
                words.write(READY, turn)
                while words.read(RELEASED) != turn:
                    os.sched_yield()
            self.behave(orders, words)


def done(words: Words) -> None:
    words.write(DONE, words.read(RELEASED))


def reply_to(orders: socket.socket, words: Words) -> None:
    told = ScalarNode(value=words.read(RELEASED))
    orders.sendall(encode(Reply(status=Status.DONE, output=told)))


def answer(orders: socket.socket, words: Words) -> None:
    time.sleep(KERNEL_S)
    done(words)
    reply_to(orders, words)


def answer_long_after(orders: socket.socket, words: Words) -> None:
    done(words)
    time.sleep(5 * KERNEL_S)
    reply_to(orders, words)


def answer_before_its_work_is_done(orders: socket.socket, words: Words) -> None:
    reply_to(orders, words)
    time.sleep(5 * KERNEL_S)
    done(words)


def answer_without_work(orders: socket.socket, words: Words) -> None:
    reply_to(orders, words)
    signal.pause()


def answer_twice(orders: socket.socket, words: Words) -> None:
    reply_to(orders, words)
    reply_to(orders, words)
    signal.pause()


def answer_late(orders: socket.socket, words: Words) -> None:
    """As one that waits for its input before it can queue anything."""
    turn = words.read(RELEASED) + 1
    while words.read(RELEASED) != turn:
        os.sched_yield()
    answer(orders, words)


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


def talk_nonsense(orders: socket.socket, words: Words) -> None:
    orders.sendall(b"nonsense")
    signal.pause()


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts guests, frozen as a seat leaves them."""
    monkeypatch.setattr(handling, "DYING_S", 0.2)
    monkeypatch.setattr(handling, "LATE_S", 0.5)
    handles: list[Handle] = []
    with Arena(ENLISTMENT.arena_size) as arena:

        def make(behave: Behaviour, *, queues: bool = True) -> tuple[Handle, Words]:
            handle = Handle(Impostor(behave, queues=queues), ENLISTMENT, [arena.fd])
            handles.append(handle)
            handle.process.freeze()
            return handle, arena.words

        yield make
        for handle in handles:
            handle.close()


def race(started: tuple[Handle, Words], seconds: float = 10) -> Exchange:
    handle, words = started
    return handle.race(RUN, Deadline.after(seconds), Crossing(words))


@pytest.mark.parametrize(
    ("behave", "window_s"),
    [
        (answer, KERNEL_S),
        (answer_long_after, 0.0),
        (answer_before_its_work_is_done, 5 * KERNEL_S),
    ],
)
def test_the_window_is_the_turns_own_whenever_the_reply_comes(
    start: Start, behave: Behaviour, window_s: float
) -> None:
    started = start(behave)

    exchange = race(started)

    assert window_s * 1e9 <= exchange.window_ns < (window_s + 4 * KERNEL_S) * 1e9
    assert exchange.reply.output == ScalarNode(value=1)
    assert not exchange.spoiled
    assert started[0].process.frozen


def test_every_race_is_a_turn_of_its_own(start: Start) -> None:
    started = start(answer)

    replies = [race(started).reply.output for _ in range(3)]

    assert replies == [ScalarNode(value=turn) for turn in (1, 2, 3)]


def test_who_does_not_queue_its_call_in_time_is_late_and_gets_its_input_nevertheless(
    start: Start,
) -> None:
    begin = time.monotonic()

    exchange = race(start(answer_late, queues=False))

    assert (exchange.late, exchange.spoiled) == (True, True)
    assert exchange.reply.output == ScalarNode(value=1)
    assert exchange.window_ns >= KERNEL_S * 1e9
    assert time.monotonic() - begin >= PATIENCE_S


def test_patience_does_not_reach_beyond_the_deadline(start: Start) -> None:
    handle, words = start(hang, queues=False)
    turn = Crossing(words)
    turn.patience_s = 60.0

    with pytest.raises(Ruling, match="time limit") as ruling:
        handle.race(RUN, Deadline.after(0.3), turn)

    assert ruling.value.verdict is Verdict.TIMED_OUT
    assert words.read(RELEASED) == 0


@pytest.mark.parametrize("behave", [answer_without_work, answer_twice])
def test_an_answer_whose_work_is_not_done_soon_is_refused(start: Start, behave: Behaviour) -> None:
    begin = time.monotonic()

    with pytest.raises(Ruling, match="answered before its work was done") as ruling:
        race(start(behave))

    assert ruling.value.verdict is Verdict.DISALLOWED
    assert time.monotonic() - begin < 5


def test_what_is_printed_meanwhile_is_kept(start: Start) -> None:
    started = start(print_and_answer)

    race(started)

    assert bytes(started[0].printed.text) == b"said\n"


@pytest.mark.parametrize(
    ("behave", "verdict", "words"),
    [
        (die, Verdict.CRASHED, "status 3"),
        (die_before_a_child, Verdict.CRASHED, "status 3"),
        (hang, Verdict.TIMED_OUT, "time limit"),
        (hang_up, Verdict.DISALLOWED, "closed its line"),
        (print_much, Verdict.OUTPUT_EXCEEDED, "64 KiB"),
        (raise_error, Verdict.CRASHED, "ValueError: no"),
        (talk_nonsense, Verdict.DISALLOWED, "no valid reply"),
    ],
)
@pytest.mark.parametrize("queues", [True, False])
def test_a_guest_that_fails_ends_the_spinning(
    *, start: Start, behave: Behaviour, verdict: Verdict, words: str, queues: bool
) -> None:
    with pytest.raises(Ruling, match=words) as ruling:
        race(start(behave, queues=queues), seconds=1)

    assert ruling.value.verdict is verdict


def test_an_answer_before_the_input_is_out_of_turn_and_the_input_is_not_released(
    start: Start,
) -> None:
    started = start(reply_to, queues=False)

    with pytest.raises(Ruling, match="out of turn") as ruling:
        race(started)

    assert ruling.value.verdict is Verdict.DISALLOWED
    assert started[1].read(RELEASED) == 0
