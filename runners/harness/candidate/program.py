"""The candidate's program: executes the judge's requests until it is killed.

A child forked from the template process runs this module, which is never imported. The process is
trusted until it imports the submission and hostile afterwards, so nothing here protects the judge.
"""

import errno
import faulthandler
import json
import mmap
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from runners.harness.build import kit
from runners.harness.candidate.gpu_endpoint import GpuEndpoint, make_context
from runners.harness.gpu.warm import limit_copy_queues
from runners.harness.protocol import builds, channel, values
from runners.harness.protocol.arena import view
from runners.harness.sandbox import diagnostics, isolate
from runners.languages import BuildFailedError, InvalidSubmissionError

MESSAGE_MAX = 1000
"""The most characters of a message; every front end can show that many."""
Claims = tuple[float, float]
"""A call's wall time and CPU time in ns, measured by the candidate; on a GPU the latter is 0."""


def touch(data: Any) -> Any:  # noqa: ANN401 - any task's input
    """The calibration kernel on the CPU: read every input tensor once and return the last one."""
    found = values.leaves(data)
    for tensor in found:
        torch.count_nonzero(values.bits(tensor))
    return found[-1] if found else data


def identity(data: Any) -> Any:  # noqa: ANN401 - any task's input
    """Return the input: the kernel of a candidate before it builds the submission."""
    return data


class Candidate:
    """The state of one candidate: its socket, its mapping of the arena, its kernel."""

    def __init__(self, orders: socket.socket, fds: list[int], spec: channel.CandidateSpec) -> None:
        self.orders = orders
        self.spec = spec
        self.builds, arena, *device = fds
        self.buffer = mmap.mmap(arena, spec.arena_size)
        shared = spec.shared
        self.gpu = None if shared is None else GpuEndpoint(self.buffer, shared, device)
        self.kernel: Callable[[Any], Any] = identity
        self.requests: dict[bytes, channel.CandidateRequest] = {}  # by their frames
        self.kept: list[torch.Tensor] = []  # outputs must stay mapped until the judge has read them

    def serve(self) -> None:
        """Execute requests until the judge closes the socket."""
        while frame := self.orders.recv(channel.FRAME_MAX):
            order = self.requests.get(frame) or self.requests.setdefault(
                frame, channel.CandidateRequest.model_validate_json(frame)
            )
            self.tell(self.answer(order))

    def answer(self, order: channel.CandidateRequest) -> channel.CandidateReply:
        """Execute one request; a failure of the submission becomes a reply."""
        match order.operation:
            case channel.Operation.BUILD:
                return guarded(lambda: self.build(order), channel.Status.BUILD_FAILED)
            case channel.Operation.RUN:
                return guarded(lambda: self.call(self.kernel, order), channel.Status.RAISED)
            case channel.Operation.PACK:
                return guarded(self.pack, channel.Status.RAISED)
            case channel.Operation.PROFILE:
                return guarded(lambda: self.call(self.profiled, order), channel.Status.RAISED)
            case channel.Operation.TOUCH:
                return guarded(
                    lambda: self.call(self.calibration_kernel(order), order), channel.Status.RAISED
                )

    def profiled(self, data: Any) -> Any:  # noqa: ANN401 - any task's input
        """Call the kernel under the profiler and print the time of each operation."""
        with torch.profiler.profile() as profiler:
            output = self.kernel(data)
            if self.gpu is not None:
                torch.cuda.synchronize()
        order = "self_cpu_time_total" if self.gpu is None else "self_cuda_time_total"
        print(profiler.key_averages().table(sort_by=order, row_limit=20))  # noqa: T201 - the log
        return output

    def calibration_kernel(self, order: channel.CandidateRequest) -> Callable[[Any], Any]:
        """Return the calibration kernel."""
        return self.gpu.calibration_kernel(order) if self.gpu else touch

    def build(self, order: channel.CandidateRequest) -> channel.CandidateReply:
        """Import the submission and reuse what an earlier candidate compiled."""
        if order.built:
            with suppress(Exception):  # without the files it compiles again
                builds.unpack(self.builds, Path.home())
        recipe = self.spec.recipe
        try:
            built = kit.build(Path.home(), recipe)
        except InvalidSubmissionError as error:
            return channel.CandidateReply(status=channel.Status.INVALID, message=str(error))
        except BuildFailedError as error:
            print(error.log)  # noqa: T201 - the log
            return channel.CandidateReply(
                status=channel.Status.BUILD_FAILED, message=str(error)[:MESSAGE_MAX]
            )
        self.kernel = built.kernel
        return channel.CandidateReply(status=channel.Status.DONE, compiled=built.compiled)

    def pack(self) -> channel.CandidateReply:
        """Store compiled code for later candidates."""
        try:
            builds.pack(Path.home(), self.builds)
        except OSError as error:  # the harness's own failure, not for the submission's log
            return channel.CandidateReply(
                status=channel.Status.DISK, message=f"compiled code cannot be stored: {error}"
            )
        return channel.CandidateReply(status=channel.Status.DONE)

    def call(
        self, kernel: Callable[[Any], Any], order: channel.CandidateRequest
    ) -> channel.CandidateReply:
        """Call the kernel on the current input and describe its output."""
        self.kept = []
        if self.gpu and order.train:
            return self.run_train(self.gpu, order, order.train)
        if self.gpu:
            output, (wall, cpu) = self.gpu.call(kernel, order, self.described, self.tell)
        else:
            output, (wall, cpu) = self.call_on_cpu(kernel, order)
        reply = self.described(output, lambda tensor: tensor)
        return reply.model_copy(update={"claimed_ns": wall, "claimed_cpu_ns": cpu})

    def run_train(
        self, gpu: GpuEndpoint, order: channel.CandidateRequest, train: channel.Train
    ) -> channel.CandidateReply:
        """Make every call of a train; the first frame describes their outputs."""
        orders = [place_of(order, train, number) for number in range(train.calls)]
        kernels = [self.kernel] * train.calls
        if order.operation is channel.Operation.TOUCH:
            kernels = [gpu.calibration_kernel(each) for each in orders]
        outputs, claims = gpu.run_train(
            kernels, orders, self.described, self.tell, stamped=train.stamped
        )
        del outputs  # kept until now, because their memory must not be reused earlier
        return channel.CandidateReply(status=channel.Status.DONE, claims_ns=claims)

    def tell(self, reply: channel.CandidateReply) -> None:
        """Send a reply; a call on the GPU sends an additional one when it is queued."""
        self.orders.sendall(encoded(reply))

    def described(
        self, output: object, placed: Callable[[torch.Tensor], torch.Tensor]
    ) -> channel.CandidateReply:
        """Return the reply for an output; `placed` maps each tensor to the one to describe."""
        if output is None:
            return channel.CandidateReply(
                status=channel.Status.INVALID, message="`custom_kernel` returned nothing"
            )
        try:
            node = values.describe(
                output, lambda tensor: self.whereabouts(placed(tensor)), keys_sorted=True
            )
        except values.UndescribableError as error:
            return channel.CandidateReply(
                status=channel.Status.INVALID, message=f"the output is or contains {error}"
            )
        return channel.CandidateReply(status=channel.Status.DONE, output=node)

    def call_on_cpu(
        self, kernel: Callable[[Any], Any], order: channel.CandidateRequest
    ) -> tuple[Any, Claims]:
        """Call the kernel on the CPU; return its output, and its wall and CPU time in ns."""
        if order.value is None:
            raise ValueError("a request without an input")
        data = values.restore(order.value, lambda node: view(self.buffer, node))
        self.orders.sendall(channel.READY_FRAME)
        self.orders.recv(channel.FRAME_MAX)
        used = time.process_time_ns()
        begin = time.perf_counter_ns()
        output = kernel(data)
        wall = time.perf_counter_ns() - begin
        return output, (float(wall), float(time.process_time_ns() - used))

    def whereabouts(self, tensor: torch.Tensor) -> values.TensorNode:
        """Return the description of an output tensor, with its address in this process."""
        if tensor.layout is not torch.strided:
            raise values.UndescribableError(f"a tensor of layout {tensor.layout}")
        plain = tensor.detach().resolve_conj().resolve_neg()
        self.kept.append(plain)
        return values.TensorNode(
            dtype=str(plain.dtype).removeprefix("torch."),
            shape=tuple(plain.shape),
            stride=tuple(plain.stride()),
            address=plain.data_ptr(),
            device=plain.device.type,
        )


def place_of(
    order: channel.CandidateRequest, train: channel.Train, number: int
) -> channel.CandidateRequest:
    """Return the request for one call of a train, with the input and the rooms of its place."""

    def moved(node: values.TensorNode) -> values.TensorNode:
        at = (node.offset or 0) + train.first + number * train.stride
        return node.model_copy(update={"offset": at})

    value = None if order.value is None else values.replaced(order.value, moved)
    return order.model_copy(update={"value": value, "rooms": tuple(map(moved, order.rooms))})


def encoded(reply: channel.CandidateReply) -> bytes:
    """Return the encoded reply, or an error reply if the output's description is too long."""
    try:
        return channel.encode(reply)
    except ValueError:
        text = "the output has too many parts to be described"
        return channel.encode(channel.CandidateReply(status=channel.Status.INVALID, message=text))


def guarded(
    step: Callable[[], channel.CandidateReply], failure: channel.Status
) -> channel.CandidateReply:
    """Turn exceptions of submitted code into a reply, and print the traceback to the log."""
    try:
        return step()
    except BaseException as error:  # noqa: BLE001 - submitted code may raise anything at all
        build = diagnostics.failed_build(_text_of(error))
        if build is None:
            traceback.print_exception(error.with_traceback(_submitted_frames(error)))
        else:  # the log is truncated at its end: errors come first, commands last
            print(build.errors)  # noqa: T201 - the log
            traceback.print_tb(_submitted_frames(error))
            print(build.commands)  # noqa: T201 - the log
        message = _headline(error, None if build is None else build.reason)
        message = message.encode(errors="replace").decode()  # JSON has no lone surrogates
        return channel.CandidateReply(status=_status(error, failure), message=message)


def _text_of(error: BaseException) -> str:
    """Return an exception's text; for one of `subprocess.run` also the program's output."""
    texts = [str(error)]
    for printed in (getattr(error, "stderr", None), getattr(error, "stdout", None)):
        if isinstance(printed, bytes):
            texts.append(printed.decode(errors="replace"))
        elif isinstance(printed, str):
            texts.append(printed)
    return "\n".join(texts)


def _in_home(file: str) -> bool:
    return file.startswith(str(Path.home()))


def _submitted_frames(error: BaseException) -> Any:  # noqa: ANN401 - a traceback or None
    """Return the traceback from the submission's first frame on."""
    frames = error.__traceback__
    while frames and not _in_home(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    return frames


def _headline(error: BaseException, reason: str | None) -> str:
    """Return the error in a few lines; `reason` is a compiler's message."""
    kind = type(error).__name__
    if isinstance(error, SyntaxError):
        text = f"{kind}: {error.msg} ({error.filename}, line {error.lineno})"
        return text.replace(f"{Path.home()}/", "")[:MESSAGE_MAX]
    frames = [each for each in traceback.extract_tb(error.__traceback__) if _in_home(each.filename)]
    where = f" (line {frames[-1].lineno})" if frames else ""
    text = f"{kind}: {error if reason is None else reason}"
    if len(text) > MESSAGE_MAX:  # Triton quotes the kernel first and gives the reason at the end
        text = f"{text[: MESSAGE_MAX // 3]}\n[...]\n{text[-MESSAGE_MAX // 2 :]}"
    return text + where


def _status(error: BaseException, failure: channel.Status) -> channel.Status:
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return channel.Status.MEMORY
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return channel.Status.DISK
    if isinstance(error, RuntimeError) and "can't allocate memory" in str(error):
        return channel.Status.MEMORY  # torch's host allocator has no exception type of its own
    return failure


def write_files(fd: int) -> None:
    """Write the candidate's files from the memory file `fd` into its home."""
    # Other candidates share the position of `fd`, so it must not move.
    packed = os.pread(fd, os.fstat(fd).st_size, 0)
    for name, text in json.loads(packed).items():
        (Path.home() / name).write_text(text)
    os.close(fd)


def enter(
    orders: socket.socket, fds: list[int], spec: channel.CandidateSpec | channel.SpareSpec
) -> None:
    """Enter the sandbox, write the submission's files, and serve."""
    output, *others = fds
    for stream in (1, 2):
        os.dup2(output, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a kill flushes nothing
    faulthandler.enable()  # shows the submitter where a native crash happened
    os.putenv("KINETO_LOG_LEVEL", "99")  # otherwise torch's profiler prints to stderr

    def announce(pid: int) -> None:
        orders.sendall(channel.encode(channel.CandidatePid(pid=pid)))

    gpu = spec.gpu if isinstance(spec, channel.SpareSpec) else spec.shared is not None
    layers, missing = isolate.enter(
        spec.limits, announce, keep_fds=frozenset({orders.fileno(), *others}), gpu=gpu
    )
    torch.set_num_threads(spec.threads)
    if gpu:
        limit_copy_queues()
        make_context()
    if isinstance(spec, channel.SpareSpec):
        spec, others = assigned(orders)
    files, *memory = others
    candidate = Candidate(orders, memory, spec)
    write_files(files)
    address = candidate.gpu.local.data_ptr() if candidate.gpu else 0
    orders.sendall(
        channel.encode(
            channel.CandidateReady(layers=layers, missing=missing, device_address=address)
        )
    )
    candidate.serve()


def assigned(orders: socket.socket) -> tuple[channel.CandidateSpec, list[int]]:
    """Return what this spare becomes, with its descriptors; exit if the judge closes the socket."""
    orders.sendall(channel.encode(channel.SpareStarted()))
    frame, fds = channel.receive(orders, channel.FRAME_MAX, channel.FDS)
    if not frame:
        os._exit(0)
    return channel.CandidateSpec.model_validate_json(frame), fds
