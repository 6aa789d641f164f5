import array
import fcntl
import json
import os
import platform
import re
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from runners.contract.evaluation import Evaluation, EvaluationRequest, Isolation
from runners.contract.runner import Health
from runners.contract.task import Grader, Mode, Workload
from runners.contract.verdict import Verdict
from runners.harness import server
from runners.harness.evaluate import host_environment
from runners.harness.gpu import warm
from runners.harness.judge.host_candidate import threads_of
from runners.harness.protocol.channel import CandidateSpec, SpareSpec
from runners.harness.relay import CheckWatch
from runners.harness.sandbox import process_limits, syscalls
from runners.harness.sandbox.syscalls import adopt_orphans
from runners.harness.supervision.handle import CandidateHandle, StartError
from runners.harness.supervision.spares import ForkedProcess, Spares
from runners.harness.supervision.template import TemplateProcess, fork_template
from runners.harness.toolchains import nvcc
from runners.harness.verdicts import MachineError, VerdictError
from runners.languages import cuda, python
from tests.doubles.judging import SORT, SORTED, make_judging, make_sort_task
from tests.unit.runners.harness.conftest import OPEN

CHAINS = """
import os, signal
for _ in range(2):
    os.fork()
for _ in range(60):  # the tip of a chain is younger than any listing of it
    if os.fork():
        signal.pause()
signal.pause()
"""
"""Four chains of processes that grow while they are hunted."""

Ask = Callable[[bytes], tuple[int, list[dict[str, Any]]]]


@pytest.fixture
def stdin() -> Iterator[int]:
    """The writing end of what this process has as standard input meanwhile."""
    before = os.dup(0)
    reader, writer = os.pipe()
    os.dup2(reader, 0)
    os.close(reader)
    yield writer
    os.dup2(before, 0)
    os.close(before)


@pytest.fixture(autouse=True)
def own_alarm() -> Iterator[None]:
    handler = signal.getsignal(signal.SIGALRM)
    yield
    signal.signal(signal.SIGALRM, handler)


@pytest.fixture(autouse=True)
def readable() -> Iterator[None]:
    yield
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)  # a server makes itself unreadable


def lines_of(fd: int) -> list[dict[str, Any]]:
    with os.fdopen(fd) as text:
        return [json.loads(line) for line in text]


@pytest.fixture
def ask(stdin: int) -> Ask:
    """Has one line answered by `_serve_one`, in this process."""

    def answer(line: bytes) -> tuple[int, list[dict[str, Any]]]:
        os.write(stdin, line)
        os.close(stdin)
        reader, writer = os.pipe()
        status = server._serve_one(writer, OPEN)
        os.close(writer)
        first, *lines = lines_of(reader)
        assert first == {"health": {"unfit": "", "scrubbed": 0}}
        return status, lines

    return answer


def test_a_request_is_answered_after_its_progress(ask: Ask) -> None:
    request = make_judging()

    status, lines = ask(request.model_dump_json().encode() + b"\n")

    assert status == 0
    assert [next(iter(line)) for line in lines[:-1]] == ["progress"] * (len(lines) - 1)
    found = Evaluation.model_validate_json(json.dumps(lines[-1]["evaluation"]))
    assert (found.request_id, found.verdict) == (request.request_id, Verdict.PASSED)


@pytest.mark.parametrize("gpu", [True, False])
def test_the_gpu_is_made_ready_before_there_is_a_request(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *, gpu: bool
) -> None:
    steps: list[str] = []

    def end_of_input(_fd: int) -> bytes:
        steps.append("read")
        return b""

    def fit(_: object) -> Health:
        steps.append("examine")
        return Health(scrubbed=8)

    monkeypatch.setattr(server, "examine", fit)
    monkeypatch.setattr(server, "_prepare_spares", lambda _: steps.append("spares"))
    monkeypatch.setattr(server, "_read_line", end_of_input)

    assert server._serve_one(1, OPEN, () if gpu else None) == server.END_OF_INPUT
    assert steps == (["examine", "spares", "read"] if gpu else ["read"])
    said = json.loads(capfd.readouterr().out)
    assert said == {"health": {"unfit": "", "scrubbed": 8 if gpu else 0}}


@pytest.mark.parametrize(("room_for", "most"), [(99, 7), (1, 1)])
def test_spares_have_the_usual_limits_and_leave_most_of_the_gpus_memory(
    monkeypatch: pytest.MonkeyPatch, room_for: int, most: int
) -> None:
    asked: list[tuple[SpareSpec, int, int]] = []
    monkeypatch.setattr(server, "max_spares", lambda: room_for)
    spares = SimpleNamespace(
        prepare=lambda spec, most, request_fd: asked.append((spec, most, request_fd))
    )

    server._prepare_spares(cast("TemplateProcess", SimpleNamespace(spares=spares)))

    ((spec, count, request_fd),) = asked
    assert (spec.limits, spec.gpu) == (make_judging().limits, True)
    assert (count, request_fd) == (most, 0)


def test_an_evaluation_in_a_waiting_judge_uses_its_spares(
    stdin: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[object] = []
    read_line, take = server._read_line, Spares.take

    def fork_with_spare() -> TemplateProcess:
        template, limits = fork_template(), make_judging().limits
        adopt_orphans()
        spec = SpareSpec(limits=limits, threads=threads_of(limits, gpu=False), gpu=False)
        template.spares.prepare(spec, 1, request_fd=0)
        return template

    def reading(fd: int) -> bytes:
        os.write(stdin, make_judging().model_dump_json().encode() + b"\n")
        return read_line(fd)

    def taking(spares: Spares, spec: CandidateSpec, fds: list[int]) -> ForkedProcess | None:
        used.append(take(spares, spec, fds))
        return cast("ForkedProcess | None", used[-1])

    monkeypatch.setattr(server, "fork_template", fork_with_spare)
    monkeypatch.setattr(server, "_read_line", reading)
    monkeypatch.setattr(Spares, "take", taking)
    reader, writer = os.pipe()
    assert server._serve_one(writer, OPEN) == 0
    os.close(writer)
    os.close(stdin)

    *_, last = lines_of(reader)
    assert last["evaluation"]["verdict"] == "passed"
    assert len(used) == 1
    assert all(used)


def test_on_a_gpu_that_is_not_fit_no_request_is_read(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server, "examine", lambda _: Health(unfit="GPU 0: it is on fire"))
    monkeypatch.setattr(server, "_read_line", lambda _: pytest.fail("it read a request"))

    assert server._serve_one(1, OPEN, ()) == server.UNFIT
    assert "on fire" in capfd.readouterr().out


@pytest.mark.parametrize("line", [b"no json\n", b"{}\n", b"\xff\xfe\n", b"[" * 5000 + b"\n"])
def test_what_is_no_request_is_an_error_and_no_evaluation(ask: Ask, line: bytes) -> None:
    status, lines = ask(line)

    assert status == 0
    assert [list(each) for each in lines] == [["error"]]


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes of standard input were still unread whenever a template was forked."""
    counts: list[int] = []

    def forking() -> TemplateProcess:
        count = array.array("i", [0])
        fcntl.ioctl(0, termios.FIONREAD, count)
        counts.append(count[0])
        return fork_template()

    monkeypatch.setattr(server, "fork_template", forking)
    return counts


def test_a_template_is_forked_before_the_request_is_read(ask: Ask, unread: list[int]) -> None:
    line = make_judging().model_dump_json().encode() + b"\n"

    ask(line)

    assert unread == [len(line)]


OURS = [StartError("it did not come up"), MachineError("the GPU does not run as it should")]


@pytest.mark.parametrize("failure", OURS, ids=["start", "machine"])
def test_a_failure_of_our_own_is_an_error_and_no_evaluation(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def failing(*_: object, **__: object) -> Evaluation:
        raise failure

    monkeypatch.setattr(server, "evaluate", failing)

    assert ask(make_judging().model_dump_json().encode() + b"\n") == (
        0,
        [{"error": str(failure)}],
    )


@pytest.mark.parametrize("failure", OURS, ids=["start", "machine"])
def test_a_failure_of_our_own_has_a_status_of_its_own_when_asked_once(
    stdin: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    failure: Exception,
) -> None:
    def failing(*_: object, **__: object) -> Evaluation:
        raise failure

    monkeypatch.setattr(server, "evaluate", failing)
    os.write(stdin, make_judging().model_dump_json().encode())
    os.close(stdin)
    monkeypatch.setattr("sys.stdin", os.fdopen(0, closefd=False))
    reader, writer = os.pipe()

    assert server._answer_one(writer, OPEN) == server.NO_EVALUATION
    os.close(writer)
    assert lines_of(reader) == []
    assert f"no evaluation: {failure}" in capsys.readouterr().err


def test_the_end_of_input_has_a_status_of_its_own(ask: Ask) -> None:
    assert ask(b"") == (server.END_OF_INPUT, [])


def test_a_line_may_come_in_pieces() -> None:
    reader, writer = os.pipe()
    feeder = threading.Thread(
        target=lambda: (
            [os.write(writer, b"x" * 50_000) for _ in range(5)],
            os.write(writer, b"\n"),
        )
    )
    feeder.start()

    assert server._read_line(reader) == b"x" * 250_000 + b"\n"
    feeder.join()
    os.close(reader)
    os.close(writer)


def test_a_line_that_is_too_long_is_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUEST_MAX", 10)
    reader, writer = os.pipe()
    os.write(writer, b"x" * 100)

    assert server._read_line(reader) == b""
    os.close(reader)
    os.close(writer)


def test_hanging_task_code_is_ended_by_the_alarm(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "GRACE_S", -0.5)
    hanging = SORT.replace("    generator =", "    while True: pass\n    generator =")
    task = make_sort_task(hanging, test_timeout=1)

    _, lines = ask(make_judging(task=task).model_dump_json().encode() + b"\n")

    answer = lines[-1]["evaluation"]
    assert answer["verdict"] == "task_error"
    assert "longer than its time limits" in answer["message"]
    assert answer["wall_s"] < 10  # else it was pytest's own alarm


@pytest.mark.parametrize(
    ("slow", "verdict"),
    [("0.032", "timed_out"), ("0.001", "task_error")],
    ids=["late", "early"],
)
def test_the_task_is_not_blamed_for_a_check_of_a_late_answer(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, slow: str, verdict: str
) -> None:
    monkeypatch.setattr(server, "GRACE_S", 0.0)
    endless = SORT.replace("    right =", "    while len(output) > 1: pass\n    right =")
    tests = tuple(Workload(args={"size": size, "seed": 1}) for size in (1, 100))
    task = make_sort_task(endless, test_timeout=4, tests=tests)
    sleep = f"    time.sleep(len(data[0]) * {slow})"
    source = f"import time\n{SORTED}".replace("    return", f"{sleep}\n    return")

    _, lines = ask(make_judging(source, task=task).model_dump_json().encode() + b"\n")

    assert lines[-1]["evaluation"]["verdict"] == verdict


@pytest.mark.parametrize("name", ["ref_kernel", "_right"])
def test_the_task_is_not_blamed_for_a_check_that_ends_for_the_references_output(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(server, "GRACE_S", 0.0)
    dividing = SORT.replace("ref_kernel", name).replace(
        "    right =", "    while float(output[0]) == 1.0: pass\n    right ="
    )
    source = SORTED.replace("return torch.sort(data[0]).values", "return torch.ones_like(data[0])")
    task = make_sort_task(dividing, test_timeout=3)

    _, lines = ask(make_judging(source, task=task).model_dump_json().encode() + b"\n")

    answer = lines[-1]["evaluation"]
    assert (answer["verdict"], answer["stage"]) == ("timed_out", "test")
    assert "checked the output" in answer["message"]


@pytest.mark.parametrize("mode", [Mode.TEST, Mode.BENCHMARK])
def test_a_verdict_stands_if_the_alarm_comes_while_its_candidate_is_being_killed(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    """The task is not blamed for a candidate that exits slowly."""
    close = CandidateHandle.close

    def slowly(handle: CandidateHandle) -> None:
        close(handle)
        time.sleep(2)

    monkeypatch.setattr(server, "GRACE_S", 1.0)
    hanging = "calls = []\ndef custom_kernel(data):\n    calls.append(1)\n"
    hanging += "    while len(calls) > 2: pass\n    return data[0].sort().values\n"
    tests = (Workload(args={"size": 100, "seed": 1}),) * 3
    task = make_sort_task(tests=tests, test_timeout=4, benchmark_timeout=4)
    request = make_judging(hanging, mode, task=task)
    monkeypatch.setattr(CandidateHandle, "close", slowly)

    _, lines = ask(request.model_dump_json().encode() + b"\n")

    answer = lines[-1]["evaluation"]
    assert answer["verdict"] == "timed_out"
    shares = r" \(the kernel took [\d.]+ s, inputs, reference and checks [\d.]+ s\)"
    assert re.fullmatch(f"the time limit passed({shares})?", answer["message"])


def test_an_attempt_after_others_has_only_the_time_that_they_left(ask: Ask) -> None:
    hanging = "def custom_kernel(data):\n    while True: pass\n"
    request = make_judging(hanging, used_s=20 + server.GRACE_S - 1.5)  # of a limit of 20 s

    began = time.monotonic()
    _, lines = ask(request.model_dump_json().encode() + b"\n")

    assert "earlier attempts, which failed, left too little time" in lines[-1]["error"]
    assert time.monotonic() - began < 10


def test_the_alarm_is_off_after_an_evaluation(ask: Ask) -> None:
    ask(make_judging().model_dump_json().encode() + b"\n")

    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    with pytest.raises(VerdictError):
        server._out_of_time(0, None)


def test_the_whole_input_is_one_request_when_asked_once(
    stdin: int, monkeypatch: pytest.MonkeyPatch, unread: list[int]
) -> None:
    request = make_judging()
    with os.fdopen(stdin, "wb") as sink:
        sink.write(request.model_dump_json(indent=2).encode())
    monkeypatch.setattr("sys.stdin", os.fdopen(0, closefd=False))
    reader, writer = os.pipe()

    assert server._answer_one(writer, OPEN) == 0
    os.close(writer)
    with os.fdopen(reader) as text:
        found = Evaluation.model_validate_json(text.read())
    assert found.verdict is Verdict.PASSED
    assert unread == [len(request.model_dump_json(indent=2))]


def test_an_input_that_is_no_request_is_said_when_asked_once(
    stdin: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    os.write(stdin, b"no json")
    os.close(stdin)
    monkeypatch.setattr("sys.stdin", os.fdopen(0, closefd=False))
    reader, writer = os.pipe()

    assert server._answer_one(writer, OPEN) == server.NO_EVALUATION
    os.close(writer)
    assert os.read(reader, 1) == b""
    os.close(reader)
    assert "no evaluation" in capsys.readouterr().err


def in_a_server(body: Callable[[int], int], watch: CheckWatch | None = None) -> int:
    """Run a judge in a process of its own, which ends all its children: pytest's must live."""
    pid = os.fork()
    if pid == 0:
        adopt_orphans()
        try:
            os._exit(server._run_judge(body, None, watch) % 256)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_judges_status_comes_back_and_its_prints_go_elsewhere() -> None:
    def body(out: int) -> int:
        os.write(1, b"task code prints\n")
        return 5 if out != 1 else 6

    assert in_a_server(body) == 5


@pytest.mark.parametrize(
    ("written", "passed_on", "status"),
    [
        ([b'{"health": 1}\n{"pro', b'gress": 2}\n{"error": 3}\n{"health": 4}\n'], [1, 2, 3], 0),
        ([b'{"health": 1}\n', b'{"evaluation": 2}\n{"error": 3}\n'], [1, 2], 0),
        ([b'{"health": 1}\n{"health": 2}\n{"evaluation": 3}\n'], [1], 9),
        ([b'{"progress": 1}\n'], [], 9),
        ([b'{"health": 1}\n{"evaluation": %s2}\n' % (b" " * 200_000)], [1, 2], 0),
        ([], [], 9),
    ],
)
def test_a_judges_lines_are_passed_on_up_to_its_answer(
    capfd: pytest.CaptureFixture[str], written: list[bytes], passed_on: list[int], status: int
) -> None:
    def body(out: int) -> int:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        for piece in written:
            os.write(out, piece)
            select.select([], [], [], 0.02)
        return 9

    assert in_a_server(body) == status
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [next(iter(line.values())) for line in lines] == passed_on


@pytest.mark.parametrize(
    ("evaluation", "status", "keys"),
    [(b"3", 0, [1, 2, 3]), (b"", -signal.SIGKILL % 256, [1, 2])],
)
def test_a_judge_whose_check_does_not_end_is_killed_and_answered_for(
    capfd: pytest.CaptureFixture[str], evaluation: bytes, status: int, keys: list[int]
) -> None:
    watch = CheckWatch()
    watch.evaluations_at = lambda *_: (evaluation, b"")

    def body(out: int) -> int:
        os.write(out, b'{"health": 1}\n')
        watch.begin(0.1)
        os.write(out, b'{"progress": 2}\n')
        with watch.checking():
            time.sleep(60)
        return 0

    assert in_a_server(body, watch) == status
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [next(iter(line.values())) for line in lines] == keys


def test_a_judge_that_its_check_crashes_is_answered_for(capfd: pytest.CaptureFixture[str]) -> None:
    watch = CheckWatch()
    watch.evaluations_at = lambda *_: (b"3", b"4")

    def body(out: int) -> int:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        os.write(out, b'{"health": 1}\n')
        with watch.checking():
            os.kill(os.getpid(), signal.SIGSEGV)
        return 0

    assert in_a_server(body, watch) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert lines == [{"health": 1}, {"evaluation": 4}]


def test_a_judge_that_is_asked_once_is_answered_for_too(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def endless(_: int, __: Isolation, watch: CheckWatch) -> int:
        watch.evaluations_at = lambda *_: (b"an evaluation", b"")
        watch.begin(0.1)
        with watch.checking():
            time.sleep(60)
        return 0

    monkeypatch.setattr(server, "_answer_one", endless)
    monkeypatch.setattr(server, "_kill_leftovers", lambda *_: None)  # pytest's must live

    assert server.answer_once(OPEN) == 0
    assert capfd.readouterr().out == "an evaluation\n"


def test_a_judge_that_changes_its_server_is_the_last_one(stdin: int) -> None:
    def body(_: int) -> int:
        os.sched_setscheduler(os.getppid(), os.SCHED_IDLE, os.sched_param(0))
        return 0

    assert in_a_server(body) == 1


def test_a_judge_that_writes_a_request_is_the_last_one(stdin: int) -> None:
    def body(_: int) -> int:
        with Path("/proc/self/fd/0").open("wb") as requests:
            requests.write(b"{}\n")
        return 0

    assert in_a_server(body) == 1


def test_the_next_request_may_follow_a_whole_answer_at_once(stdin: int) -> None:
    lines, output = os.pipe()
    goes, gone = os.pipe()

    def body(out: int) -> int:
        os.write(out, b'{"health": 1}\n{"evaluation": 2}\n')
        os.read(goes, 1)  # a judge on a GPU takes a while to end
        return 0

    pid = os.fork()
    if pid == 0:
        adopt_orphans()
        os.close(gone)
        os.dup2(output, 1)
        os._exit(server._run_judge(body) % 256)
    os.close(output)
    answer = b""
    while b'{"evaluation": 2}' not in answer:
        answer += os.read(lines, 1 << 10)
    if answer.endswith(b"\n"):
        os.write(stdin, b"{}\n")
    os.close(gone)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert (answer + os.read(lines, 1 << 10)).endswith(b'{"evaluation": 2}\n')
    for fd in (lines, goes):
        os.close(fd)


def test_a_judge_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "END_S", 0.05)

    def body(out: int) -> int:
        os.write(out, b"nothing that a judge says\n")
        signal.pause()
        return 0

    assert in_a_server(body) == -signal.SIGKILL % 256


def test_a_judge_that_dies_leaves_nothing() -> None:
    reader, writer = os.pipe()

    def body(_: int) -> int:
        if os.fork() == 0:
            signal.pause()
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    assert in_a_server(body) == -signal.SIGKILL % 256
    os.close(writer)
    assert os.read(reader, 1) == b""  # nobody holds the writing end any more
    os.close(reader)


def test_a_judge_that_fails_says_where(capfd: pytest.CaptureFixture[str]) -> None:
    def body(_: int) -> int:
        raise ZeroDivisionError("an error of ours")

    assert in_a_server(body) == 70
    said = capfd.readouterr().err
    assert "an error of ours" in said
    assert "in body" in said


def test_no_judge_starts_a_program_to_describe_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    platform._platform_cache.clear()  # type: ignore[attr-defined]
    monkeypatch.setattr(platform, "_uname_cache", None)

    def judging(*_: object) -> int:
        monkeypatch.setattr(subprocess, "Popen", None)
        assert host_environment().platform == platform.platform()
        return 0

    monkeypatch.setattr(server, "_serve_all", judging)
    assert server.serve(OPEN) == 0


def test_what_forks_while_it_is_hunted_is_ended_too() -> None:
    reader, writer = os.pipe()

    def body(_: int) -> int:
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-ISc", CHAINS])  # noqa: S606
        select.select([], [], [], 0.1)
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    assert in_a_server(body) == -signal.SIGKILL % 256
    os.close(writer)
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_server_that_cannot_end_what_a_judge_left_ends_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process_limits, "kill_beneath", lambda *_: False)

    with pytest.raises(TimeoutError, match="still runs"):
        server._kill_leftovers()


@pytest.mark.parametrize(
    ("statuses", "printed"),
    [
        ([64], ["ready"]),
        ([0, 0, 64], ["ready"]),
        ([-9, 70, 64], ["ready", "error", "error"]),
    ],
)
def test_the_server_goes_on_until_its_input_ends(
    stdin: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    statuses: list[int],
    printed: list[str],
) -> None:
    os.close(stdin)
    monkeypatch.setattr(server, "_run_judge", lambda *_: statuses.pop(0))

    assert server.serve(OPEN) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [next(iter(line)) for line in lines] == printed
    assert not statuses


def test_the_server_ends_when_its_gpu_is_not_fit(
    stdin: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.close(stdin)
    monkeypatch.setattr(server, "_run_judge", lambda *_: server.UNFIT)

    assert server.serve(OPEN) == server.UNFIT


@pytest.mark.parametrize("gpu", [True, False])
def test_who_serves_a_gpu_warms_up_before_it_says_that_it_is_ready(
    *,
    stdin: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    gpu: bool,
) -> None:
    os.close(stdin)
    monkeypatch.setattr(server, "_run_judge", lambda *_: server.END_OF_INPUT)
    monkeypatch.setattr(warm, "warm_up", lambda: os.write(1, b"warm\n"))

    assert server.serve(OPEN, gpu=gpu) == 0

    first, *_ = capfd.readouterr().out.splitlines()
    assert (first == "warm") is gpu


def test_asking_once_gives_the_judges_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_answer_one", lambda *_: 7)
    monkeypatch.setattr(server, "_kill_leftovers", lambda *_: None)  # pytest's must live

    assert server.answer_once(OPEN) == 7


def test_capabilities_name_the_sandbox() -> None:
    isolation = Isolation(outer="unshare", layers=("network",))

    found = server.capabilities(isolation)

    assert (found.gpus, found.isolation) == ({"CPU": 1}, isolation)


def test_capabilities_name_what_is_installed() -> None:
    found = server.capabilities(OPEN)

    assert {"torch", "numpy", "pydantic"} <= set(found.libraries)
    assert "cupy" not in found.libraries


def test_a_language_whose_toolchain_is_absent_is_not_offered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nvcc, "toolchain", lambda: None)
    monkeypatch.setattr(cuda, "toolchain", lambda *_: "NVRTC 13")
    assert server.capabilities(OPEN).languages == ("py", "cu")
    monkeypatch.setattr(cuda, "toolchain", lambda *_: None)
    assert server.capabilities(OPEN).languages == ("py",)
    monkeypatch.setattr(python, "toolchain", lambda *_: None)
    assert server.capabilities(OPEN).languages == ()
    monkeypatch.setattr(nvcc, "toolchain", lambda: "nvcc 13.0.88")
    assert server.capabilities(OPEN).languages == ("cu",)


def test_the_version_of_the_contract_is_the_requests() -> None:
    found = server.capabilities(OPEN)
    assert EvaluationRequest.model_fields["contract_version"].default == found.contract_version


def test_capabilities_name_both_graders() -> None:
    assert server.capabilities(OPEN).graders == tuple(Grader)
