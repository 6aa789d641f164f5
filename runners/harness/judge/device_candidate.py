"""The candidate driver for the GPU; the judge owns, flushes and poisons the shared buffers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from typing_extensions import override

from runners.contract.launch import LaunchNumbers
from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline
from runners.harness.gpu import handover
from runners.harness.gpu.buffers import Buffers, device_bytes, has_host_part, on_device, replan
from runners.harness.gpu.health import first_gpu
from runners.harness.gpu.host_input import HostInput
from runners.harness.gpu.memory import HostBuffer, ended_on_failure, typed_view, usual_algorithms
from runners.harness.judge import host_candidate
from runners.harness.judge.answer import Answer, Place, too_many_tensors
from runners.harness.judge.checks import Changes, placed, refuse_changed, same
from runners.harness.judge.launches import Guards, refuse_unfit
from runners.harness.judge.session import EvaluationSession
from runners.harness.protocol import channel, scalars, values
from runners.harness.protocol.arena import Plan, lay_out
from runners.harness.supervision.handle import CandidateHandle
from runners.harness.verdicts import VerdictError

PATIENCE_S = 0.1
"""Seconds for a candidate to queue its call; a kernel that waits for the GPU never queues it."""


class DeviceCandidate(host_candidate.HostCandidate):
    """The driver of a candidate whose inputs and outputs are in GPU memory that the judge owns."""

    def __init__(
        self,
        session: EvaluationSession,
        handle: CandidateHandle,
        host_input: HostInput,
        buffers: Buffers,
    ) -> None:
        super().__init__(session, handle, host_input.arena)
        self.buffers = buffers
        self.host_input = host_input
        self.handover = handover.Handover(buffers.words)
        self.device_base = handle.ready.device_address
        self.remote = isinstance(buffers.memory, HostBuffer)
        answer = Answer(buffers, self.device_base, remote=self.remote)
        self.place = Place(0, answer, buffers.staging, buffers.withheld)
        self.guards: Guards | None = None
        """Guard bands of the latest call; None unless it is device code with buffers on the GPU."""
        self.staged: tuple[object, values.Node | None] | None = None
        """The input and the expected output of the calibration call that is still staged."""
        self.usual: list[object] | None = None  # scalars of calibration
        self.touches: dict[bool, channel.CandidateRequest] = {}
        """Whether the calibration kernel waits -> its request with the staged input."""

    @property
    def answer(self) -> Answer:
        """The output of the current call."""
        return self.place.answer

    @override
    def call(
        self,
        operation: channel.Operation,
        value: object,
        expected: values.Node | None,
        deadline: Deadline,
        *,
        launch: LaunchNumbers | None = None,
        waiting: bool = False,
    ) -> channel.Exchange:
        if operation is channel.Operation.TOUCH:
            return self._touch(value, expected, deadline, waiting=waiting)
        plan = self._fitting_plan(value)
        if launch is not None:
            refuse_unfit(launch, values.tensors(plan.node), expected)
        if expected is None:
            expected = self._discover(plan, value, deadline)
        # The kernel may need its host input, or withheld scalars, while it launches, and a host
        # output exists only after its work is done. So such a call cannot be queued ahead.
        hosted = has_host_part(plan, expected) or not scalars.are_known(plan.node, self._known)
        ahead = self.ahead and not hosted
        order = self._order(operation, plan, expected, ahead=ahead, launch=launch)
        exchange = self._run(order, deadline, self._staging(order, value))
        self.buffers.check_free_memory()
        late = exchange.late or (self.ahead and hosted)
        window_ns = exchange.window_ns - self.answer.further_capture_ns
        return replace(exchange, window_ns=window_ns, late=late, in_rooms=not ahead)

    @property
    def _known(self) -> Sequence[object] | None:
        """The scalars that a request may tell; None for any.

        Those of calibration, as long as a call with others is late, which does not count. If no
        call is queued ahead, all count, and a request must not tell which have the usual ones.
        """
        return () if self.withholds and not self.ahead else self.usual

    def _fitting_plan(self, value: object) -> Plan:
        plan = self._plan(value)
        if plan.device_size > self.buffers.output_at:
            raise VerdictError(Verdict.TASK_ERROR, "an input of the task grew between two seeds")
        return plan

    def _touch(
        self, value: object, expected: values.Node | None, deadline: Deadline, *, waiting: bool
    ) -> channel.Exchange:
        """Call the calibration kernel; only trusted code runs in the candidate.

        Its input stays staged, with the same lines withheld, until another one is: staging it again
        would take most of the time. Before a call that waits, it is staged again, as before each
        call of a submission: after a shorter pause the candidate would wake faster.
        """
        kept = self.staged is not None and self.staged[0] is value and self.staged[1] is expected
        if not (staged := kept and not waiting):
            self.touches.clear()
        if waiting not in self.touches:
            self.touches[waiting] = self._order(
                channel.Operation.TOUCH, self._fitting_plan(value), expected, ahead=not waiting
            )
        order = self.touches[waiting]
        self.usual = scalars.of(order.value or values.ScalarNode())
        exchange = self._run(order, deadline, int if staged else self._staging(order, value))
        self.staged = (value, expected)
        if not self.told:
            self.answer.time_usual_capture()
        return exchange

    def _order(
        self,
        operation: channel.Operation,
        plan: Plan,
        expected: values.Node | None,
        *,
        ahead: bool,
        launch: LaunchNumbers | None = None,
    ) -> channel.CandidateRequest:
        """Return the request for a call with rooms for its output, which the judge now expects.

        Device code is always told the rooms, because it does not allocate its output.
        """
        untold = not self.told and operation is not channel.Operation.TOUCH
        answer, lays_out = self.answer, untold and launch is None and expected is not None
        answer.expect(expected, told=not lays_out)
        rooms = answer.rooms if launch is None else answer.rooms_in_expected_order
        self.guards = None
        if launch is not None and not self.remote:
            self.guards = Guards.around(values.tensors(plan.node), rooms, self.buffers)
        return channel.CandidateRequest(
            operation=operation,
            value=plan.node,
            rooms=() if lays_out else rooms,
            lays_out=lays_out,
            ahead=ahead,
            launch=launch,
        )

    def _run(
        self, order: channel.CandidateRequest, deadline: Deadline, stage: Callable[[], object]
    ) -> channel.Exchange:
        """Execute a request in one window; the first frame of a call ahead has its output.

        `stage` is done while the candidate queues its call.
        """
        touches = order.operation is channel.Operation.TOUCH

        def take(last: channel.CandidateReply) -> None:
            with host_candidate.readable():
                read = super(DeviceCandidate, self)._reader(deadline)
                self.answer.take(last.output, read, trusted=touches)

        steps = handover.WindowActions(
            stage=stage,
            queued=lambda first: self.answer.expect_at(self._output_places(order, first)),
            flush_cache=self._poison_and_flush,
            reveal=self._reveal,
            complete=self._complete,
            capture=self.answer.capture,
            take=take if self.answer.has_host_part else None,
        )
        patience = PATIENCE_S if order.ahead else deadline.remaining
        frame, withheld = self._encoded(order, self.usual if touches else self._known)
        frozen_s = handover.FROZEN_S if order.ahead else 0.0
        call = handover.HandoverCall(
            self.handover, patience, steps, withheld=withheld, frozen_s=frozen_s
        )
        with usual_algorithms(), ended_on_failure(self.handle.end, self.handover.abort):
            exchange = self.handle.call_on_device(frame, deadline, call)
        if not touches:
            self._restore()
        described = call.first if order.ahead and call.first else exchange.reply
        output = self.answer.room if order.launch else described.output  # device code tells nothing
        return replace(exchange, reply=exchange.reply.model_copy(update={"output": output}))

    def _output_places(
        self, order: channel.CandidateRequest, first: channel.CandidateReply | None
    ) -> values.Node | None:
        """Return where the output will be, from the first frame; None without a first frame.

        In calibration, for device code and for a call that is not queued ahead, the output is
        always in its rooms.
        """
        if first is None:
            return None
        touches = order.operation is channel.Operation.TOUCH
        in_rooms = touches or order.launch is not None or not order.ahead
        return self.answer.room if in_rooms else self.answer.places(first.output)

    def _poison_and_flush(self) -> None:
        self.answer.poison()
        self.buffers.flush_cache()

    def _reveal(self) -> None:
        self.host_input.reveal()  # takes long, and the GPU could compute with the rest meanwhile
        self.buffers.reveal()

    def _complete(self) -> None:
        self.answer.poison_again()
        self.buffers.complete()
        self.host_input.complete()

    def _restore(self) -> None:
        self.buffers.withheld.restore()
        self.host_input.restore()

    @override
    def build(self, deadline: Deadline) -> None:
        super().build(deadline)
        self.buffers.check_free_memory()

    @override
    def slowed_by(self) -> tuple[str, ...]:
        return first_gpu().slowed_by()

    @override
    def clocks(self) -> dict[str, float]:
        return first_gpu().clocks()

    def _discover(self, plan: Plan, value: object, deadline: Deadline) -> values.Node:
        """Learn the output's structure from one untimed call, if no reference defines it."""
        order = self._order(channel.Operation.RUN, plan, None, ahead=False)
        exchange = self._run(order, deadline, self._staging(order, value))
        if exchange.reply.output is None:
            raise VerdictError(Verdict.DISALLOWED, "the candidate described no output")
        with host_candidate.readable():
            wanted = replan(exchange.reply.output)
        if device_bytes(wanted) > self.buffers.pool_at - self.buffers.output_at:
            raise VerdictError(Verdict.WRONG_ANSWER, "the output is larger than this task allows")
        if message := too_many_tensors(wanted):
            raise VerdictError(Verdict.WRONG_ANSWER, f"the output {message}")
        self.answer.expect(wanted)
        # If the rooms make the next requests too long, the submission is at fault, not the task.
        with host_candidate.readable():
            longest = {"operation": channel.Operation.PROFILE, "rooms": self.answer.rooms}
            channel.encode(order.model_copy(update=longest))
        self.discovered = wanted
        return wanted

    def _staging(self, order: channel.CandidateRequest, value: object) -> Callable[[], object]:
        """Return what stages the input of a call ahead; that of any other is staged at once.

        A candidate waits for its input from the begin of a call that is not queued ahead. Device
        code needs its guard bands before its call.
        """
        if order.ahead and order.launch is None:
            return lambda: self._replace_staged(order, value)
        self._replace_staged(order, value)
        return int  # does nothing

    def _replace_staged(self, order: channel.CandidateRequest, value: object) -> None:
        if self.staged is not None:
            self._restore()
        self.staged = None
        self.stage(order.value or values.ScalarNode(), value)

    def stage(self, node: values.Node, value: object) -> None:
        for place, tensor in zip(values.tensors(node), values.leaves(value), strict=True):
            if place.device == "cuda":
                values.copy_into(typed_view(self.place.staging, place), tensor)
        self.host_input.stage(node, value)
        if self.guards is not None:
            self.guards.write(self.buffers.staging, self.buffers.memory.bytes)
        self.place.withheld.take([each for each in on_device(node) if each.span])
        torch.cuda.synchronize()

    @override
    def fetch(
        self, reply: channel.CandidateReply, expected: values.Node | None, deadline: Deadline
    ) -> Any:
        if self.answer.wanted is None:
            raise VerdictError(Verdict.DISALLOWED, "the candidate described no output")
        return super().fetch(reply, self.answer.wanted, deadline)

    @override
    def _reader(self, deadline: Deadline) -> values.Fetch:
        return self.answer.reader()

    @override
    def refuse_overruns(self) -> None:
        if self.guards is not None:
            self.guards.refuse_changed(self.buffers.memory.bytes)

    @override
    def refuse_misplaced_output(self, data: object, reply: channel.CandidateReply) -> None:
        super().refuse_misplaced_output(data, reply)
        if not self.remote:
            self.answer.refuse_across(on_device(lay_out(data).node), self.place.shift)

    @override
    def refuse_changes(self, data: object, reply: channel.CandidateReply) -> None:
        super().refuse_changes(data, reply)
        if reply.output is None or self.remote:
            return  # with pinned memory the kernel works on a private copy
        plan = lay_out(data)
        here = self.buffers.memory.bytes[self.place.shift :]
        found = [typed_view(here, each) for each in on_device(plan.node)]
        wanted = [typed_view(self.place.staging, each) for each in on_device(plan.node)]
        if all(map(same, found, wanted)):
            return  # nothing was changed
        changes = Changes(on_device(plan.node), found, wanted)
        base = self.device_base + self.place.shift
        refuse_changed(changes, placed(self.answer.confirmed(reply.output), base))
