"""How long does a context on this GPU take, and do streams still run concurrently in ours?

Run from the repository root on a machine with a GPU:
    python tests/gpu/contexts.py [--repeat N]

A ranked run makes about seven contexts at once, one for each candidate. `limit_copy_queues` makes
them cheaper, which must not slow a kernel that uses several streams: the last columns are
microseconds of so many streams of three kernels each, queued stream by stream, without and with a
copy on the device between them. `DriverKeepAlive` only makes the first use of the driver faster.
"""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402 - found by the line above

from runners.harness.gpu.warm import DriverKeepAlive, limit_copy_queues  # noqa: E402 - likewise

AT_ONCE = 7
STREAMS = (1, 2, 4, 8)
KERNELS = 3
COPIED = 1 << 20
"""Bytes of each copy."""
CYCLES = 100_000
"""How long each kernel keeps one processor of the card busy."""
WORSE_MOST = 1.15
"""By which factor streams may be slower with one queue: so much differs from run to run."""


def nothing() -> None:
    """Keep the driver's own settings."""


SETTINGS: dict[str, Callable[[], None]] = {
    "the driver's own": nothing,
    "one for copies": limit_copy_queues,
}


def forked(body: Callable[[], object]) -> tuple[int, int]:
    """Fork a child that reports what the body returns and then waits; return its id and a pipe."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, json.dumps(body()).encode())
            signal.pause()
        finally:
            os._exit(1)
    os.close(writer)
    return pid, reader


def answered(reader: int) -> float:
    """What one child reported."""
    with os.fdopen(reader, "rb", buffering=0) as answer:
        return float(json.loads(answer.read(1 << 16) or b"NaN"))


def ended(pids: list[int]) -> None:
    """Kill the children and wait until they have exited."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        os.waitpid(pid, 0)


@contextmanager
def somebody() -> Iterator[None]:
    """Keep another process with a context, like the judge, during the block."""
    pid, reader = forked(begun)
    answered(reader)
    try:
        yield
    finally:
        ended([pid])


def begun() -> float:
    """Create a context and use it; return the seconds."""
    begin = time.perf_counter()
    torch.zeros(1, device="cuda").add_(1)
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def contexts(count: int, settings: Callable[[], None]) -> tuple[float, float]:
    """Seconds until `count` contexts at once can be used, and until all have ended."""

    def body() -> float:
        settings()
        return begun()

    begin = time.perf_counter()
    children = [forked(body) for _ in range(count)]
    for _, reader in children:
        answered(reader)
    up = time.perf_counter()
    ended([pid for pid, _ in children])
    return up - begin, time.perf_counter() - up


def sleep(cycles: int) -> None:
    """Queue a kernel of one block that only takes time."""
    torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]


def beside(streams: int, *, copying: bool) -> float:
    """Microseconds of this many streams of kernels that could all run at once; the best of ten."""
    data = torch.zeros(2 * streams, COPIED, dtype=torch.uint8, device="cuda")
    main = torch.cuda.current_stream()
    others = [torch.cuda.Stream() for _ in range(streams)]  # type: ignore[no-untyped-call]
    found = []
    for _ in range(10):
        opened = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        closed = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        sleep(10 * CYCLES)  # meanwhile all is queued
        opened.record()
        for number, stream in enumerate(others):
            stream.wait_stream(main)
            with torch.cuda.stream(stream):
                for _ in range(KERNELS):
                    sleep(CYCLES)
                    if copying:
                        data[2 * number].copy_(data[2 * number + 1])
        for stream in others:
            main.wait_stream(stream)
        closed.record()
        torch.cuda.synchronize()
        found.append(float(opened.elapsed_time(closed)) * 1e3)
    return min(found)


def streams(count: int, settings: Callable[[], None], *, copying: bool) -> float:
    """The same, in its own process with these settings."""

    def body() -> float:
        settings()
        return beside(count, copying=copying)

    pid, reader = forked(body)
    found = answered(reader)
    ended([pid])
    return found


def first_use(repeat: int) -> float:
    """Seconds for a context if no other process has one."""
    return median(contexts(1, nothing)[0] for _ in range(repeat))


def main() -> int:
    """Measure, and return the number of unexpected rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    alone = first_use(repeat)
    with closing(DriverKeepAlive()) as keeper:
        time.sleep(1.0)
        kept = first_use(repeat) if keeper.living else float("nan")
    lines, times = [], {}
    with somebody():
        for name, settings in SETTINGS.items():
            cells = []
            for count in (1, AT_ONCE):
                both = [contexts(count, settings) for _ in range(repeat)]
                cells += [f"{median(column):7.3f}" for column in zip(*both, strict=True)]
            times[name] = [
                streams(count, settings, copying=copying)
                for copying in (False, True)
                for count in STREAMS
            ]
            cells += [f"{each:7.0f}" for each in times[name]]
            lines.append(f"{name:18s}{' '.join(cells)}")
    print(f"a context on an idle GPU: {alone:.3f} s, with `DriverKeepAlive` {kept:.3f} s\n")
    heads = (
        "1 up",
        "1 down",
        f"{AT_ONCE} up",
        f"{AT_ONCE} down",
        *(f"{n} us" for n in 2 * STREAMS),
    )
    print(f"{'settings, seconds':18s}{' '.join(f'{head:>7s}' for head in heads)}")
    print("\n".join(lines))
    own, one = times.values()
    slow = sum(ours > WORSE_MOST * theirs for ours, theirs in zip(one, own, strict=True))
    print(f"\n{slow} numbers of streams slower with one queue for copies")
    return slow


if __name__ == "__main__":
    raise SystemExit(main())
