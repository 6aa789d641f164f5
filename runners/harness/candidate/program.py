"""The candidate's program: executes the judge's requests until it is killed.

A child forked from the template process runs this module, which is never imported. The process is
trusted until it imports the submission and hostile afterwards, so nothing here protects the judge.
"""

import faulthandler
import json
import mmap
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from runners.harness.build import kit
from runners.harness.candidate.failures import MESSAGE_MAX, TOO_LONG, encoded, guarded
from runners.harness.candidate.gpu_endpoint import GpuEndpoint
from runners.harness.gpu.warm import limit_copy_queues, make_context
from runners.harness.protocol import arena, builds, channel, scalars, values
from runners.harness.sandbox import isolate, syscalls
from runners.languages import BuildFailedError, InvalidSubmissionError

_ONE_TENSOR = (
    b'{"status":"done","claimed_ns":%%d,"claimed_cpu_ns":%%d,"output":{"kind":"tensor",'
    b'"dtype":"%s","shape":%a,"stride":%a,"address":%%d,"device":"cpu"}}'
)
"""The reply on the CPU for an output that is one tensor: a format for its times and its address.

A submission that replies by itself can hide work for as long as that takes with a cold cache:
`is_cpu` takes 5 us then, and `device.type` 26 us.
"""
_NAMES = {dtype: name.encode() for name, dtype in values.DTYPES.items()}


def touch(data: Any, tensors: int) -> Any:  # noqa: ANN401 - any task's input
    """The calibration kernel on the CPU: read every input tensor once; return `tensors` tensors.

    Without one it returns a number: an answer may be far shorter than its input. It uses one
    thread: the CPU time of others that look for work counts later, not in `claimed_cpu_ns`.
    """
    found, threads = values.leaves(data), torch.get_num_threads()
    torch.set_num_threads(1)
    for tensor in found:
        torch.count_nonzero(values.bits(tensor))
    torch.set_num_threads(threads)
    if not found:
        return 0
    return found[-1] if tensors == 1 else [found[-1]] * tensors


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor's values are in host memory unchanged, and its description is valid."""
    here = tensor.is_cpu and tensor.layout is torch.strided and tensor.dtype in _NAMES
    simple = not tensor.is_conj() and not tensor.is_neg()
    return here and simple and tensor.dim() <= values.DIMENSIONS_MOST


def identity(data: Any) -> Any:  # noqa: ANN401 - any task's input
    """Return the input: the kernel of a candidate before it builds the submission."""
    return data


class Candidate:
    """The state of one candidate: its socket, its mapping of the arena, its kernel."""

    def __init__(self, orders: socket.socket, fds: list[int], spec: channel.CandidateSpec) -> None:
        self.orders = orders
        self.spec = spec
        self.builds, memory, *device = fds
        self.buffer = mmap.mmap(memory, spec.arena_size)
        shared = spec.shared
        self.gpu = None if shared is None else GpuEndpoint(self.buffer, shared, device)
        self.kernel: Callable[[Any], Any] = identity
        self.requests: dict[bytes, channel.CandidateRequest] = {}  # by their frames
        self.readers: dict[int, tuple[object, Callable[[], Any]]] = {}  # by the ids of requests
        self.replies: dict[tuple[Any, ...], bytes] = {}  # for one tensor of this kind
        self.kept: list[torch.Tensor] = []  # outputs must stay mapped until the judge has read them
        self.expected: object = None  # a right output without its tensors, if it has scalars

    def serve(self) -> None:
        """Execute requests until the judge closes the socket."""
        while frame := self.orders.recv(channel.FRAME_MAX):
            order = self.requests.get(frame) or self.requests.setdefault(
                frame, channel.CandidateRequest.model_validate_json(frame)
            )
            self.tell(self.answer(order))

    def answer(self, order: channel.CandidateRequest) -> channel.CandidateReply | bytes:
        """Execute one request; a failure of the submission becomes a reply."""
        match order.operation:
            case channel.Operation.BUILD:
                return guarded(lambda: self.build(order), channel.Status.BUILD_FAILED)
            case channel.Operation.ECHO:
                return self.echo()
            case channel.Operation.EXPECT:
                self.expected = self.restored(order)
                return channel.DONE_FRAME
            case channel.Operation.PACK:
                return guarded(self.pack, channel.Status.RAISED)
            case _:
                return guarded(
                    lambda: self.call(self.kernel_of(order), order), channel.Status.RAISED
                )

    def kernel_of(self, order: channel.CandidateRequest) -> Callable[[Any], Any]:
        """Return the kernel that a request is for."""
        match order.operation:
            case channel.Operation.PROFILE:
                return self.profiled
            case channel.Operation.TOUCH if self.gpu:
                return self.gpu.calibration_kernel(order)
            case channel.Operation.TOUCH:
                return lambda data: touch(data, order.tensors)
            case _:
                return self.kernel

    def profiled(self, data: Any) -> Any:  # noqa: ANN401 - any task's input
        """Call the kernel under the profiler and print the time of each operation."""
        with torch.profiler.profile() as profiler:
            output = self.kernel(data)
            if self.gpu is not None:
                torch.cuda.synchronize()
        order = "self_cpu_time_total" if self.gpu is None else "self_cuda_time_total"
        print(profiler.key_averages().table(sort_by=order, row_limit=20))  # noqa: T201 - the log
        return output

    def build(self, order: channel.CandidateRequest) -> channel.CandidateReply:
        """Import the submission and reuse what an earlier candidate compiled."""
        builds.adopt(self.builds, Path.home(), packed=order.built)
        try:
            built = kit.build(Path.home(), self.spec.recipe)
        except InvalidSubmissionError as error:
            return channel.CandidateReply(status=channel.Status.INVALID, message=str(error))
        except BuildFailedError as error:
            print(error.log)  # noqa: T201 - the log
            failed, message = channel.Status.BUILD_FAILED, str(error)[:MESSAGE_MAX]
            return channel.CandidateReply(status=failed, message=message)
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
    ) -> channel.CandidateReply | bytes:
        """Call the kernel on the current input and describe its output."""
        self.kept = []
        if self.gpu and order.train:
            return self.run_train(self.gpu, order, order.train)
        if not self.gpu:
            return self.call_on_cpu(kernel, order)
        if order.withheld:
            kernel = self.with_scalars(kernel, order)
        output, claimed_ns = self.gpu.call(kernel, order, self.described, self.tell)
        reply = self.described(output, lambda tensor: tensor)
        return reply.model_copy(update={"claimed_ns": claimed_ns})

    def with_scalars(
        self, kernel: Callable[[Any], Any], order: channel.CandidateRequest
    ) -> Callable[[Any], Any]:
        """Return the kernel for an input whose scalars are in the judge's next frame."""
        return lambda data: kernel(
            scalars.filled(order.value, self.orders.recv(channel.FRAME_MAX), data)
        )

    def run_train(
        self, gpu: GpuEndpoint, order: channel.CandidateRequest, train: channel.Train
    ) -> channel.CandidateReply:
        """Make every call of a train; the first frame describes their outputs."""
        orders = [channel.place_of(order, train, number) for number in range(train.calls)]
        kernels = [self.kernel] * train.calls
        if order.operation is channel.Operation.TOUCH:
            kernels = [gpu.calibration_kernel(each) for each in orders]
        outputs, claims = gpu.run_train(
            kernels, orders, self.described, self.tell, stamped=train.stamped
        )
        del outputs  # kept until now, because their memory must not be reused earlier
        return channel.CandidateReply(status=channel.Status.DONE, claims_ns=claims)

    def tell(self, reply: channel.CandidateReply | bytes) -> None:
        """Send a reply; a call on the GPU sends an additional one when it is queued."""
        self.orders.sendall(reply if isinstance(reply, bytes) else encoded(reply))

    def described(
        self, output: object, placed: Callable[[torch.Tensor], torch.Tensor]
    ) -> channel.CandidateReply:
        """Return the reply for an output; `placed` maps each tensor to the one to describe."""
        try:
            found = self.fields(output, placed)
        except values.UndescribableError as error:
            return channel.CandidateReply(status=channel.Status.INVALID, message=str(error))
        told = {"status": channel.Status.DONE, "output": found}
        return channel.CandidateReply.model_validate(told)

    def fields(
        self, output: object, placed: Callable[[torch.Tensor], torch.Tensor] = identity
    ) -> object:
        """Return the fields of the description of an output."""
        if output is None:
            raise values.UndescribableError("`custom_kernel` returned nothing")
        try:
            return values.fields(
                output, lambda tensor: self.whereabouts(placed(tensor)), keys_sorted=True
            )
        except values.UndescribableError as error:
            raise values.UndescribableError(f"the output is or contains {error}") from None

    def call_on_cpu(
        self, kernel: Callable[[Any], Any], order: channel.CandidateRequest
    ) -> channel.CandidateReply | bytes:
        """Call the kernel on the CPU and time it; `framed` writes the reply quickly.

        The wall time includes reading what is withheld and, in calibration, describing a right
        output's scalars: both count for every kernel, and are no part of calibration's overhead.
        The CPU time does not: a submission does it sooner by itself, so a window can hide as much.
        """
        data = None if order.value is None and order.withheld else self.restored(order)
        self.orders.sendall(channel.READY_FRAME)
        frame = self.orders.recv(channel.FRAME_MAX)
        begin = time.perf_counter_ns()
        if order.value is None:
            whole = channel.CandidateRequest.model_validate_json(frame)
            data = arena.reader(self.buffer, whole.value or values.ScalarNode())()
        elif order.withheld:
            data = scalars.filled(order.value, frame, data)
        used = time.process_time_ns()
        output = kernel(data)
        used = time.process_time_ns() - used
        if self.expected is not None and order.operation is channel.Operation.TOUCH:
            self.framed(self.expected, 0, 0)
        return self.framed(output, time.perf_counter_ns() - begin, used)

    def restored(self, order: channel.CandidateRequest) -> Any:  # noqa: ANN401 - any task's input
        """Return the input that a request describes; its tensors are made at the first time."""
        if order.value is None:
            raise ValueError("a request without an input")
        if id(order) not in self.readers:
            self.readers[id(order)] = order, arena.prepared_reader(self.buffer, order.value)
        return self.readers[id(order)][1]()

    def framed(self, output: object, wall: int, cpu: int) -> channel.CandidateReply | bytes:
        """Return the frame for an output on the CPU, in less time than pydantic models need."""
        if type(output) is torch.Tensor and _is_plain(output):
            self.kept.append(output)
            if reply := self.replies.get(key := (output.dtype, output.shape, output.stride())):
                return reply % (wall, cpu, output.data_ptr())
            self.replies[key] = _ONE_TENSOR % (_NAMES[key[0]], list(key[1]), list(key[2]))
            return self.replies[key] % (wall, cpu, output.data_ptr())
        told = {"status": "done", "claimed_ns": wall, "claimed_cpu_ns": cpu}
        try:
            whole = {**told, "output": self.fields(output)}
            frame = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()
        except values.UndescribableError as error:
            return channel.CandidateReply(status=channel.Status.INVALID, message=str(error))
        except ValueError:
            return TOO_LONG
        return frame if len(frame) <= channel.FRAME_MAX else TOO_LONG

    def echo(self) -> bytes:
        """Do only what every call on the CPU must do: wait for its input, and answer."""
        self.orders.sendall(channel.READY_FRAME)
        self.orders.recv(channel.FRAME_MAX)
        return channel.DONE_FRAME

    def whereabouts(self, tensor: torch.Tensor) -> dict[str, object]:
        """Return the fields of an output tensor's description, with its address in this process."""
        if tensor.layout is not torch.strided:
            raise values.UndescribableError(f"a tensor of layout {tensor.layout}")
        if tensor.dim() > values.DIMENSIONS_MOST:
            raise values.UndescribableError(f"a tensor of {tensor.dim()} dimensions")
        plain = tensor.detach().resolve_conj().resolve_neg()
        self.kept.append(plain)
        return {
            "kind": "tensor",
            "dtype": str(plain.dtype).removeprefix("torch."),
            "shape": tuple(plain.shape),
            "stride": plain.stride(),
            "address": plain.data_ptr(),
            "device": plain.device.type,
        }


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
    kept = frozenset({orders.fileno(), *others})
    layers, missing = isolate.enter(spec.limits, announce, keep_fds=kept, gpu=gpu)
    torch.set_num_threads(spec.threads)
    if gpu:
        limit_copy_queues()
        make_context()
    if isinstance(spec, channel.SpareSpec):
        spec, others = assigned(orders)
    if not gpu:
        syscalls.keep_freed_memory(spec.limits.memory // 16, spec.ready_memory)
    files, *memory = others
    candidate = Candidate(orders, memory, spec)
    write_files(files)
    address = candidate.gpu.local.data_ptr() if candidate.gpu else 0
    ready = channel.CandidateReady(layers=layers, missing=missing, device_address=address)
    orders.sendall(channel.encode(ready))
    candidate.serve()


def assigned(orders: socket.socket) -> tuple[channel.CandidateSpec, list[int]]:
    """Wait for the candidate that this spare becomes; return its specification and descriptors.

    Exit if the judge closes the socket.
    """
    orders.sendall(channel.encode(channel.SpareStarted()))
    frame, fds = channel.receive(orders, channel.FRAME_MAX, channel.FDS)
    if not frame:
        os._exit(0)
    return channel.CandidateSpec.model_validate_json(frame), fds
