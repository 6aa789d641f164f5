"""Which work in the window of a single call needs the GPU's switches between two contexts?

Run from the repository root on a machine with a GPU:
    python tests/gpu/switches.py [--repeat N]

Calibration subtracts the switches from every window. This process and a child play the judge and a
candidate: the judge's stream writes a word, which the child's queued work waits for, and then waits
for the child's word. The table has the windows in microseconds of a kernel, of copies within the
GPU, of copies between host and GPU, and of work by a thread of the host. The thread's work is a
loop of so many microseconds. Nothing freezes the child.
"""

import argparse
import ctypes
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402 - found by the line above

from runners.harness.gpu.memory import (  # noqa: E402 - likewise
    SEGMENT_BYTES,
    DeviceBuffer,
    await_word,
    call_driver,
    timed_event,
    write_word,
)

RELEASED, DONE = 0, 256
FLUSH_BYTES = 160 << 20
LONG = 40 << 20
"""Bytes of the longest copies."""
LIMIT_S = 10.0
"""After this time a window that does not end is an error."""
WORKER = r"""
#include <pthread.h>
#include <stdint.h>
#include <time.h>
static volatile uint32_t *asked, *answered;
static volatile long wanted_ns;
static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}
static void *serve(void *unused) {
    for (uint32_t turn = 0;;) {
        while (*asked == turn) continue;
        turn = *asked;
        for (const long begin = now(); now() - begin < wanted_ns;) continue;
        __sync_synchronize();
        *answered = turn;
    }
    return 0;
}
void start(void *asked_, void *answered_) {
    pthread_t thread;
    asked = asked_, answered = answered_;
    pthread_create(&thread, 0, serve, 0);
    pthread_detach(thread);
}
void work(long ns) { wanted_ns = ns; }
"""


def worker() -> ctypes.CDLL:
    """Compile and load the thread of the host."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "worker.c"), Path(folder, "worker.so")
        source.write_text(WORKER)
        compiler = ("cc", "-O2", "-shared", "-fPIC", "-pthread", "-o", str(library), str(source))
        subprocess.run(compiler, check=True)
        return ctypes.CDLL(str(library))


class Candidate:
    """Queues one piece of work for each line that it reads."""

    def __init__(self, shared: DeviceBuffer) -> None:
        self.words = shared.address
        self.stream = int(torch.cuda.current_stream().cuda_stream)
        self.device = torch.zeros(2, LONG, dtype=torch.uint8, device="cuda")
        self.host = torch.zeros(2, 1 << 20, dtype=torch.uint8).pin_memory()
        self.flags = torch.zeros(128, dtype=torch.int32).pin_memory()
        self.thread = worker()
        address = self.flags.data_ptr()
        self.thread.start(ctypes.c_void_p(address), ctypes.c_void_p(address + DONE))
        self.kinds: dict[str, Callable[[int, int], None]] = {
            "kernel": lambda *_: torch.cuda._sleep(1),  # type: ignore[no-untyped-call]
            "copy": self._copy,
            "transfer": self._transfer,
            "thread": self._thread,
        }

    def _copy(self, size: int, _: int) -> None:
        source, target = (ctypes.c_uint64(each.data_ptr()) for each in self.device)
        stream = ctypes.c_void_p(self.stream)
        call_driver("cuMemcpyDtoDAsync_v2", target, source, ctypes.c_size_t(size), stream)

    def _transfer(self, size: int, _: int) -> None:
        self.host[0, :size].copy_(self.device[0, :size], non_blocking=True)
        self.device[1, :size].copy_(self.host[0, :size], non_blocking=True)

    def _thread(self, us: int, turn: int) -> None:
        self.thread.work(ctypes.c_long(us * 1000))
        self.host[0, :8192].copy_(self.device[0, :8192], non_blocking=True)
        write_word(self.flags.data_ptr(), turn, self.stream)
        await_word(self.flags.data_ptr() + DONE, turn, self.stream)
        self.device[1, :8192].copy_(self.host[0, :8192], non_blocking=True)

    def queue(self, kind: str, amount: int, turn: int) -> None:
        """Queue the work between the two words of this turn."""
        await_word(self.words + RELEASED, turn, self.stream)
        self.kinds[kind](amount, turn)
        write_word(self.words + DONE, turn, self.stream)


def serve(line: socket.socket) -> None:
    """Queue what each line names, until the other end closes."""
    _, (fd,), _, _ = socket.recv_fds(line, 1, 1)
    candidate = Candidate(DeviceBuffer.adopt(fd, SEGMENT_BYTES))
    for kind in candidate.kinds:  # loads what each needs
        candidate.kinds[kind](1, 1)
        torch.cuda.synchronize()
    turn = 1
    with line.makefile("rw") as lines:
        print(json.dumps("ready"), file=lines, flush=True)
        for order in lines:
            turn += 1
            kind, amount = json.loads(order)
            candidate.queue(kind, amount, turn)
            print(json.dumps("queued"), file=lines, flush=True)


class Judge:
    """Measures the windows."""

    def __init__(self, line: socket.socket) -> None:
        self.shared = DeviceBuffer.create(SEGMENT_BYTES)
        self.shared.bytes.zero_()
        self.start = torch.zeros(1, dtype=torch.int32).pin_memory()
        self.flush = torch.zeros(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
        self.opened, self.closed, self.turn = timed_event(), timed_event(), 1
        torch.cuda.synchronize()
        socket.send_fds(line, [b"x"], [self.shared.fd])
        self.lines = line.makefile("rw")
        self.lines.readline()

    def window_us(self, kind: str, amount: int) -> float:
        """One window in which the candidate does this work."""
        self.turn += 1
        print(json.dumps((kind, amount)), file=self.lines, flush=True)
        self.lines.readline()
        await_word(self.start.data_ptr(), self.turn)
        self.flush.add_(1)
        self.opened.record()
        write_word(self.shared.address + RELEASED, self.turn)
        await_word(self.shared.address + DONE, self.turn)
        self.closed.record()
        self.start[0] = self.turn
        end = time.monotonic() + LIMIT_S
        while not self.closed.query():  # type: ignore[no-untyped-call]
            if time.monotonic() > end:
                raise TimeoutError(f"{kind} {amount} does not end")
        return float(self.opened.elapsed_time(self.closed)) * 1e3


ROWS = (
    ("kernel", "an empty kernel", 0),
    ("copy", "64 KiB within the GPU", 64 << 10),
    ("copy", "40 MiB within the GPU", LONG),
    ("transfer", "64 KiB to the host and back", 64 << 10),
    ("transfer", "1 MiB to the host and back", 1 << 20),
    ("thread", "a thread, 0 us", 0),
    ("thread", "a thread, 100 us", 100),
    ("thread", "a thread, 300 us", 300),
)


def main() -> int:
    """Print the table; return 1 if a call without a kernel needs the switches as well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=40)
    repeat = parser.parse_args().repeat
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        serve(theirs)
        os._exit(0)
    theirs.close()
    judge, found = Judge(ours), {}
    print(f"{torch.cuda.get_device_name()}\n{'work':30}{'window':>8}{'- kernel':>10}")
    for kind, name, amount in ROWS:
        found[name] = median(judge.window_us(kind, amount) for _ in range(repeat))
        print(
            f"{name:30}{found[name]:8.2f}{found[name] - found['an empty kernel']:10.2f}", flush=True
        )
    judge.lines.close()
    ours.close()
    os.wait()
    return int(found["a thread, 0 us"] > found["an empty kernel"])


if __name__ == "__main__":
    raise SystemExit(main())
