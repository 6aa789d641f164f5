import errno
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from runners.contract.evaluation import Limits
from runners.harness import candidate as program
from runners.harness.arena import Arena, lay_out
from runners.harness.candidate import Candidate
from runners.harness.channel import (
    FRAME_MAX,
    GO_FRAME,
    READY_FRAME,
    Enlistment,
    Operation,
    Order,
    Reply,
    Status,
    encode,
    pair,
)
from runners.harness.values import ScalarNode, TensorNode

ENLISTMENT = Enlistment(
    limits=Limits(), threads=1, language="python", submission_file="kernel.py", arena_size=1 << 20
)
INPUT = (torch.arange(4.0), torch.zeros(2))


class Judge:
    """The judge's end, with a candidate in this process that runs no submitted code."""

    def __init__(self, arena: Arena, line: socket.socket, made: Candidate) -> None:
        self.arena = arena
        self.line = line
        self.candidate = made

    def ask(self, operation: Operation, value: object = INPUT) -> Reply:
        """Give one order as the judge does: order, READY, input, GO, reply."""
        node = lay_out(value).node
        if operation is Operation.BUILD:
            return self.candidate.answer(Order(operation=operation))
        self.line.sendall(GO_FRAME)
        self.arena.write(node, value)
        reply = self.candidate.answer(Order(operation=operation, value=node))
        assert self.line.recv(FRAME_MAX) == READY_FRAME
        return reply


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    ours, theirs = pair()
    with Arena(ENLISTMENT.arena_size) as arena, ours, theirs:
        yield Judge(arena, ours, Candidate(theirs, [arena.fd], ENLISTMENT))


def kernel(judge: Judge, body: Callable[[object], object]) -> Reply:
    judge.candidate.kernel = body
    return judge.ask(Operation.RUN)


def test_a_kernel_sees_the_input_and_its_output_is_described(judge: Judge) -> None:
    seen: list[object] = []

    def body(data: object) -> object:
        seen.append(data)
        return {"sum": torch.ones(3, dtype=torch.int32), "n": 2}

    reply = kernel(judge, body)

    assert torch.equal(seen[0][0], INPUT[0])  # type: ignore[index]
    assert reply.status is Status.DONE
    (name, node), (_, number) = reply.output.items  # type: ignore[union-attr]
    assert name == "sum"
    assert isinstance(node, TensorNode)
    assert (node.dtype, node.shape, node.stride, node.device) == ("int32", (3,), (1,), "cpu")
    assert node.address == judge.candidate.kept[0].data_ptr()
    assert number == ScalarNode(value=2)
    assert reply.claimed_ns > 0


def test_the_trusted_reader_gives_the_last_input_back(judge: Judge) -> None:
    reply = judge.ask(Operation.TOUCH)

    assert reply.status is Status.DONE
    assert reply.output is not None
    assert judge.candidate.kept[0].shape == INPUT[1].shape
    assert program.touch(5) == 5


@pytest.mark.parametrize(
    ("source", "status", "words"),
    [
        ("def custom_kernel(data): return data", Status.DONE, ""),
        ("x = 1", Status.INVALID, "no `custom_kernel`"),
        ("x = (", Status.BUILD_FAILED, "kernel.py, line 1"),
        ("\n\nraise KeyError('gone')", Status.BUILD_FAILED, "KeyError: 'gone' (line 3)"),
        ("raise SystemExit(0)", Status.BUILD_FAILED, "SystemExit"),
        ("raise MemoryError", Status.MEMORY, "MemoryError"),
    ],
)
def test_an_import_ends_in_a_status(
    judge: Judge, tmp_path: Path, source: str, status: Status, words: str
) -> None:
    (tmp_path / "kernel.py").write_text(source)

    reply = judge.ask(Operation.BUILD)

    assert reply.status is status
    assert words in reply.message


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("no"), Status.RAISED),
        (KeyboardInterrupt(), Status.RAISED),
        (MemoryError(), Status.MEMORY),
        (torch.OutOfMemoryError(), Status.MEMORY),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 5 GB"), Status.MEMORY),
        (RuntimeError("shapes differ"), Status.RAISED),
        (OSError(errno.ENOSPC, "full"), Status.DISK),
        (OSError(errno.EFBIG, "large"), Status.DISK),
        (OSError(errno.ENOENT, "none"), Status.RAISED),
        (ValueError("x" * 5000), Status.RAISED),
    ],
)
def test_whatever_a_kernel_raises_becomes_a_status(
    judge: Judge, error: BaseException, status: Status
) -> None:
    def body(data: object) -> object:
        raise error

    assert kernel(judge, body).status is status


@pytest.mark.parametrize(
    ("output", "words"),
    [(None, "returned nothing"), ({1}, "type set"), (torch.eye(2).to_sparse(), "layout")],
)
def test_an_output_that_is_no_structure_is_invalid(
    judge: Judge, output: object, words: str
) -> None:
    reply = kernel(judge, lambda data: output)

    assert reply.status is Status.INVALID
    assert words in reply.message


def test_an_order_without_an_input_is_refused(judge: Judge) -> None:
    reply = judge.candidate.answer(Order(operation=Operation.RUN))

    assert (reply.status, "without an input" in reply.message) == (Status.RAISED, True)


def test_a_lazily_negated_or_conjugated_output_is_made_plain(judge: Judge) -> None:
    value = torch.tensor([1 + 2j, 3 - 1j])

    kernel(judge, lambda data: (value.conj(), value.conj().imag))

    assert [kept.tolist() for kept in judge.candidate.kept] == [[1 - 2j, 3 + 1j], [-2.0, 1.0]]


def test_orders_are_served_until_the_judge_hangs_up(judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("def custom_kernel(data): return data\n")
    served = threading.Thread(target=judge.candidate.serve)
    served.start()

    for _ in range(2):  # the second time the order is known already
        judge.line.sendall(encode(Order(operation=Operation.BUILD)))
        assert Reply.model_validate_json(judge.line.recv(FRAME_MAX)).status is Status.DONE
    judge.line.shutdown(socket.SHUT_RDWR)

    served.join(10)
    assert not served.is_alive()


def test_on_a_gpu_the_guest_calls_and_calibrates(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []

    def stand_in(node: object) -> Callable[[object], object]:
        made.append(node)
        return program.nothing

    monkeypatch.setattr(program, "stand_in", stand_in)
    guest = SimpleNamespace(call=lambda kernel, order: (kernel(5), (7.0, 3.0)))
    judge.candidate.guest = guest  # type: ignore[assignment]
    order = Order(operation=Operation.TOUCH, output=ScalarNode(value=1))

    replies = [judge.candidate.answer(order) for _ in range(2)]

    assert [reply.claimed_ns for reply in replies] == [7.0, 7.0]
    assert made == [order.output]  # made once for an output of that shape
    assert program.nothing(3) == 3


def test_what_an_earlier_call_gave_is_let_go(judge: Judge) -> None:
    for _ in range(3):
        kernel(judge, lambda data: torch.ones(2))

    assert len(judge.candidate.kept) == 1
