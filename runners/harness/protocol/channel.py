"""The wire between judge and candidate: one sequenced-packet socket with small JSON frames.

A frame from the judge is an operation and its argument; the candidate answers each with one
`CandidateReply`. Whatever a candidate sends is limited in length and validated. Nothing is ever
unpickled.
"""

import os
import socket
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, Protocol

from pydantic import Field, TypeAdapter

from runners.contract.evaluation import Compiled, Limits
from runners.contract.launch import LaunchNumbers
from runners.contract.verdict import Verdict
from runners.contract.wire import Wire
from runners.harness.protocol.values import Node, TensorNode
from runners.languages import Recipe

FRAME_MAX = 64 << 10
"""Bytes of the longest frame in either direction."""


READY_FRAME = b"ready"
"""From a candidate on the CPU: the order is understood, and it waits for its input."""
GO_FRAME = b"go"
"""To it: the input is there."""


class Operation(StrEnum):
    """What the judge asks of a candidate."""

    BUILD = "build"
    """Import the submission."""
    RUN = "run"
    """Call the kernel on the input that lies in the arena."""
    PACK = "pack"
    """Keep what was compiled for the candidates to come."""
    PROFILE = "profile"
    """The same under torch's profiler, whose table is printed."""
    TOUCH = "touch"
    """Run the trusted stand-in instead of the kernel, for calibration."""


class CandidateRequest(Wire):
    """One frame from the judge."""

    operation: Operation
    value: Node | None = None
    """Where the input lies."""
    rooms: tuple[TensorNode, ...] = ()
    """On a GPU: where each tensor of the output can be copied to, should it lie elsewhere than in
    the shared memory. Nothing else of the output is told. The CPU's outputs are fetched."""
    ahead: bool = False
    """On a GPU: queue the whole call before its input is there, so that no launch is timed."""
    launch: LaunchNumbers | None = None
    """For device code: how to launch it, on these inputs and into these rooms."""
    built: bool = False
    """For a build: whether an earlier candidate's lies packed at hand."""


class Status(StrEnum):
    """How the candidate says that an order ended; a lie here can only harm the liar."""

    DONE = "done"
    """The order was carried out."""
    BUILD_FAILED = "build_failed"
    """The submission did not import or compile."""
    INVALID = "invalid"
    """There is no usable `custom_kernel`, or what it returned is no tensor structure."""
    RAISED = "raised"
    """The kernel raised."""
    MEMORY = "memory"
    """An allocation failed."""
    DISK = "disk"
    """A write failed for want of space."""


FAILURES = {
    Status.BUILD_FAILED: Verdict.BUILD_FAILED,
    Status.INVALID: Verdict.INVALID_SUBMISSION,
    Status.RAISED: Verdict.CRASHED,
    Status.MEMORY: Verdict.MEMORY_EXCEEDED,
    Status.DISK: Verdict.OUTPUT_EXCEEDED,
}
"""What a candidate's own word for a failure means."""


class CandidateReply(Wire):
    """One frame from the candidate: untrusted in every field.

    On a GPU there are two of them: the first one when the call is queued, or waits for its input,
    and the last one when it is done.
    """

    status: Status
    message: Annotated[str, Field(max_length=2000)] = ""
    claimed_ns: Annotated[float, Field(ge=0, le=1e15)] = 0.0
    claimed_cpu_ns: Annotated[float, Field(ge=0, le=1e15)] = 0.0
    """CPU time of all threads; asked of trusted candidates only."""
    output: Node | None = None
    """Where the output lies, by the candidate's own addresses; of a call that is queued ahead the
    first frame tells it."""
    compiled: Compiled | None = None
    """Of device code that was built."""


class CandidatePid(Wire):
    """The candidate's process id as the judge sees it, sent once it is the judge's to collect."""

    kind: Literal["announcement"] = "announcement"
    pid: int


class CandidateReady(Wire):
    """The candidate's own first frame, sent before any submitted code runs."""

    kind: Literal["welcome"] = "welcome"
    layers: tuple[str, ...]
    missing: dict[str, str]
    device_address: int = 0
    """Where the candidate sees the shared device memory, its input first; 0 on the CPU."""


Transport = Literal["vmm", "pinned-host"]
"""How device memory is shared between judge and candidate."""


class DeviceFds(Wire):
    """Sizes in bytes of the two device buffers whose descriptors follow the arena's.

    The first one holds the input, from `output_at` on the room into which outputs are copied, and
    from `pool_at` on memory for the kernel's own allocations; the second one holds the words by
    which the two GPU contexts wait for each other.
    """

    transport: Transport
    size: int
    output_at: int
    pool_at: int
    words_size: int


class CandidateSpec(Wire):
    """What the template is told to fork; `shared` is there when the inputs live on a GPU."""

    limits: Limits
    threads: int
    recipe: Recipe
    arena_size: int
    shared: DeviceFds | None = None


class ProfiledCall(Wire):
    """What a process is told that makes one call under the profiler; it is asked for no answer."""

    recipe: Recipe
    files: dict[str, str]
    """The submission, and what the task shares with it."""
    threads: int
    warm_ups: int
    value: Node
    """Where each tensor of the input lies in the file next to this, on whatever device it is."""
    outputs: tuple[TensorNode, ...] = ()
    """For device code: what it is given to write into."""
    launch: LaunchNumbers | None = None
    builds: int | None = None
    """The descriptor of what an earlier candidate compiled."""
    gpu: bool = False


Greeting = Annotated[CandidatePid | CandidateReady, Field(discriminator="kind")]
GREETING: TypeAdapter[Greeting] = TypeAdapter(Greeting)


def receive(link: socket.socket, most_bytes: int, most_fds: int) -> tuple[bytes, list[int]]:
    """One frame and the descriptors that were sent with it, none of which `exec` hands on."""
    frame, fds, _, _ = socket.recv_fds(link, most_bytes, most_fds)
    for fd in fds:
        os.set_inheritable(fd, False)  # noqa: FBT003 - the library's own signature
    return frame, fds


def pair() -> tuple[socket.socket, socket.socket]:
    """A connected pair that keeps the borders of frames."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def encode(frame: Wire) -> bytes:
    """The frame as bytes; ValueError when it is too long to travel."""
    data = frame.model_dump_json(exclude_none=True).encode()
    if len(data) > FRAME_MAX:
        raise ValueError(f"a frame of {len(data)} bytes; at most {FRAME_MAX} can travel")
    return data


@dataclass(frozen=True, slots=True)
class Exchange:
    """One order and its answer; the window closed when the bytes were the judge's own."""

    window_ns: float
    reply: CandidateReply
    cpu_ns: int = 0
    """What the candidate's threads used meanwhile; not taken on a GPU."""
    told_ns: float = 0.0
    """On a GPU: the last part of the window, in which all that lies there had been captured."""
    late: bool = False
    """On a GPU: the call should have been queued ahead and was not in time, so that launches lie
    in its window, and nobody knew where to look for its output."""


class DeviceCall(Protocol):
    """One call's way over to a candidate on a GPU, as the judge drives it."""

    patience_s: float
    """How long to wait until the candidate has queued its work, before the input is released."""
    told: bool
    """Whether the candidate's last frame is a part of the answer: the window closes after it."""

    def queued(self, first: CandidateReply | None) -> None:
        """Take note of where the output will lie; None when the candidate was too late to say."""

    def release(self) -> None:
        """Open the window and make the input visible; the candidate's work follows by itself."""

    def take(self, last: CandidateReply) -> None:
        """Make what of an answer that is `told` lies on the host the judge's own.

        Then let the window close.
        """

    def over(self) -> bool:
        """Whether the answer is the judge's own."""

    def window_ns(self) -> float:
        """How long that took, in nanoseconds."""

    def told_ns(self) -> float:
        """For how long of it all was captured that lies on the GPU."""
