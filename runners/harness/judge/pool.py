"""Pools of fresh candidates on the task's device; several candidates start at once."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from typing import Self

from runners.contract.task import IsolationLayer
from runners.contract.verdict import Verdict
from runners.harness.gpu.buffers import Buffers, max_parallel_candidates, max_spares
from runners.harness.gpu.host_input import HostInput
from runners.harness.gpu.memory import ignoring_broken_context
from runners.harness.judge.device_candidate import DeviceCandidate
from runners.harness.judge.host_candidate import TOO_LARGE, HostCandidate, threads_of
from runners.harness.judge.session import EvaluationSession
from runners.harness.protocol import arena, channel, scalars, values
from runners.harness.supervision.handle import CandidateHandle
from runners.harness.verdicts import VerdictError
from runners.languages import Recipe

READY_INPUTS = 16
"""Of how many inputs the memory is that a candidate on the CPU can allocate without page faults.

Calls of one kernel differed by a factor of four otherwise, by how many new pages they touched.
"""


class CandidatePool:
    """Fresh candidates for inputs like `plan` and outputs like `expected`, each used once.

    Candidates start in parallel because starting one on a GPU takes about 150 ms. Timing begins
    only after all of them are frozen; none has loaded the submission by then. A killed candidate
    exits while the next one starts, also to save time.
    """

    def __init__(
        self, session: EvaluationSession, plan: arena.Plan, expected: values.Node | None
    ) -> None:
        self.session = session
        self.plan = plan
        self.expected = expected
        self.varies = False
        """Whether the structure of outputs is not `expected` because it depends on the input."""
        self.places = 0
        """How many places for trains each candidate has."""
        self.starting: deque[tuple[ExitStack, Callable[[], HostCandidate]]] = deque()
        self.waiting: deque[tuple[ExitStack, HostCandidate]] = deque()
        self.exiting: list[ExitStack] = []

    def begin(self, count: int) -> None:
        """Start candidates, without waiting, up to `count` in all or what fits into GPU memory."""
        if self.session.on_gpu and count > 1:
            sizes = self.plan, self.expected, self.places
            count = min(count, max_parallel_candidates(*sizes, varies=self.varies))
        with ExitStack() as failed:
            existing = len(self.waiting) + len(self.starting)
            stacks = [failed.enter_context(ExitStack()) for _ in range(existing, count)]
            started = [(stack, stack.enter_context(self._start())) for stack in stacks]
            self.starting += [(stack.pop_all(), wait_ready) for stack, wait_ready in started]

    def prepare(self, count: int) -> None:
        """Wait until `count` candidates have started; if one does not start, end all of them."""
        with ExitStack() as failed:
            failed.callback(self.close)
            self.begin(count)
            while self.starting:
                stack, wait_ready = self.starting[0]
                self.waiting.append((stack, wait_ready()))
                self.starting.popleft()
            failed.pop_all()

    def _start(self) -> AbstractContextManager[Callable[[], HostCandidate]]:
        if self.session.on_gpu:
            sizes = self.plan, self.expected, self.places
            return device_start(self.session, *sizes, varies=self.varies)
        return host_start(self.session, self.plan)

    @contextmanager
    def next_candidate(self) -> Iterator[HostCandidate]:
        """Yield the next candidate and kill it afterwards; `wait_for_exits` waits for its exit."""
        self.prepare(1)
        stack, candidate = self.waiting.popleft()
        try:
            yield candidate
        finally:
            _kill_nowait(candidate)
            self.exiting.append(stack)

    def wait_for_exits(self) -> None:
        """Wait until every killed candidate has exited."""
        with ExitStack() as ended:  # all of them, even if one does not end
            for stack in self.exiting:
                ended.enter_context(stack)
            self.exiting.clear()

    def close(self) -> None:
        """End all candidates and wait for their exits. The pool can be used again."""
        for _stack, candidate in self.waiting:
            _kill_nowait(candidate)
        with ExitStack() as unused:
            for stack, _ in (*self.starting, *self.waiting):
                unused.enter_context(stack)
            self.starting.clear()
            self.waiting.clear()
            unused.callback(self.wait_for_exits)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start_spares(session: EvaluationSession, count: int) -> None:
    """On a GPU, start spares for the first `count` candidates, without waiting.

    They create their contexts while the judge generates the inputs. A candidate itself can start
    only after that.
    """
    if not session.on_gpu:
        return
    with suppress(RuntimeError, AssertionError, OSError):  # the first candidate raises it again
        limits = session.request.limits
        spec = channel.SpareSpec(limits=limits, threads=threads_of(limits, gpu=True), gpu=True)
        session.template.spares.fill(spec, min(count, max_spares()))


def _kill_nowait(candidate: HostCandidate) -> None:
    """Kill a candidate without waiting; `wait_for_exits` waits for its exit.

    Only inside a PID namespace, where killing PID 1 kills all descendants. Without a namespace, the
    candidate's children could not be found afterwards.
    """
    if IsolationLayer.NAMESPACES in candidate.handle.ready.layers:
        candidate.handle.process.kill_nowait()


@contextmanager
def fresh_candidate(
    session: EvaluationSession, plan: arena.Plan, expected: values.Node | None
) -> Iterator[HostCandidate]:
    """Yield one fresh candidate."""
    with CandidatePool(session, plan, expected) as pool, pool.next_candidate() as candidate:
        yield candidate


@contextmanager
def start_candidate(
    session: EvaluationSession,
    host: arena.Arena,
    device_fds: list[int],
    shared: channel.DeviceFds | None,
    *,
    ready_memory: int = 0,
) -> Iterator[CandidateHandle]:
    """Start a candidate process without waiting; at the end kill it and log what it printed."""
    launching = session.launching
    spec = channel.CandidateSpec(
        limits=session.request.limits,
        threads=threads_of(session.request.limits, gpu=session.on_gpu),
        recipe=Recipe.of(session.request.task, launching.signature if launching else None),
        arena_size=host.size,
        ready_memory=ready_memory,
        shared=shared,
    )
    with session.record_duration("start"):
        fds = [session.files_fd, session.builds.fd, host.fd, *device_fds]
        handle = CandidateHandle(session.template, spec, fds, host)
    try:
        yield handle
    finally:
        with session.record_duration("kill"):
            handle.close()
        session.add_to_log(bytes(handle.printed.text))


@contextmanager
def host_arena(session: EvaluationSession, plan: arena.Plan) -> Iterator[arena.Arena]:
    """Create shared host memory for an input; VerdictError if it exceeds the memory limit."""
    size = session.request.limits.memory
    if plan.host_size > size:
        raise VerdictError(Verdict.TASK_ERROR, TOO_LARGE)
    with arena.Arena(size) as host:
        yield host


@contextmanager
def host_start(
    session: EvaluationSession, plan: arena.Plan
) -> Iterator[Callable[[], HostCandidate]]:
    """Start a fresh candidate on the CPU; yield a function that waits until it is ready."""

    def ready() -> HostCandidate:
        candidate = HostCandidate(session, handle, host)
        candidate.structure = scalars.without(plan.node)
        return candidate

    with (
        host_arena(session, plan) as host,
        start_candidate(
            session, host, [], None, ready_memory=READY_INPUTS * plan.host_size
        ) as handle,
    ):
        yield ready


@contextmanager
def device_start(
    session: EvaluationSession,
    plan: arena.Plan,
    expected: values.Node | None,
    places: int = 0,
    *,
    varies: bool = False,
) -> Iterator[Callable[[], DeviceCandidate]]:
    """Start a fresh candidate on the GPU; yield a function that waits until it is ready.

    `places` is its number of places for trains. Device code allocates nothing and needs no pool.
    """
    with session.record_duration("memory"):
        pooled = session.launching is None and (varies or expected is not None)
        buffers = Buffers.create(plan, expected, pooled=pooled, places=places)
    fds = [buffers.memory.fd, buffers.words.fd]
    shared = channel.DeviceFds(
        transport=buffers.memory.transport,
        size=buffers.memory.size,
        output_at=buffers.output_at,
        pool_at=buffers.pool_at,
        places_at=buffers.places_at,
        words_size=buffers.words.size,
    )
    session.transport = shared.transport
    try:
        with (
            host_arena(session, plan) as own_arena,
            closing(HostInput(own_arena)) as host_input,
            start_candidate(session, own_arena, fds, shared) as handle,
        ):
            yield lambda: DeviceCandidate(session, handle, host_input, buffers)
    finally:
        with session.record_duration("memory"), ignoring_broken_context():
            buffers.close()
