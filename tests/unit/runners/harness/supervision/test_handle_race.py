"""The two frames of a GPU's guest; it is the test's own process, its GPU words in memory."""

import itertools
import os
import select
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
from runners.harness.deadline import Deadline
from runners.harness.protocol.arena import Arena
from runners.harness.protocol.channel import (
    FRAME_MAX,
    CandidatePid,
    CandidateReady,
    CandidateReply,
    CandidateRequest,
    CandidateSpec,
    Exchange,
    Operation,
    SpareSpec,
    Status,
    encode,
)
from runners.harness.protocol.values import ScalarNode
from runners.harness.supervision import handle as handling
from runners.harness.supervision.handle import CandidateHandle
from runners.harness.supervision.spares import Spares
from runners.harness.supervision.template import TemplateProcess
from runners.harness.verdicts import VerdictError
from runners.languages import Recipe

ENLISTMENT = CandidateSpec(
    limits=Limits(memory=2 << 30),  # the guest is a fork of all of pytest
    threads=1,
    recipe=Recipe(language="py", submission_file="submission.py"),
    arena_size=1 << 20,
)
RUN = encode(CandidateRequest(operation=Operation.RUN, value=ScalarNode(value=5)))
RELEASED, DONE = 0, 1
"""Words at the head of the arena: on a GPU they lie in its memory."""
KERNEL_S = 0.05
PATIENCE_S = 0.2


class Words:
    """Two counters that both processes see."""

    def __init__(self, buffer: mmap) -> None:
        self.words = memoryview(buffer)[:64].cast("Q")

    def write(self, index: int, value: int) -> None:
        self.words[index] = value

    def read(self, index: int) -> int:
        return self.words[index]

    def await_release(self) -> None:
        """Wait, as a stream does, for the turn that comes next."""
        turn = self.read(DONE) + 1
        while self.read(RELEASED) != turn:
            os.sched_yield()


Behaviour = Callable[[socket.socket, Words], None]


class Start(Protocol):
    """Starts a guest; it says that its call is queued and awaits the input, or leaves that out."""

    def __call__(
        self, behave: Behaviour, *, queues: bool = True
    ) -> tuple[CandidateHandle, Words]: ...


class Crossing:
    """One turn by words in shared memory, in the place of a GPU's."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.turn = words.read(RELEASED) + 1
        self.patience_s = PATIENCE_S
        self.begin = self.end = 0
        self.first: list[CandidateReply | None] = []
        self.has_host_part, self.frozen_s = False, 0.0
        self.taken: list[CandidateReply] = []
        self.withheld = b""
        self.opens: Iterator[bool] = iter(())
        self.stages: Callable[[], object] = lambda: None

    def stage(self) -> None:
        assert not self.first
        self.stages()

    def queued(self, first: CandidateReply | None) -> None:
        assert self.words.read(RELEASED) < self.turn  # the window is not open yet
        self.first.append(first)

    def release(self) -> None:
        self.begin = time.perf_counter_ns()
        self.words.write(RELEASED, self.turn)

    def is_shown(self) -> bool:
        return next(self.opens, True)

    def take(self, last: CandidateReply) -> None:
        self.taken.append(last)

    def over(self) -> bool:
        if self.has_host_part and not self.taken:
            return False
        if self.end == 0 and self.words.read(DONE) == self.turn:
            self.end = time.perf_counter_ns()
        return self.end > 0

    def window_ns(self) -> float:
        return float(self.end - self.begin)

    def host_part_ns(self) -> float:
        return 5.0 if self.has_host_part else 0.0


class Impostor(TemplateProcess):
    """Forks, in the place of a candidate, a guest that behaves as the test says."""

    def __init__(self, behave: Behaviour, *, queues: bool) -> None:
        self.behave = behave
        self.queues = queues
        self.spares = Spares(self.fork_candidate)

    @override
    def fork_candidate(self, spec: CandidateSpec | SpareSpec, fds: list[int]) -> None:
        if os.fork() == 0:
            try:
                self._live(*fds)
            finally:
                os._exit(70)

    def _live(self, line: int, output: int, memory: int) -> None:
        os.dup2(output, 1)
        orders = socket.socket(fileno=line)
        orders.sendall(encode(CandidatePid(pid=os.getpid())))
        orders.sendall(encode(CandidateReady(layers=(), missing={})))
        words = Words(mmap(memory, ENLISTMENT.arena_size))
        while orders.recv(FRAME_MAX):
            if self.queues:
                say_queued(orders, words)
                words.await_release()
            self.behave(orders, words)


def say_queued(orders: socket.socket, words: Words) -> None:
    told = ScalarNode(value=f"queued {words.read(RELEASED)}")
    orders.sendall(encode(CandidateReply(status=Status.DONE, output=told)))


def done(words: Words) -> None:
    words.write(DONE, words.read(RELEASED))


def reply_to(orders: socket.socket, words: Words) -> None:
    told = ScalarNode(value=words.read(RELEASED))
    orders.sendall(encode(CandidateReply(status=Status.DONE, output=told)))


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


def answer_twice_at_once(orders: socket.socket, words: Words) -> None:
    """The second answer does not depend on whether the input is there by then."""
    second = ScalarNode(value=words.read(RELEASED))
    say_queued(orders, words)
    orders.sendall(encode(CandidateReply(status=Status.DONE, output=second)))
    signal.pause()


def answer_before_the_input(orders: socket.socket, words: Words) -> None:
    """Both frames at once; the work comes when it may."""
    say_queued(orders, words)
    reply_to(orders, words)
    words.await_release()
    done(words)


def answer_and_go_on(orders: socket.socket, words: Words) -> None:
    reply_to(orders, words)
    reply_to(orders, words)
    done(words)


def answer_late(orders: socket.socket, words: Words) -> None:
    """As one that waits for its input before it has queued all."""
    words.await_release()
    say_queued(orders, words)
    answer(orders, words)


def raise_late(orders: socket.socket, words: Words) -> None:
    words.await_release()
    done(words)
    raise_error(orders, words)


def say_queued_late_and_hang(orders: socket.socket, words: Words) -> None:
    words.await_release()
    say_queued(orders, words)
    done(words)
    signal.pause()


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
    orders.sendall(encode(CandidateReply(status=Status.RAISED, message="ValueError: no")))
    signal.pause()


def talk_nonsense(orders: socket.socket, words: Words) -> None:
    orders.sendall(b"nonsense")
    signal.pause()


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts guests, frozen as a seat leaves them."""
    monkeypatch.setattr(handling, "EXIT_S", 0.2)
    monkeypatch.setattr(handling, "LATE_S", 0.5)
    handles: list[CandidateHandle] = []
    with Arena(ENLISTMENT.arena_size) as arena:

        def make(behave: Behaviour, *, queues: bool = True) -> tuple[CandidateHandle, Words]:
            handle = CandidateHandle(Impostor(behave, queues=queues), ENLISTMENT, [arena.fd])
            handles.append(handle)
            handle.process.freeze()
            return handle, Words(arena.buffer)

        yield make
        for handle in handles:
            handle.close()


def race(
    started: tuple[CandidateHandle, Words], seconds: float = 10, turn: Crossing | None = None
) -> Exchange:
    handle, words = started
    return handle.call_on_device(RUN, Deadline.after(seconds), turn or Crossing(words))


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
    turn = Crossing(started[1])

    exchange = race(started, turn=turn)

    assert window_s * 1e9 <= exchange.window_ns < (window_s + 4 * KERNEL_S) * 1e9
    assert exchange.reply.output == ScalarNode(value=1)
    assert turn.first == [CandidateReply(status=Status.DONE, output=ScalarNode(value="queued 0"))]
    assert not exchange.late
    assert started[0].process.frozen


@pytest.mark.parametrize(
    ("behave", "window_s"),
    [(answer_long_after, 5 * KERNEL_S), (answer_before_its_work_is_done, 5 * KERNEL_S)],
)
def test_where_a_part_of_the_answer_is_told_the_window_lasts_until_that_was_taken(
    start: Start, behave: Behaviour, window_s: float
) -> None:
    started = start(behave)
    turn = Crossing(started[1])
    turn.has_host_part = True

    exchange = race(started, turn=turn)

    assert turn.taken == [exchange.reply]
    assert exchange.window_ns >= window_s * 1e9
    assert exchange.host_part_ns == 5.0
    assert started[0].process.frozen


def test_the_input_is_staged_while_the_candidate_queues_its_call(start: Start) -> None:
    handle, words = start(answer)
    turn = Crossing(words)
    queued: list[bool] = []
    turn.stages = lambda: queued.append(bool(select.select([handle.orders], [], [], 10)[0]))

    race((handle, words), turn=turn)

    assert queued == [True]


def test_a_part_of_the_answer_is_told_once(start: Start) -> None:
    started = start(answer_twice)
    turn = Crossing(started[1])
    turn.has_host_part = True

    with pytest.raises(VerdictError, match="answered before its work was done"):
        race(started, turn=turn)

    assert len(turn.taken) == 1


def test_every_race_is_a_turn_of_its_own(start: Start) -> None:
    started = start(answer)

    replies = [race(started).reply.output for _ in range(3)]

    assert replies == [ScalarNode(value=turn) for turn in (1, 2, 3)]


def test_who_does_not_queue_its_call_in_time_is_late_and_gets_its_input_nevertheless(
    start: Start,
) -> None:
    begin = time.monotonic()
    started = start(answer_late, queues=False)
    turn = Crossing(started[1])

    exchange = race(started, turn=turn)

    assert turn.first == [None]  # what it says afterwards is no news about where to look
    assert exchange.late
    assert exchange.reply.output == ScalarNode(value=1)  # by its last frame
    assert exchange.window_ns >= KERNEL_S * 1e9
    assert time.monotonic() - begin >= PATIENCE_S


def test_who_was_late_is_asked_again_as_any_other(start: Start) -> None:
    started = start(answer_late, queues=False)

    replies = [race(started).reply.output for _ in range(2)]

    assert replies == [ScalarNode(value=turn) for turn in (1, 2)]


@pytest.mark.parametrize(
    ("behave", "verdict", "words"),
    [
        (raise_late, Verdict.CRASHED, "ValueError: no"),
        (say_queued_late_and_hang, Verdict.TIMED_OUT, "time limit"),
    ],
)
def test_who_was_late_owes_both_frames(
    start: Start, behave: Behaviour, verdict: Verdict, words: str
) -> None:
    with pytest.raises(VerdictError, match=words) as ruling:
        race(start(behave, queues=False), seconds=1)

    assert ruling.value.verdict is verdict


@pytest.mark.parametrize(
    ("behave", "verdict", "words"),
    [
        (raise_error, Verdict.CRASHED, "ValueError: no"),
        (talk_nonsense, Verdict.DISALLOWED, "no valid reply"),
    ],
)
def test_a_first_frame_that_tells_of_a_failure_rules_before_the_input_is_released(
    start: Start, behave: Behaviour, verdict: Verdict, words: str
) -> None:
    started = start(behave, queues=False)
    turn = Crossing(started[1])
    turn.patience_s = 5.0
    begin = time.monotonic()

    with pytest.raises(VerdictError, match=words) as ruling:
        race(started, turn=turn)

    assert ruling.value.verdict is verdict
    assert (turn.first, started[1].read(RELEASED)) == ([], 0)
    assert time.monotonic() - begin < turn.patience_s / 2


def test_what_is_ruled_about_a_first_frame_ends_the_race_before_the_input_is_released(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise VerdictError(Verdict.WRONG_ANSWER, "the output has shape [4]")

    monkeypatch.setattr(Crossing, "queued", refuse)
    started = start(answer)

    with pytest.raises(VerdictError, match=r"shape \[4\]") as ruling:
        race(started)

    assert ruling.value.verdict is Verdict.WRONG_ANSWER
    assert started[1].read(RELEASED) == 0


def test_patience_that_ends_between_two_looks_is_over(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll for less than no time would wait until something happens, which may be never."""
    started = start(answer_late, queues=False)
    left = iter([1e-4, -1e-9, -1e-9])

    class Patience:
        @property
        def remaining(self) -> float:
            return next(left)

    waits: list[float] = []
    monkeypatch.setattr(CandidateHandle, "_poll_frame", lambda *args: waits.append(args[-1]))

    started[0]._until(lambda: False, Patience(), Deadline.after(3), PATIENCE_S)  # type: ignore[arg-type]

    assert waits == [1e-4]


def test_patience_does_not_reach_beyond_the_deadline(start: Start) -> None:
    handle, words = start(hang, queues=False)
    turn = Crossing(words)
    turn.patience_s = 60.0

    with pytest.raises(VerdictError, match="time limit") as ruling:
        handle.call_on_device(RUN, Deadline.after(0.3), turn)

    assert ruling.value.verdict is Verdict.TIMED_OUT
    assert words.read(RELEASED) == 0


@pytest.mark.parametrize("behave", [answer_without_work, answer_twice])
def test_an_answer_whose_work_is_not_done_soon_is_refused(start: Start, behave: Behaviour) -> None:
    begin = time.monotonic()

    with pytest.raises(VerdictError, match="answered before its work was done") as ruling:
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
        (hang_up, Verdict.DISALLOWED, "closed its socket"),
        (print_much, Verdict.OUTPUT_EXCEEDED, "64 KiB"),
        (raise_error, Verdict.CRASHED, "ValueError: no"),
        (talk_nonsense, Verdict.DISALLOWED, "no valid reply"),
    ],
)
@pytest.mark.parametrize("queues", [True, False])
def test_a_guest_that_fails_ends_the_spinning(
    *, start: Start, behave: Behaviour, verdict: Verdict, words: str, queues: bool
) -> None:
    with pytest.raises(VerdictError, match=words) as ruling:
        race(start(behave, queues=queues), seconds=1)

    assert ruling.value.verdict is verdict


def test_who_answers_before_its_input_is_there_gains_no_window_by_it(start: Start) -> None:
    started = start(answer_before_the_input, queues=False)
    turn = Crossing(started[1])

    exchange = race(started, turn=turn)

    assert turn.first == [CandidateReply(status=Status.DONE, output=ScalarNode(value="queued 0"))]
    assert exchange.reply.output in {ScalarNode(value=0), ScalarNode(value=1)}  # a slow one is late
    assert (exchange.late, turn.over()) == (False, True)


def test_a_frame_beyond_the_two_is_refused_at_the_next_order_at_the_latest(start: Start) -> None:
    started = start(answer_and_go_on)

    def two_races() -> None:
        for _ in range(2):
            race(started)

    with pytest.raises(VerdictError, match=r"without a request|before its work was done") as ruling:
        two_races()

    assert ruling.value.verdict is Verdict.DISALLOWED


def answer_by_its_scalars(orders: socket.socket, words: Words) -> None:
    """Work with what the judge sends once the window is open."""
    told = ScalarNode(value=orders.recv(FRAME_MAX).decode())
    done(words)
    orders.sendall(encode(CandidateReply(status=Status.DONE, output=told)))


def test_scalars_are_sent_when_the_window_is_open_and_not_before(start: Start) -> None:
    started = start(answer_by_its_scalars)
    turn = Crossing(started[1])
    turn.withheld, turn.opens = b"[6]", iter([False, False, True])

    exchange = race(started, turn=turn)

    assert next(turn.opens, None) is None  # it was asked until the window was open
    assert exchange.reply.output == ScalarNode(value="[6]")


def test_who_answers_before_its_scalars_are_sent_is_refused(start: Start) -> None:
    started = start(answer_without_work)
    turn = Crossing(started[1])
    turn.withheld, turn.opens = b"[6]", itertools.repeat(False)  # noqa: FBT003 - never open

    with pytest.raises(VerdictError, match="answered before its work was done") as refused:
        race(started, turn=turn)
    assert refused.value.verdict is Verdict.DISALLOWED


def test_a_window_that_does_not_open_is_not_awaited_beyond_the_deadline(start: Start) -> None:
    started = start(answer_by_its_scalars)
    turn = Crossing(started[1])
    turn.withheld, turn.opens = b"[6]", itertools.repeat(False)  # noqa: FBT003 - likewise

    with pytest.raises(VerdictError, match="time limit") as ended:
        race(started, seconds=0.5, turn=turn)
    assert ended.value.verdict is Verdict.TIMED_OUT


class FrozenCrossing(Crossing):
    """A turn whose work is already queued, so that it ends although its guest is frozen."""

    def __init__(self, words: Words, handle: CandidateHandle) -> None:
        super().__init__(words)
        self.frozen_s, self.ends = 60.0, True
        self.handle = handle
        self.was_frozen: list[bool] = []
        self.is_over: Iterator[bool] = iter(())

    @override
    def queued(self, first: CandidateReply | None) -> None:
        super().queued(first)
        self.was_frozen.append(self.handle.process.frozen)

    @override
    def release(self) -> None:
        self.was_frozen.append(self.handle.process.frozen)
        super().release()

    @override
    def over(self) -> bool:
        if not self.ends or not next(self.is_over, True):
            return False
        self.end = self.end or time.perf_counter_ns()
        return True


def test_while_a_train_runs_its_candidate_is_frozen(start: Start) -> None:
    handle, words = start(answer)
    turn = FrozenCrossing(words, handle)

    exchange = race((handle, words), turn=turn)

    assert turn.was_frozen == [True, True]
    assert not exchange.late
    assert exchange.reply.output == ScalarNode(value=1)
    assert handle.process.frozen


def test_a_call_that_needs_the_cpu_is_late_and_ends_after_its_candidate_runs_again(
    start: Start,
) -> None:
    started = start(answer)
    turn = Crossing(started[1])
    turn.frozen_s = 0.05

    exchange = race(started, turn=turn)

    assert exchange.late
    assert exchange.window_ns > 0.05e9
    assert exchange.reply.output == ScalarNode(value=1)


def test_a_late_train_runs_on_without_a_window(start: Start) -> None:
    handle, words = start(answer_late, queues=False)
    turn = FrozenCrossing(words, handle)

    assert race((handle, words), turn=turn).late
    assert turn.was_frozen == [False, False]


def test_a_candidate_that_answers_before_its_train_has_run_is_refused(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle, words = start(answer_twice_at_once, queues=False)
    turn = FrozenCrossing(words, handle)
    turn.ends = False
    freeze = handle.process.freeze

    def freeze_later() -> int:
        assert select.select([handle.orders], [], [], 10)[0]  # the second frame is there
        return freeze()

    monkeypatch.setattr(handle.process, "freeze", freeze_later)
    with pytest.raises(VerdictError, match="answered before its work was done") as refused:
        race((handle, words), turn=turn)
    assert refused.value.verdict is Verdict.DISALLOWED


def test_trusted_code_is_not_frozen_and_may_answer_before_its_train_is_over(start: Start) -> None:
    handle, words = start(answer_twice_at_once, queues=False)
    handle.process.may_run = True
    turn = FrozenCrossing(words, handle)
    turn.is_over = iter([False, False, True])

    assert race((handle, words), turn=turn).reply.output == ScalarNode(value=0)
    assert turn.was_frozen == [False, False]
