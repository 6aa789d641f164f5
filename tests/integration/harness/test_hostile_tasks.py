"""What a task's own code may do to the warm server and to the evaluations after its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.contract.evaluation import EvaluationRequest
from runners.contract.verdict import Verdict
from tests.doubles.judging import SORT, Harness, make_judging, make_sort_task, serving

REPORTS = """
import fcntl, json, os, resource
from pathlib import Path

def check_implementation(data, output):
    return False, str(reported())

def tried(step, *arguments):
    try:
        return step(*arguments)
    except OSError as error:
        return error.strerror
"""
"""A task whose check reports what `reported` returns."""
PIPES = """
def reported():
    real = [fd for fd in map(int, os.listdir("/proc/self/fd")) if writes(fd)]
    for fd in real:
        os.write(fd, b'{"error": "its own"}\\n{"health": {"unfit":"","scrubbed":0}}\\n')
    line = b""
    while not line.endswith(b"\\n"):
        line += os.read(0, 1 << 20)
    request = json.loads(line)
    for fd in real:
        os.write(fd, json.dumps({"error": request["source"]}).encode() + b"\\n")

def writes(fd):
    try:
        return fd > 2 and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
    except OSError:
        return False
"""
"""Answers itself, says that it is ready, and answers the next request with its source."""
MEMORY = """
def reported():
    server = f"/proc/{os.getppid()}"
    return [tried(os.open, f"{server}/{name}", os.O_RDWR) for name in ("mem", "fd/1")]
"""
LEAVES = """
def reported():
    folders = ["/tmp/left", "/var/tmp/left", "/dev/shm/left"]
    return [tried(os.makedirs, each) for each in folders] and os.set_blocking(0, False)
"""
FINDS = """
def reported():
    left = [each for folder in ("/tmp", "/var/tmp", "/dev/shm") for each in os.listdir(folder)]
    return [each for each in left if not each.startswith("judge-")]
"""
LOCKS = """
def reported():
    if Path("/tmp/locked").exists():
        return None  # the judge has checked the reference's own output first
    os.makedirs("/tmp/locked/inside/more")
    for folder in ("/tmp/locked/inside", "/tmp/locked"):
        os.chmod(folder, 0)
    os.symlink("/usr", "/tmp/link")
    for number in range(9_000):  # their names are longer than the arguments of a program may be
        Path(f"/tmp/{number:0250}").touch()
"""
SHARE = Path("/proc/self/autogroup")
LOWERS_SHARE = """
def reported():
    if Path("/proc/self/autogroup").read_text().endswith("nice 19\\n"):
        return None  # as above; Linux lets a process write it only every tenth of a second
    with open("/proc/self/autogroup", "w") as share:
        share.write("19")
"""
READS_SHARE = """
def reported():
    return Path("/proc/self/autogroup").read_text().split()[1:]
"""
LIMITS = """
def reported():
    resource.prlimit(os.getppid(), resource.RLIMIT_DATA, (1 << 30, 1 << 30))
"""
MUTE = """
def reported():
    os._exit(0)
"""


@pytest.fixture
def harness() -> Iterator[Harness]:
    with serving() as served:
        yield served


def hostile(code: str) -> EvaluationRequest:
    return make_judging(task=make_sort_task(SORT + REPORTS + code))


@pytest.mark.slow
def test_a_task_reads_and_answers_no_request_but_its_own(harness: Harness) -> None:
    assert harness.ask(hostile(PIPES).model_dump_json().encode()) == {"error": "its own"}

    assert harness.evaluate(make_judging()).verdict is Verdict.PASSED


@pytest.mark.slow
def test_a_task_cannot_open_the_servers_memory_or_its_output(harness: Harness) -> None:
    found = harness.evaluate(hostile(MEMORY))

    assert found.message == "['Permission denied', 'Permission denied']"


@pytest.mark.slow
def test_a_task_leaves_no_files_for_the_next_one(harness: Harness) -> None:
    before = harness.evaluate(hostile(FINDS)).message

    assert harness.evaluate(hostile(LEAVES)).message == "None"
    assert harness.evaluate(hostile(FINDS)).message == before


@pytest.mark.slow
def test_a_task_leaves_no_folders_that_it_has_locked_and_no_great_number_of_files(
    harness: Harness,
) -> None:
    before = harness.evaluate(hostile(FINDS)).message

    assert harness.evaluate(hostile(LOCKS)).message == "None"
    assert harness.evaluate(hostile(FINDS)).message == before


@pytest.mark.slow
@pytest.mark.skipif(not SHARE.exists(), reason="this Linux has no groups of sessions")
def test_a_task_lowers_the_share_of_cores_of_no_later_one(harness: Harness) -> None:
    assert harness.evaluate(hostile(LOWERS_SHARE)).message == "None"

    assert harness.evaluate(hostile(READS_SHARE)).message == "['nice', '0']"


@pytest.mark.slow
def test_a_server_whose_limits_a_task_has_changed_ends(harness: Harness) -> None:
    assert harness.evaluate(hostile(LIMITS)).verdict is Verdict.WRONG_ANSWER

    assert harness.stdout.readline() == b""


@pytest.mark.slow
def test_a_judge_that_ends_without_an_answer_is_an_error(harness: Harness) -> None:
    answer = harness.ask(hostile(MUTE).model_dump_json().encode())

    assert answer == {"error": "the judge ended with status 65"}
    assert harness.evaluate(make_judging()).verdict is Verdict.PASSED
