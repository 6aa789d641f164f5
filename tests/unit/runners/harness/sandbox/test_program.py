"""What a task's own evaluation and a submission beside it meet inside the sandbox."""

import ctypes
import gc
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from runners.contract.evaluation import Limits
from runners.harness.deadline import Deadline
from runners.harness.protocol import builds
from runners.harness.sandbox import isolate, program, syscalls, view
from runners.harness.sandbox.program import LOOPBACK, READ_ONLY, Prelude, Program, own_script
from runners.harness.sandbox.syscalls import adopt_orphans
from runners.harness.supervision.watched_program import WatchedProgram

SUBREAPER = 36
TELL = """
import json, os

def tell(it):
    os.write(int(os.environ["POPCORN_FD"]), json.dumps(it).encode())
"""
CHANGES = """
done = []
for name, change in {
    "write": lambda: open("eval.py", "w"),
    "unlink": lambda: os.unlink("eval.py"),
    "rename": lambda: os.rename("eval.py", "other.py"),
    "shadow": lambda: open("torch.py", "w"),
    "chmod": lambda: os.chmod("eval.py", 0o777),
    "move": lambda: os.rename(os.getcwd(), os.getcwd() + "-old"),
    "link": lambda: os.symlink("/tmp", "utils"),
}.items():
    try:
        change()
        done.append(name)
    except OSError:
        pass
tell(done)
"""


@pytest.fixture(autouse=True)
def _parent() -> Iterator[None]:
    adopt_orphans()
    yield
    ctypes.CDLL(None).prctl(SUBREAPER, 0, 0, 0, 0)


def run(script: str, **changes: object) -> tuple[object, dict[str, str]]:
    """What a script tells, and the layers that it lacked."""
    values: dict[str, object] = {
        "command": own_script("kernelbot/launch.py", "eval.py", "test", "cases"),
        "files": {"eval.py": TELL + script, "cases": "size: 3\n"},
        "environment": {},
        "limits": Limits(),
    }
    lacked: dict[str, str] = {}
    order = Program(**(values | changes))  # type: ignore[arg-type]  # the changes' own types
    log = bytearray()
    found = WatchedProgram(order, log, lambda _, missing: lacked.update(missing)).run(
        Deadline.after(30)
    )
    assert found.status == 0, log.decode()
    return json.loads(found.result or b"null"), lacked


def test_nothing_in_the_folder_of_the_task_can_be_changed() -> None:
    done, lacked = run(CHANGES)
    if READ_ONLY in lacked:
        pytest.skip(lacked[READ_ONLY])
    assert done == []


def test_without_a_view_the_files_are_there_all_the_same_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("refused here")

    monkeypatch.setattr(view, "build", refuse)
    before = set(Path(tempfile.gettempdir()).glob(f"{view.SHARED_JOB}*"))
    done, lacked = run(CHANGES)
    for folder in set(Path(tempfile.gettempdir()).glob(f"{view.SHARED_JOB}*")) - before:
        shutil.rmtree(folder)
    assert READ_ONLY in lacked
    if "landlock" not in lacked:
        assert done == [
            "chmod"
        ]  # which gains nothing: who may write is not asked of the mode alone


def test_the_environment_holds_what_is_allowed_and_what_was_asked_for() -> None:
    found, _ = run("tell(dict(os.environ))", environment={"POPCORN_SEED": "7"})
    assert isinstance(found, dict)
    assert found["POPCORN_SEED"] == "7"
    allowed = {"PATH", "LANG", "HOME", "TMPDIR", "USER", "LC_CTYPE", "POPCORN_FD", "POPCORN_SEED"}
    caches = set(builds.environment(Path("/")))
    assert set(found) - {*isolate._KEPT, *caches, *allowed} == set()


OWN = """
import subprocess, sys
script = '''
import os, sys
for path in ("environ", "fd", "mem", "maps"):
    place = f"/proc/{os.getppid()}/{path}"
    try:
        os.listdir(place) if path == "fd" else open(place, "rb").read(1)
        print(path)
    except OSError:
        pass
'''
tell(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout)
"""


def test_a_child_can_open_nothing_of_the_evaluation() -> None:
    assert run(OWN, environment={"POPCORN_SEED": "7"})[0] == ""


DIAL = """
import socket, threading
try:
    listening = socket.create_server(("127.0.0.1", 0))
    dialled = socket.create_connection(listening.getsockname(), 2)
    dialled.sendall(b"x")
    tell(listening.accept()[0].recv(1).decode())
except OSError as error:
    tell(type(error).__name__)
"""


@pytest.mark.parametrize(("ranks", "heard"), [(True, "x"), (False, "PermissionError")])
def test_ranks_alone_can_talk_over_a_loopback_interface(*, ranks: bool, heard: str) -> None:
    found, lacked = run(DIAL, ranks=ranks)
    if {LOOPBACK, "network", "landlock"} & lacked.keys():
        pytest.skip(f"refused here: {lacked}")
    assert found == heard


def test_ranks_reach_nothing_but_themselves() -> None:
    found, lacked = run("import socket\ntell(sorted(name for _, name in socket.if_nameindex()))",
                        ranks=True)  # fmt: skip
    if "network" in lacked:
        pytest.skip(lacked["network"])
    assert isinstance(found, list)
    assert set(found) <= {"lo", "sit0", "tunl0", "ip6tnl0"}


def prelude(script: str, **changes: object) -> Prelude:
    files: Mapping[str, str] = {"submission.py": "import os, time\n" + script}
    values: dict[str, object] = {
        "script": "submission.py", "files": files, "environment": {"POPCORN_SEED": "1"},
        "seconds": 10.0,
    }  # fmt: skip
    return Prelude(**(values | changes))  # type: ignore[arg-type]  # the changes' own types


PLANTED = """
import sysconfig
folder = sysconfig.get_path("purelib", "posix_user")
os.makedirs(folder)
open(folder + "/planted.pth", "w").write("import os; os._exit(9)")
"""
WROTE = "tell([os.path.exists('/tmp/job/built'), open('/tmp/job/built').read()])"


def test_a_prelude_leaves_what_it_built_and_sees_no_file_of_the_task() -> None:
    first = prelude("open('/tmp/job/built', 'w').write(' '.join(sorted(os.listdir('.'))))")
    found, lacked = run(WROTE, prelude=first)
    if READ_ONLY in lacked:
        pytest.skip(lacked[READ_ONLY])
    assert found == [True, "submission.py"]


@pytest.mark.parametrize(
    "script",
    [
        "raise SystemExit(1)",
        "os.kill(1, 9); os.kill(os.getppid(), 9)",
        "os.write(int(os.environ['POPCORN_FD']), b'forged')",
        "[os.write(fd, b'forged') for fd in map(int, os.listdir('/proc/self/fd')) if fd > 2]",
        "open('/proc/1/mem', 'r+b')",
        "[open(f'/proc/1/fd/{fd}', 'wb').write(b'forged') for fd in range(3, 30)]",
        PLANTED,
    ],
)
def test_nothing_that_a_prelude_does_reaches_the_evaluation(script: str) -> None:
    assert run("tell(sorted(os.listdir('.')))", prelude=prelude(script))[0] == ["cases", "eval.py"]


@pytest.mark.parametrize(
    "script",
    [
        "import resource; resource.prlimit(1, resource.RLIMIT_FSIZE, (0, 0))",
        "import resource; resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))",
        "import resource; resource.prlimit(1, resource.RLIMIT_CPU, (1, 1))",
        "import signal; os.kill(1, signal.SIGINT)",
        "os.setpriority(os.PRIO_PROCESS, 1, 19)",
        "os.sched_setaffinity(1, {0})",
    ],
)
def test_a_prelude_changes_nothing_in_the_evaluations_process(script: str) -> None:
    tells = (
        "import resource\n"
        "limits = resource.getrlimit(resource.RLIMIT_CPU)\n"
        "tell([len(os.sched_getaffinity(0)), os.getpriority(0, 0), limits])"
    )
    assert run(tells, prelude=prelude(script))[0] == run(tells)[0]


def test_what_a_prelude_started_is_gone_before_the_evaluation_begins() -> None:
    daemon = (
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        while True:\n"
        "            os.path.exists('/task/eval.py') and open('/tmp/seen', 'w').close()\n"
    )
    script = "tell([os.path.exists('/tmp/seen'), [p for p in os.listdir('/proc') if p.isdigit()]])"
    found, lacked = run(script, prelude=prelude(daemon + "time.sleep(0.2)"))
    if lacked:
        pytest.skip(f"refused here: {lacked}")
    assert found == [False, ["1"]]


def test_a_prelude_that_hangs_is_ended() -> None:
    hanging = prelude("while True: pass", seconds=0.3)
    assert run("tell(1)", prelude=hanging)[0] == 1


def test_a_prelude_has_no_rights() -> None:
    status = "open('/tmp/job/built', 'w').write(open('/proc/self/status').read())"
    found, lacked = run(WROTE, prelude=prelude(status))
    if lacked:
        pytest.skip(f"refused here: {lacked}")
    lines = str(found[1]).splitlines()  # type: ignore[index]
    assert "CapEff:\t0000000000000000" in lines
    assert "Seccomp:\t2" in lines


RUNS = f"""#!{sys.executable}
import json, os, sys
found = [sys.argv[1:], sorted(os.listdir(".")), os.access(sys.argv[0], os.W_OK)]
os.write(int(os.environ["POPCORN_FD"]), json.dumps(found).encode())
"""


@pytest.mark.parametrize("own_view", [True, False])
def test_a_program_is_run_from_a_descriptors_content(
    monkeypatch: pytest.MonkeyPatch, *, own_view: bool
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("refused here")

    if not own_view:
        monkeypatch.setattr(view, "build", refuse)
    before = set(Path(tempfile.gettempdir()).glob(f"{view.SHARED_JOB}*"))
    content = os.memfd_create("content")
    os.write(content, RUNS.encode())
    found, lacked = run("", command=("./it", "x"), files={"cases": ""}, executables={"it": content})
    os.close(content)
    for folder in set(Path(tempfile.gettempdir()).glob(f"{view.SHARED_JOB}*")) - before:
        shutil.rmtree(folder)
    assert found == [["x"], ["cases", "it"], READ_ONLY in lacked]


def test_a_descriptor_is_handed_to_the_program_alone() -> None:
    kept, other = os.memfd_create("kept"), os.memfd_create("other")
    script = (
        f"os.write({kept}, b'written')\n"
        "tell([os.readlink(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd')\n"
        "      if os.path.exists(f'/proc/self/fd/{fd}')])"
    )
    found, _ = run(script, inherited_fds=frozenset({kept}))
    assert os.pread(kept, 100, 0) == b"written"
    assert "other" not in str(found)
    for descriptor in (kept, other):
        os.close(descriptor)


@pytest.mark.parametrize(
    ("named", "gpus"),
    [("", ()), ("0", ("0",)), ("GPU-a, GPU-b", ("GPU-a", "GPU-b")), (None, ("0", "1", "2"))],
)
def test_the_gpus_that_are_visible_are_known(
    monkeypatch: pytest.MonkeyPatch, named: str | None, gpus: tuple[str, ...]
) -> None:
    names = ("nvidia0", "nvidia1", "nvidia12", "nvidiactl", "nvidia-uvm", "null")
    monkeypatch.setattr(program, "devices", lambda *, gpu: tuple(f"/dev/{name}" for name in names))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if named is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert program.visible_gpus() == gpus


def test_nothing_of_the_starter_is_finalized_in_the_child(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What the collector would free may belong to a GPU, which a fork of its process cannot use."""

    class Finalized:
        def __del__(self) -> None:
            (tmp_path / str(os.getpid())).touch()

    def collects(*_: object) -> None:
        if gc.isenabled():
            gc.collect()
        os._exit(0)

    cycle = [Finalized()]
    cycle.append(cycle)  # type: ignore[arg-type]  # garbage that only the collector finds
    del cycle
    monkeypatch.setattr(program, "become", collects)
    assert gc.isenabled()
    program.start(Program(("x",), {}, {}, Limits()), program.ProgramPipes(0, 0, 0))
    assert gc.isenabled()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["kernelbot/launch", "sandbox/make"])
def test_a_script_of_our_own_is_where_it_is_looked_for(name: str) -> None:
    script = Path(own_script(f"{name}.py")[2])
    assert script.is_file()
    assert script.is_absolute()
    assert syscalls.PR_SET_DUMPABLE == 4
