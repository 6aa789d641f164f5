"""The channel between judge and candidate: one sequenced-packet socket with small JSON frames.

A frame from the judge is a `CandidateRequest`; the candidate answers with `CandidateReply`. What a
candidate sends is limited in length and validated. Nothing is ever unpickled.
"""

import os
import re
import socket
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, Protocol

from pydantic import Field, TypeAdapter

from runners.contract.evaluation import Limits
from runners.contract.launch import Compiled, LaunchNumbers
from runners.contract.verdict import Verdict
from runners.contract.wire import Wire
from runners.harness.protocol.values import Node, TensorNode, replaced
from runners.languages import Recipe

FRAME_MAX = 64 << 10
"""The most bytes of a frame in either direction."""
_FLOAT = re.compile(r'(?<="kind":"float","value":")[^"]*')
_LONGEST_FLOAT = "-0x0.aaaaaaaaaaaaap-1022"
TOO_LONG = (
    f"too many parts or too long a text: its description takes more than {FRAME_MAX >> 10} KiB"
)
TOUCHED_MOST = 64
"""The most tensors that the calibration kernel returns on the CPU."""
TRAIN_MOST = 32
"""The most calls of a train."""
_CLAIM_MOST = 1e15
Claim = Annotated[float, Field(ge=0, le=_CLAIM_MOST)]  # a time in ns by the candidate's clock
READY_FRAME = b"ready"
"""From a candidate on the CPU: it has parsed the request and waits for its input."""
GO_FRAME = b"go"
"""To a candidate on the CPU: the input is there, and has no scalars."""
DONE_FRAME = b'{"status":"done"}'
"""From a candidate on the CPU: its answer to an `ECHO`."""


class Operation(StrEnum):
    """What the judge requests from a candidate."""

    BUILD = "build"
    """Import the submission."""
    RUN = "run"
    """Call the kernel on the input in the arena."""
    PACK = "pack"
    """Store compiled code for later candidates."""
    PROFILE = "profile"
    """Call the kernel under torch's profiler and print the table."""
    TOUCH = "touch"
    """Run the trusted calibration kernel instead of the submission's."""
    EXPECT = "expect"
    """On the CPU: from now on, `TOUCH` describes the scalars of this value before it answers."""
    ECHO = "echo"
    """On the CPU: answer without a kernel and with a prepared frame."""


class Train(Wire):
    """Calls that are all queued before the first input is there, each in its own place.

    A place is a part of the shared memory with room for one input and its output.
    """

    calls: Annotated[int, Field(ge=2, le=TRAIN_MOST)]
    first: int
    """Bytes from the start of the shared memory to the first place."""
    stride: int
    """Bytes from one place to the next."""
    stamped: bool
    """Whether the candidate times each call."""


class CandidateRequest(Wire):
    """One frame from the judge."""

    operation: Operation
    value: Node | None = None
    """The input's description, with its places in the arenas."""
    withheld: bool = False
    """Whether `value`, or its scalars and keys, are missing: they come with the visible input."""
    rooms: tuple[TensorNode, ...] = ()
    """On a GPU: the memory to which each tensor of the output is copied, unless it is already in
    shared memory. The request contains nothing else about the output. On the CPU the judge reads
    outputs itself."""
    lays_out: bool = False
    """On a GPU: copy the output to places that follow from its own structure, because the request
    has no rooms. They would tell the shape of the right output, which the input determines."""
    ahead: bool = False
    """On a GPU: queue the whole call before its input is there, so that no launch is timed."""
    train: Train | None = None
    """On a GPU: repeat the call in these places; `value` and `rooms` are relative to each place."""
    launch: LaunchNumbers | None = None
    """For device code: the launch, on these inputs and into these rooms."""
    tensors: Annotated[int, Field(ge=1, le=TOUCHED_MOST)] = 1
    """On the CPU: how many tensors the calibration kernel returns."""
    built: bool = False
    """For a build: whether an earlier candidate has stored compiled code."""


def place_of(order: CandidateRequest, train: Train, number: int) -> CandidateRequest:
    """Return the request for one call of a train, with the input and rooms in the call's place."""

    def moved(node: TensorNode) -> TensorNode:
        at = (node.offset or 0) + train.first + number * train.stride
        return node.model_copy(update={"offset": at})

    value = None if order.value is None else replaced(order.value, moved)
    return order.model_copy(update={"value": value, "rooms": tuple(map(moved, order.rooms))})


class Status(StrEnum):
    """How a request ended, by the candidate's report; a false one only harms the submission."""

    DONE = "done"
    """The request was executed."""
    BUILD_FAILED = "build_failed"
    """The submission did not import or compile."""
    INVALID = "invalid"
    """There is no usable `custom_kernel`, or its return value is not a tensor structure."""
    RAISED = "raised"
    """The kernel raised."""
    MEMORY = "memory"
    """An allocation failed."""
    DISK = "disk"
    """A write failed because of a disk limit, or compiled code could not be stored."""


FAILURES = {
    Status.BUILD_FAILED: Verdict.BUILD_FAILED,
    Status.INVALID: Verdict.INVALID_SUBMISSION,
    Status.RAISED: Verdict.CRASHED,
    Status.MEMORY: Verdict.MEMORY_EXCEEDED,
    Status.DISK: Verdict.OUTPUT_EXCEEDED,
}
"""The verdict for each failure that a candidate reports."""


class CandidateReply(Wire):
    """One frame from the candidate: untrusted in every field.

    A call on a GPU has two: the first frame when the call is queued or waits for its input, and the
    last frame when it is done.
    """

    status: Status
    message: Annotated[str, Field(max_length=2000)] = ""
    claimed_ns: Claim = 0.0
    claimed_cpu_ns: Claim = 0.0
    """CPU time of all threads; only used from trusted candidates."""
    output: Node | None = None
    """The output's description with the candidate's addresses; if the call is queued ahead, only
    that of the first frame counts for tensors on the GPU."""
    outputs: Annotated[tuple[Node, ...], Field(max_length=TRAIN_MOST)] | None = None
    """For a train: the description of each call's output, in the first frame."""
    claims_ns: Annotated[tuple[Claim, ...], Field(max_length=TRAIN_MOST)] | None = None
    """For a stamped train: the time of each call by the candidate's clock."""
    compiled: Compiled | None = None
    """What the compiler reported about device code."""


class CandidatePid(Wire):
    """The candidate's process id in the judge's namespace, sent once it is the judge's child."""

    kind: Literal["announcement"] = "announcement"
    pid: int


class SpareStarted(Wire):
    """From a spare: it is in its sandbox, on a GPU with a context, and waits for a submission."""

    kind: Literal["spare"] = "spare"


class CandidateReady(Wire):
    """The candidate's ready message, sent before any submitted code runs."""

    kind: Literal["welcome"] = "welcome"
    layers: tuple[str, ...]
    missing: dict[str, str]
    device_address: int = 0
    """The candidate's address of the shared device memory; 0 on the CPU."""


Transport = Literal["vmm", "pinned-host"]
"""How device memory is shared between judge and candidate."""


class DeviceFds(Wire):
    """Sizes in bytes of the two device buffers whose descriptors follow the arena's.

    The first holds the input, then from `output_at` the rooms for copied outputs, then from
    `pool_at` the memory for the kernel's own allocations, then from `places_at` the places of a
    train. The second holds the words through which the two GPU contexts wait for each other.
    """

    transport: Transport
    size: int
    output_at: int
    pool_at: int
    places_at: int
    words_size: int


class CandidateSpec(Wire):
    """The request to the template to fork a candidate; `shared` is set if inputs are on a GPU."""

    limits: Limits
    threads: int
    recipe: Recipe
    arena_size: int
    ready_memory: int = 0  # what it can allocate without page faults, in bytes
    shared: DeviceFds | None = None


class SpareSpec(Wire):
    """The request to the template to fork a spare, which gets a `CandidateSpec` later."""

    limits: Limits
    threads: int
    gpu: bool

    def fits(self, spec: CandidateSpec) -> bool:
        """Whether a spare with this specification can become that candidate."""
        same = self.limits == spec.limits and self.threads == spec.threads
        return same and self.gpu == (spec.shared is not None)


FORKED: TypeAdapter[CandidateSpec | SpareSpec] = TypeAdapter(CandidateSpec | SpareSpec)
"""The specification of what the template forks; its fields tell which of the two it is."""
FDS = 7
"""The most descriptors of a request: socket, output pipe, files, builds, arena, two GPU buffers."""


class ProfiledCall(Wire):
    """The request to a process that makes one call under the profiler and sends no reply."""

    recipe: Recipe
    files: dict[str, str]
    """The submission and the task's shared files."""
    threads: int
    warm_ups: int
    value: Node
    """The input, with the place of each tensor of any device in the data file."""
    outputs: tuple[TensorNode, ...] = ()
    """For device code: the tensors into which it writes."""
    launch: LaunchNumbers | None = None
    builds: int | None = None
    """The descriptor of the file with compiled code of an earlier candidate."""
    gpu: bool = False


Handshake = Annotated[CandidatePid | SpareStarted | CandidateReady, Field(discriminator="kind")]
HANDSHAKE: TypeAdapter[Handshake] = TypeAdapter(Handshake)


def receive(link: socket.socket, most_bytes: int, most_fds: int) -> tuple[bytes, list[int]]:
    """Return one frame and the descriptors sent with it, which are all close-on-exec."""
    frame, fds, _, _ = socket.recv_fds(link, most_bytes, most_fds)
    for fd in fds:
        os.set_inheritable(fd, False)  # noqa: FBT003 - the library's own signature
    return frame, fds


def pair() -> tuple[socket.socket, socket.socket]:
    """A connected pair of sockets that keeps frame boundaries."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def encode(frame: Wire) -> bytes:
    """Return the frame as bytes; ValueError if it is longer than `FRAME_MAX`."""
    data = frame.model_dump_json(exclude_none=True).encode()
    if len(data) > FRAME_MAX:
        raise ValueError(f"a frame of {len(data)} bytes; at most {FRAME_MAX} are allowed")
    return data


def has_room_for(output: Node) -> bool:
    """Whether a reply with such an output fits, wherever its tensors are, whatever its floats."""
    moved = {"offset": None, "address": (1 << 64) - 1}
    there = replaced(output, lambda node: node.model_copy(update=moved))
    most = CandidateReply(
        status=Status.DONE, claimed_ns=_CLAIM_MOST, claimed_cpu_ns=_CLAIM_MOST, output=there
    )
    text = _FLOAT.sub(_LONGEST_FLOAT, most.model_dump_json(exclude_none=True))
    return len(text.encode()) <= FRAME_MAX


@dataclass(frozen=True, slots=True)
class Exchange:
    """The result of one request: its window and the candidate's reply."""

    window_ns: float
    reply: CandidateReply
    cpu_ns: int = 0
    """CPU time of the candidate's threads in the window; not measured on a GPU."""
    prepared_ns: int = 0
    """CPU time of its processes before the input was there; not measured on a GPU."""
    host_part_ns: float = 0.0
    """On a GPU: the last part of the window, after the outputs on the GPU were captured."""
    waited_ns: int = 0
    """How long candidate and judge waited for cores, beyond `least_waited_ns`."""
    least_waited_ns: int = 0
    """The least time that they waited for cores in any call with the same request."""
    late: bool = False
    """On a GPU: whether the call was not queued in time, or needed the CPU after it was queued."""
    in_rooms: bool = False
    """On a GPU: whether the output is in its rooms, where the judge reads a late call's too."""


class DeviceCall(Protocol):
    """One call of a candidate on a GPU, as the judge controls it."""

    patience_s: float
    """Seconds to wait for the candidate to queue its work before the input is released."""
    has_host_part: bool
    """Whether the last frame has a part of the output; the window then closes after that frame."""
    frozen_s: float
    """For how many seconds the candidate is frozen after its first frame if the window does not
    close earlier; zero if it is not frozen."""
    withheld: bytes
    """The frame with the input's scalars, which is sent when the input is shown; empty if none."""

    def stage(self) -> object:
        """Prepare the input where the candidate cannot see it, while it queues its work."""

    def queued(self, first: CandidateReply | None) -> None:
        """Record where the output will be; None if the candidate did not report it in time."""

    def release(self) -> None:
        """Open the window and make the input visible, which starts the candidate's queued work."""

    def is_shown(self) -> bool:
        """Whether all of the input is visible, which is when the candidate's time begins."""

    def take(self, last: CandidateReply) -> None:
        """Copy the host part of an output if it has one, then close the window."""

    def over(self) -> bool:
        """Whether the window has closed."""

    def window_ns(self) -> float:
        """The length of the window in nanoseconds."""

    def host_part_ns(self) -> float:
        """The part of the window after the outputs on the GPU were captured."""
