import errno
import fcntl
import os
import socket
import tarfile
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from runners.contract.evaluation import Limits
from runners.harness.candidate import program
from runners.harness.candidate.program import Candidate
from runners.harness.protocol import scalars
from runners.harness.protocol.arena import Arena, compact_description, lay_out
from runners.harness.protocol.builds import FOLDER, Builds
from runners.harness.protocol.channel import (
    FRAME_MAX,
    GO_FRAME,
    READY_FRAME,
    CandidateReply,
    CandidateRequest,
    CandidateSpec,
    Operation,
    Status,
    encode,
    has_room_for,
    pair,
)
from runners.harness.protocol.values import ScalarNode, SequenceNode, TensorNode, tensors
from runners.harness.supervision.template import pack_files
from runners.languages import Recipe

ENLISTMENT = CandidateSpec(
    limits=Limits(),
    threads=1,
    recipe=Recipe(language="py", submission_file="kernel.py"),
    arena_size=1 << 20,
)
INPUT = (torch.arange(4.0), torch.zeros(2))


class Judge:
    """The judge's end, with a candidate in this process that runs no submitted code."""

    def __init__(self, arena: Arena, builds: Builds, line: socket.socket, made: Candidate) -> None:
        self.arena = arena
        self.builds = builds
        self.line = line
        self.candidate = made

    def answer(self, order: CandidateRequest) -> CandidateReply:
        """Have one order answered."""
        reply = self.candidate.answer(order)
        return CandidateReply.model_validate_json(reply) if isinstance(reply, bytes) else reply

    def ask(self, operation: Operation, value: object = INPUT) -> CandidateReply:
        """Give one order as the judge does: order, READY, input, GO, reply."""
        node = lay_out(value).node
        if operation is Operation.BUILD:
            return self.answer(CandidateRequest(operation=operation))
        self.line.sendall(GO_FRAME)
        self.arena.write(node, value)
        reply = self.answer(CandidateRequest(operation=operation, value=node))
        assert self.line.recv(FRAME_MAX) == READY_FRAME
        return reply


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    ours, theirs = pair()
    builds = Builds(1 << 20)
    with Arena(ENLISTMENT.arena_size) as arena, ours, theirs:
        made = Candidate(theirs, [builds.fd, arena.fd], ENLISTMENT)
        yield Judge(arena, builds, ours, made)
    builds.close()


def kernel(judge: Judge, body: Callable[[object], object]) -> CandidateReply:
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
    (_, number), (name, node) = reply.output.items  # type: ignore[union-attr]
    assert name == "sum"  # by their keys, in whatever order a kernel fills them
    assert isinstance(node, TensorNode)
    assert (node.dtype, node.shape, node.stride, node.device) == ("int32", (3,), (1,), "cpu")
    assert node.address == judge.candidate.kept[0].data_ptr()
    assert number == ScalarNode(value=2)
    assert reply.claimed_ns > 0


@pytest.mark.parametrize(
    "output",
    [
        torch.ones(3, 4),
        torch.ones(3, 4).t(),
        torch.tensor(2.5, dtype=torch.bfloat16, requires_grad=True),
        torch.zeros(0, dtype=torch.uint16),
        torch.zeros([1] * 16),
        torch.tensor([1 + 2j]).conj(),
        torch.nn.Parameter(torch.ones(2)),
    ],
)
def test_one_tensor_on_the_cpu_is_described_as_in_a_structure(
    judge: Judge, output: torch.Tensor
) -> None:
    alone, together = kernel(judge, lambda _: output), kernel(judge, lambda _: [output])

    assert isinstance(together.output, SequenceNode)
    (inside,) = together.output.items
    assert isinstance(alone.output, TensorNode)
    assert isinstance(inside, TensorNode)
    moved = {"address": 0}
    assert alone.output.model_copy(update=moved) == inside.model_copy(update=moved)
    if not output.is_conj():
        assert alone.output.address == inside.address == output.data_ptr()


def test_a_tensor_of_too_many_dimensions_is_an_invalid_answer(judge: Judge) -> None:
    reply = kernel(judge, lambda _: torch.zeros([1] * 17))
    assert (reply.status, "17 dimensions" in reply.message) == (Status.INVALID, True)


def test_scalars_come_with_the_word_to_go(judge: Judge) -> None:
    value = {"n": 3, 5: [torch.ones(2), (None, 0.1, "text")]}
    given: list[object] = []
    judge.candidate.kernel = given.append
    node = lay_out(value).node
    order, frame = scalars.withheld(CandidateRequest(operation=Operation.RUN, value=node), ())
    judge.arena.write(node, value)
    judge.line.sendall(frame)

    judge.answer(order)

    assert str(given) == str([value])


def test_an_input_of_another_structure_comes_with_the_word_to_go(judge: Judge) -> None:
    value = [torch.ones(2), {"n": 3}]
    given: list[object] = []
    judge.candidate.kernel = given.append
    node = lay_out(value).node
    whole = CandidateRequest(operation=Operation.RUN, value=node)
    order, frame = scalars.withheld(whole, (), whole=True)
    judge.arena.write(node, value)
    judge.line.sendall(frame)

    judge.answer(order)

    assert order.value is None
    assert str(given) == str([value])


def test_an_echo_waits_for_its_turn_and_answers_without_an_input(judge: Judge) -> None:
    judge.candidate.kernel = lambda _: pytest.fail("called")
    judge.line.sendall(GO_FRAME)
    reply = judge.answer(CandidateRequest(operation=Operation.ECHO))
    assert judge.line.recv(FRAME_MAX) == READY_FRAME
    assert (reply.status, reply.output) == (Status.DONE, None)


def test_the_trusted_reader_describes_as_many_tensors_as_it_is_told(judge: Judge) -> None:
    node = lay_out(INPUT).node
    judge.line.sendall(GO_FRAME)
    judge.arena.write(node, INPUT)
    order = CandidateRequest(operation=Operation.TOUCH, value=node, tensors=3)
    reply = judge.answer(order)
    assert reply.output is not None
    assert [each.shape for each in tensors(reply.output)] == [INPUT[1].shape] * 3


def test_the_trusted_reader_gives_the_last_input_back(judge: Judge) -> None:
    reply = judge.ask(Operation.TOUCH)

    assert reply.status is Status.DONE
    assert reply.output is not None
    assert judge.candidate.kept[0].shape == INPUT[1].shape


def test_the_trusted_reader_answers_shortly_to_an_input_without_tensors(judge: Judge) -> None:
    """It gave the whole list back, and what describing it took was subtracted from every time."""
    reply = judge.ask(Operation.TOUCH, list(range(2000)))

    assert reply.status is Status.DONE
    assert reply.output == ScalarNode(value=0)


def test_filling_in_scalars_counts_as_wall_time_of_the_kernel_but_not_as_its_cpu_time(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def filled(*_: object) -> object:
        end = time.process_time_ns() + 20_000_000
        while time.process_time_ns() < end:
            pass
        return INPUT

    monkeypatch.setattr(scalars, "filled", filled)
    node = lay_out((*INPUT, 5)).node
    order, frame = scalars.withheld(CandidateRequest(operation=Operation.TOUCH, value=node), ())
    judge.line.sendall(frame)

    reply = judge.answer(order)

    assert reply.claimed_ns >= 20_000_000 > reply.claimed_cpu_ns


def test_describing_expected_scalars_counts_as_wall_time_of_calibration_but_not_as_its_cpu_time(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A candidate that described 1,500 numbers by itself in C was told 0.44 ms instead of 3."""
    described: list[object] = []
    expected = [0.5, {"n": 3}, None]

    def fields(value: object) -> object:
        described.append(value)
        end = time.process_time_ns() + 20_000_000
        while value == expected and time.process_time_ns() < end:
            pass
        return {"kind": "scalar"}

    monkeypatch.setattr(judge.candidate, "fields", fields)
    node = lay_out(expected).node
    told = judge.answer(CandidateRequest(operation=Operation.EXPECT, value=node))
    assert told == CandidateReply(status=Status.DONE)
    for _ in range(2):
        judge.line.sendall(GO_FRAME)
    value = lay_out([5]).node
    touched, ran = (
        judge.answer(CandidateRequest(operation=each, value=value))
        for each in (Operation.TOUCH, Operation.RUN)
    )

    assert touched.claimed_ns >= 20_000_000 > touched.claimed_cpu_ns
    assert ran.claimed_ns < 20_000_000
    assert described == [expected, 0, [5]]


def test_the_trusted_reader_reads_every_tensor_of_the_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[int] = []

    def count(tensor: torch.Tensor) -> None:
        read.append(tensor.data_ptr())

    monkeypatch.setattr(torch, "count_nonzero", count)
    parts = [torch.ones(3), torch.zeros(2), torch.ones(4, dtype=torch.complex64)]

    assert program.touch((parts[0], [parts[1], 5], parts[2]), 1) is parts[2]

    assert read == [each.data_ptr() for each in parts]


@pytest.mark.parametrize(("on_gpu", "order"), [(False, "self_cpu_time"), (True, "self_cuda_time")])
def test_the_table_of_a_profile_begins_with_what_took_longest_where_the_kernel_runs(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, *, on_gpu: bool, order: str
) -> None:
    sorted_by: list[str] = []

    def recorded(_: object, sort_by: str, **_limits: int) -> str:
        sorted_by.append(sort_by)
        return "the table"

    monkeypatch.setattr(torch.autograd.profiler_util.EventList, "table", recorded)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    judge.candidate.gpu = SimpleNamespace() if on_gpu else None  # type: ignore[assignment]

    judge.candidate.profiled(INPUT)

    assert sorted_by == [f"{order}_total"]


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


COMPLAINS = """
import subprocess
subprocess.run(["sh", "-c", "echo 'k.cu(3): error: no such thing' >&2; echo more; exit 1"],
               check=True, capture_output=True)
"""
EXTENSION = """
raise RuntimeError("Error building extension 'a': [1/2] c++ -c " + "x" * 5000
                   + "\\nFAILED: a.o\\nc++ -c y\\nmain.cpp:4:9: error: expected ';'\\n 4 | a\\n")
"""


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (COMPLAINS, "CalledProcessError: k.cu:3: error: no such thing (line 3)"),
        (EXTENSION, "RuntimeError: main.cpp:4: error: expected ';' (line 2)"),
    ],
)
def test_of_a_failed_build_the_first_error_is_the_message_and_commands_come_last(
    judge: Judge, tmp_path: Path, capfd: pytest.CaptureFixture[str], source: str, reason: str
) -> None:
    (tmp_path / "kernel.py").write_text(source)

    reply = judge.ask(Operation.BUILD)

    assert reply.message == reason
    said = "".join(capfd.readouterr())
    assert 0 <= said.index("error:") < said.index("-c")


def test_a_long_message_keeps_its_end(judge: Judge) -> None:
    def body(data: object) -> object:
        raise ValueError("at 3:4:\n" + "    line of a kernel\n" * 400 + "'x' is not defined")

    reply = kernel(judge, body)

    assert reply.message.startswith("ValueError: at 3:4:")
    assert "'x' is not defined" in reply.message
    assert len(reply.message) < 1000


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


def test_a_message_that_is_no_unicode_is_sent_all_the_same(judge: Judge) -> None:
    def body(data: object) -> object:
        raise ValueError("half of a character: \ud83d")

    assert kernel(judge, body).message.startswith("ValueError: half of a character: ?")


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (None, "returned nothing"),
        ({1}, "type set"),
        (torch.eye(2).to_sparse(), "layout"),
        (["caf\udce9"], "the output is or contains a text with lone surrogates"),
    ],
)
def test_an_output_that_is_no_structure_is_invalid(
    judge: Judge, output: object, words: str
) -> None:
    reply = kernel(judge, lambda data: output)

    assert reply.status is Status.INVALID
    assert words in reply.message


def test_an_order_without_an_input_is_refused(judge: Judge) -> None:
    reply = judge.answer(CandidateRequest(operation=Operation.RUN))

    assert (reply.status, "without an input" in reply.message) == (Status.RAISED, True)


def test_a_lazily_negated_or_conjugated_output_is_made_plain(judge: Judge) -> None:
    value = torch.tensor([1 + 2j, 3 - 1j])

    kernel(judge, lambda data: (value.conj(), value.conj().imag))

    assert [kept.tolist() for kept in judge.candidate.kept] == [[1 - 2j, 3 + 1j], [-2.0, 1.0]]


def test_what_a_kernel_does_to_its_input_does_not_remain(judge: Judge) -> None:
    """The tensors of a request are made once, and each call gets aliases of them."""
    value = {"list": [torch.arange(6.0).reshape(2, 3), 0.5], "empty": torch.zeros(0, 3)}
    seen: list[object] = []

    def body(data: dict[str, Any]) -> int:
        tensor, empty = data["list"].pop(0), data.pop("empty")
        noted = hasattr(tensor, "note")
        seen.append((tensor.shape, empty.shape, tensor.requires_grad, noted, data))
        tensor.note = 1
        empty.resize_(4)
        tensor.t_().requires_grad_()
        return 1

    judge.candidate.kernel = body
    order = CandidateRequest(operation=Operation.RUN, value=lay_out(value).node)
    for _ in range(3):
        judge.line.sendall(GO_FRAME)
        assert judge.answer(order).status is Status.DONE

    assert seen == [((2, 3), (0, 3), False, False, {"list": [0.5]})] * 3


def test_orders_are_served_until_the_judge_hangs_up(judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("def custom_kernel(data): return data\n")
    served = threading.Thread(target=judge.candidate.serve)
    served.start()

    for _ in range(2):  # the second time the order is known already
        judge.line.sendall(encode(CandidateRequest(operation=Operation.BUILD)))
        assert CandidateReply.model_validate_json(judge.line.recv(FRAME_MAX)).status is Status.DONE
    judge.line.shutdown(socket.SHUT_RDWR)

    served.join(10)
    assert not served.is_alive()


def test_on_a_gpu_the_guest_calls_and_calibrates(judge: Judge) -> None:
    asked: list[CandidateRequest] = []

    def calibration_kernel(order: CandidateRequest) -> Callable[[object], object]:
        asked.append(order)
        return program.identity

    guest = SimpleNamespace(
        call=lambda kernel, *_: (kernel(5), 7.0), calibration_kernel=calibration_kernel
    )
    judge.candidate.gpu = guest  # type: ignore[assignment]
    judge.candidate.kernel = lambda data: data + 1
    orders = [
        CandidateRequest(operation=operation) for operation in (Operation.TOUCH, Operation.RUN)
    ]

    replies = [judge.answer(order) for order in orders]

    assert [reply.claimed_ns for reply in replies] == [7.0] * 2
    assert [reply.output for reply in replies] == [ScalarNode(value=value) for value in (5, 6)]
    assert asked == orders[:1]  # the trusted one
    assert program.identity(3) == 3


def test_a_guest_may_tell_where_an_output_will_lie_before_its_call_is_done(judge: Judge) -> None:
    given, elsewhere = torch.ones(2), torch.zeros(2)

    class Guest:
        """Says that its call is queued and copies the output elsewhere."""

        def call(
            self,
            kernel: Callable[[object], object],
            order: CandidateRequest,
            described: Callable[[object, Callable[[torch.Tensor], torch.Tensor]], CandidateReply],
            tell: Callable[[CandidateReply], None],
        ) -> tuple[object, float]:
            output = kernel(order)
            tell(described(output, lambda tensor: elsewhere if tensor is given else tensor))
            return output, 7.0

    judge.candidate.gpu = Guest()  # type: ignore[assignment]
    judge.candidate.kernel = lambda _: {"sum": given, "n": 2}

    last = judge.answer(CandidateRequest(operation=Operation.RUN))
    first = CandidateReply.model_validate_json(judge.line.recv(FRAME_MAX))

    places = [tensors(reply.output)[0].address for reply in (first, last) if reply.output]
    assert places == [elsewhere.data_ptr(), given.data_ptr()]
    assert (first.claimed_ns, last.claimed_ns) == (0.0, 7.0)
    held = {kept.data_ptr() for kept in judge.candidate.kept}
    assert held == set(places)  # until the judge has read them


@pytest.mark.parametrize(
    ("output", "words"), [(None, "returned nothing"), (torch.eye(2).to_sparse(), "layout")]
)
def test_what_is_no_output_is_told_as_a_failure_in_the_first_frame_already(
    judge: Judge, output: object, words: str
) -> None:
    found = judge.candidate.described(output, lambda tensor: tensor)

    assert found.status is Status.INVALID
    assert words in found.message


def test_a_frame_that_is_too_long_is_told_as_a_failure(judge: Judge) -> None:
    judge.candidate.tell(judge.candidate.described([torch.ones(1)] * 3000, lambda each: each))

    told = CandidateReply.model_validate_json(judge.line.recv(FRAME_MAX))
    assert (told.status, "too many parts" in told.message) == (Status.INVALID, True)


@pytest.mark.parametrize(
    "part", [torch.ones(3, 4), None, 7, 0.1, "\u00fc\n", {"key": (True, [-0.0])}], ids=repr
)
def test_an_output_that_has_room_is_described(judge: Judge, part: object) -> None:
    """The judge tells by the reference's output whether a submission could describe such a one."""
    count = bisect_left(
        range(4000), 1, key=lambda n: not has_room_for(compact_description([part] * n))
    )
    most = [part] * (count - 1)

    found = judge.candidate.described(most, lambda each: each)

    assert kernel(judge, lambda _: most).status is Status.DONE
    assert kernel(judge, lambda _: most * 2).status is Status.INVALID
    assert len(encode(found)) <= FRAME_MAX


def test_what_an_earlier_call_gave_is_let_go(judge: Judge) -> None:
    for _ in range(3):
        kernel(judge, lambda data: torch.ones(2))

    assert len(judge.candidate.kept) == 1


def laid_out(home: Path, judge: Judge, content: bytes) -> Path:
    path = home / FOLDER / "extensions" / "made.so"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert judge.answer(CandidateRequest(operation=Operation.PACK)).status is Status.DONE
    path.unlink()
    return path


@pytest.mark.parametrize("built", [True, False])
def test_what_was_packed_is_unpacked_before_the_import_and_only_where_there_was_any(
    *, judge: Judge, tmp_path: Path, built: bool
) -> None:
    path = laid_out(tmp_path, judge, b"compiled")
    (tmp_path / "kernel.py").write_text(
        f"from pathlib import Path\nFOUND = Path({str(path)!r}).exists()\n"
        "def custom_kernel(data): return FOUND\n"
    )

    order = CandidateRequest(operation=Operation.BUILD, built=built)
    assert judge.answer(order).status is Status.DONE
    assert judge.candidate.kernel(INPUT) is built


def endless_headers() -> bytes:
    """An archive in which one header follows the other, which tarfile reads by recursion."""
    header = tarfile.TarInfo("x")
    header.type = tarfile.XHDTYPE
    return header.tobuf(tarfile.USTAR_FORMAT) * 1500


@pytest.mark.parametrize("left", [b"nonsense" * 512, endless_headers()], ids=["nonsense", "deep"])
def test_who_left_no_archive_compiles_for_itself(judge: Judge, tmp_path: Path, left: bytes) -> None:
    os.pwrite(judge.builds.fd, left, 0)
    (tmp_path / "kernel.py").write_text("def custom_kernel(data): return data\n")

    order = CandidateRequest(operation=Operation.BUILD, built=True)
    assert judge.answer(order).status is Status.DONE


def test_what_cannot_be_packed_is_a_failure_of_that_order_alone(
    judge: Judge, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / FOLDER / "large"
    path.parent.mkdir()
    path.write_bytes(bytes(2 << 20))

    assert judge.answer(CandidateRequest(operation=Operation.PACK)).status is Status.DISK
    assert capfd.readouterr() == ("", "")
    assert kernel(judge, lambda data: 1).status is Status.DONE


def test_candidates_that_start_at_once_lay_their_files_out_from_one_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    texts = {f"part{number}.py": f"x = {number}\n" * 50 for number in range(20)}
    shared = pack_files(texts)
    os.lseek(shared, 777, os.SEEK_SET)  # where another one has come to

    program.write_files(os.dup(shared))

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == texts
    assert os.lseek(shared, 0, os.SEEK_CUR) == 777  # nor is the other one disturbed
    os.close(shared)


def test_the_descriptor_of_the_files_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    shared = pack_files({})

    program.write_files(shared)

    with pytest.raises(OSError, match="Bad file descriptor"):
        fcntl.fcntl(shared, fcntl.F_GETFD)


def test_calibration_reads_its_input_with_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a thread that still runs has used is not in the CPU time that is subtracted."""
    threads: list[int] = []
    monkeypatch.setattr(torch, "count_nonzero", lambda _: threads.append(torch.get_num_threads()))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    program.touch([torch.ones(3), torch.ones(3)], 1)
    after = torch.get_num_threads()
    torch.set_num_threads(before)

    assert (threads, after) == ([1, 1], 2)
