"""What submitted code meets inside the sandbox, bare and within the harness's own sandbox."""

import errno
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import psutil
import pytest

from runners.contract.evaluation import Limits
from runners.contract.task import IsolationLayer
from runners.harness.protocol import builds
from runners.harness.sandbox import isolate, syscalls, view
from runners.harness.sandbox.isolate import Layers
from runners.harness.sandbox.syscalls import adopt_orphans
from tests.unit.runners.harness.sandbox.confinement import Confined, run, start

LIBC = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
MIB = 1 << 20


def test_every_layer_of_the_contract_is_active(confined: Confined) -> None:
    outcome = confined("said = os.getpid() if (os := __import__('os')) else None")
    assert set(IsolationLayer) <= set(outcome.layers)
    assert outcome.missing == {}
    assert outcome.said == 1


@pytest.mark.parametrize(
    ("refused", "also_missing"),
    [
        ("capabilities", set()),
        ("filesystem", set()),
        ("landlock", set()),
        ("limits", set()),
        ("namespaces", {"network"}),
        ("no core dumps", set()),
        ("no nested namespaces", set()),
        ("own /proc", set()),
        ("own user", set()),
        ("seccomp", set()),
    ],
)
def test_a_layer_that_the_kernel_refuses_is_named_and_the_others_hold(
    refused: str, also_missing: set[str]
) -> None:
    if lacking := run("said = 0", nested=False).missing:
        pytest.skip(f"this machine refuses more: {lacking}")
    closed = refused == "filesystem" and os.getuid() == 0 and view.unreadable_by_others()
    outcome = run("said = 'here'", nested=False, refused=[refused])
    assert outcome.missing[refused] == "refused here"
    assert outcome.missing.keys() == {refused} | also_missing | ({"own user"} if closed else set())
    assert set(IsolationLayer) - outcome.missing.keys() <= set(outcome.layers)
    assert not outcome.missing.keys() & set(outcome.layers)
    assert outcome.said == "here"


@pytest.mark.parametrize("refused", [[], ["namespaces"]])
def test_it_adopts_its_orphans_for_ever_and_starts_no_sibling(refused: list[str]) -> None:
    outcome = run(
        """
import ctypes, os, time
libc = ctypes.CDLL(None)
clone = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
given_up = libc.prctl(36, 0, 0, 0, 0)
sibling = libc.syscall(clone, 0x8000 | 17, 0, 0, 0, 0)
if sibling == 0:
    os._exit(0)
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    parent = os.getpid()
    if os.fork() == 0:
        while os.getppid() == parent:
            time.sleep(0.001)
        os.write(writer, str(os.getppid()).encode())
    os._exit(0)
os.waitpid(child, 0)
said = [given_up, sibling, int(os.read(reader, 16)) == os.getpid()]
""",
        nested=False,
        refused=refused,
    )

    assert outcome.said == [-1, -1, True]


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_CORE)[1] == 0, reason="this system forbids all core dumps"
)
def test_a_crash_dumps_no_memory_and_starts_no_program_of_the_system(confined: Confined) -> None:
    outcome = confined(
        """
import os, resource, signal, subprocess, sys
core = resource.RLIMIT_CORE
resource.setrlimit(core, (0, 0))
lowered = resource.getrlimit(core)
child = os.fork()
if child == 0:
    os.kill(os.getpid(), signal.SIGSEGV)
_, status = os.waitpid(child, 0)
told = "import resource; print(resource.getrlimit(resource.RLIMIT_CORE))"
started = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True).stdout
said = [lowered, started.strip(), os.WTERMSIG(status), os.WCOREDUMP(status)]
"""
    )
    assert outcome.said == [[1, 1], "(1, 1)", signal.SIGSEGV, False]


@pytest.mark.parametrize(
    ("pattern", "hard", "told"),
    [
        ("core", 0, "(0, 0)"),
        ("core", 1, "(1, 1)"),
        ("|/bin/handler %p", 1, "(1, 1)"),
        ("|/bin/handler %p", 0, "their hard limit must not be 0"),
        ("@/run/socket", 1, "to a socket, whatever their limit is"),
        (None, 1, "(1, 1)"),
    ],
)
def test_the_layer_is_missing_if_the_system_still_gets_dumps(
    pattern: str | None, hard: int, told: str, tmp_path: Path
) -> None:
    if pattern is not None:
        (tmp_path / "pattern").write_text(pattern)
    script = f"""
import resource
from pathlib import Path
from runners.harness.sandbox import isolate
isolate._CORE_PATTERN = Path({str(tmp_path / "pattern")!r})
resource.setrlimit(resource.RLIMIT_CORE, (0, {hard}))
try:
    isolate.forbid_dumps()
    print(resource.getrlimit(resource.RLIMIT_CORE))
except OSError as error:
    print(error)
"""
    command = [sys.executable, "-c", script]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert told in found.stdout


@pytest.fixture
def secret() -> Iterator[Path]:
    """A file that anybody may read, which no folder of pytest's is for others than root."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o755)
    file = folder / "secret"
    file.write_text("hunter2")
    file.chmod(0o644)
    yield file
    shutil.rmtree(folder)


def test_landlock_alone_hides_files_where_there_is_no_view_of_its_own(secret: Path) -> None:
    script = f"""
import os, tempfile
said = []
own = (os.environ["HOME"] + "/own", tempfile.gettempdir() + "/own")
for path in ({str(secret)!r}, "/var/tmp/written", *own):
    try:
        open(path, "r" if path.endswith("secret") else "w").close()
        said.append(path)
    except OSError:
        pass
"""
    outcome = run(script, nested=False, refused=["filesystem"])
    if "landlock" in outcome.missing:
        pytest.skip(f"no Landlock here: {outcome.missing['landlock']}")
    own, scratch = outcome.said
    assert own == scratch
    assert own.startswith(f"{tempfile.gettempdir()}/{view.SHARED_JOB}")
    shutil.rmtree(Path(own).parent)


def test_root_stays_root_where_nobody_else_can_read_the_interpreter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []
    for name in ("setgroups", "setresgid", "setresuid"):
        monkeypatch.setattr(os, name, lambda *_, name=name: calls.append(name))
    monkeypatch.setattr(view, "unreadable_by_others", lambda: "/closed")
    layers = Layers()
    layers.missing[IsolationLayer.FILESYSTEM] = "refused here"

    with pytest.raises(OSError, match="only root can read /closed"):
        isolate.leave_root(layers)

    assert calls == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_the_harnesses_of_root_are_different_users_with_the_same_id_inside() -> None:
    """Otherwise a submission could use up what Linux allows the user, such as pages of pipes."""
    told, tell = os.pipe()
    for _ in range(2):
        child = os.fork()
        if child == 0:
            layers = Layers()
            layers.active.append(IsolationLayer.FILESYSTEM)
            isolate.leave_root(layers)
            outside = os.getuid()
            isolate.make_namespaces(layers)
            lacks = IsolationLayer.NAMESPACES in layers.missing
            os.write(tell, f"{outside} {isolate.NOBODY if lacks else os.getuid()}\n".encode())
            os._exit(0)
        os.waitpid(child, 0)
    os.close(tell)
    with os.fdopen(told) as lines:
        (one, inside), (other, inside_too) = (line.split() for line in lines)
    assert one != other
    assert inside == inside_too == str(isolate.NOBODY)


def test_it_is_announced_when_the_judge_can_collect_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long its parent takes to leave."""
    leave = os._exit
    told, tell = os.pipe()

    def leave_late(status: int) -> NoReturn:
        time.sleep(0.3)
        leave(status)

    monkeypatch.setattr(os, "_exit", leave_late)
    adopt_orphans()
    try:
        intermediate = os.fork()
        if intermediate == 0:
            isolate.leave_parent(lambda pid: os.write(tell, str(pid).encode()))
            leave(7)
        announced = int(os.read(told, 32))
        assert os.waitstatus_to_exitcode(os.waitpid(announced, 0)[1]) == 7
    finally:
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 0)
        os.waitpid(intermediate, 0)
        os.close(told)
        os.close(tell)


def test_the_network_of_the_machine_is_not_there(confined: Confined) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"""
import socket
try:
    socket.create_connection(("127.0.0.1", {port}), timeout=2)
    said = "connected"
except OSError as error:
    said = error.errno
"""
        assert confined(script).said in {errno.ENETUNREACH, errno.EACCES, errno.ECONNREFUSED}


def test_it_has_no_network_interface_of_the_machine(confined: Confined) -> None:
    script = "import socket; said = [name for _, name in socket.if_nameindex()]"
    assert set(confined(script).said) <= {"lo"}


def test_sockets_that_no_network_namespace_holds_are_refused(confined: Confined) -> None:
    script = """
import socket
try:
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
    said = "made"
except OSError as error:
    said = error.errno
"""
    assert confined(script).said == errno.EAFNOSUPPORT


def test_nothing_outside_the_scratch_folders_can_be_written(confined: Confined) -> None:
    script = """
import os, sys
said = []
places = ["/", "/usr", "/etc", "/root", "/home", "/run", "/var", "/dev", "/sys", "/proc/sys/kernel"]
program = [sys.prefix, sys.base_prefix, *filter(os.path.isdir, sys.path)]
scratch = ("/tmp/", "/var/tmp/", "/dev/shm/")  # a checkout may lie there
for place in [*places, *(path for path in program if not path.startswith(scratch))]:
    try:
        open(place + "/written", "w")
        said.append(place)
    except OSError:
        pass
open("/tmp/job/a", "w").write("x"); open("/dev/shm/b", "w").write("x")
open("/var/tmp/c", "w").write("x")
"""
    assert confined(script).said == []


def test_files_of_the_machine_are_hidden(confined: Confined, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    secret.chmod(0o644)
    checkout = Path(__file__).resolve().parents[5]
    script = f"""
import os
said = [path for path in ({str(secret)!r}, {str(checkout / "bot")!r}, {str(checkout / ".git")!r},
        "/var/lib", "/srv/nothing", "/etc/shadow") if os.access(path, os.R_OK)]
"""
    assert confined(script).said == []


def test_the_environment_holds_only_what_is_allowed(confined: Confined) -> None:
    said = confined("import os; said = dict(os.environ)").said
    caches = builds.environment(Path(view.JOB))
    assert set(said) - caches.keys() <= {
        "HOME", "LANG", "PATH", "TMPDIR", "USER", "OMP_NUM_THREADS",
    }  # fmt: skip
    assert said["HOME"] == view.JOB
    assert said.items() >= caches.items()


def test_programs_beside_the_interpreter_are_found_first(confined: Confined) -> None:
    said = confined("import shutil; said = shutil.which('python')").said
    assert said == f"{sys.prefix}/bin/python"


def test_only_its_own_processes_can_be_seen(confined: Confined) -> None:
    script = "import os; said = [name for name in os.listdir('/proc') if name.isdigit()]"
    assert confined(script).said == ["1"]


def test_no_notices_of_the_machines_pressure_can_be_requested(confined: Confined) -> None:
    """Each request makes Linux wait at the exit of the process."""
    if not Path("/proc/pressure/cpu").exists():
        pytest.skip("this Linux measures no pressure")
    script = """
import errno, os
try:
    os.open("/proc/pressure/cpu", os.O_RDWR)
    said = "opened"
except OSError as error:
    said = errno.errorcode[error.errno]
"""
    assert confined(script).said == "EROFS"


def test_a_device_can_be_written_but_not_touched(confined: Confined) -> None:
    """All sandboxes of the machine show the same devices, and could read their times."""
    script = """
import errno, os
said = []
for name in ("null", "zero", "full", "random", "urandom", "tty"):
    try:
        os.utime(f"/dev/{name}")
    except OSError as error:
        said.append(errno.errorcode[error.errno])
with open("/dev/null", "w") as null, open("/dev/zero", "rb") as zero:
    said.append(null.write("x") + len(zero.read(1)) + os.system("echo x > /dev/null"))
"""
    assert confined(script).said == ["EROFS"] * 6 + [2]


def test_the_machines_counts_of_files_and_names_are_hidden(confined: Confined) -> None:
    """A candidate could tell the next one a number by how many names without files it looks up."""
    script = """
from pathlib import Path
names = ("dentry-state", "file-nr", "inode-nr", "inode-state", "pipe-max-size")
said = [bool(Path("/proc/sys/fs", name).read_text()) for name in names]
"""
    assert confined(script).said == [False] * 4 + [True]


def test_a_fork_bomb_ends_at_the_limit(confined: Confined) -> None:
    script = """
import os, select
said = 0
while said < 1000:
    try:
        if os.fork() == 0:
            select.select([], [], [])
    except OSError:
        break
    said += 1
"""
    assert 4 <= confined(script, Limits(processes=20)).said < 20


def test_the_disk_ends_at_one_limit_for_all_folders(confined: Confined) -> None:
    script = """
said = 0
for number in range(40):
    folder = ("/tmp/job", "/dev/shm", "/var/tmp", "/tmp")[number % 4]
    try:
        with open(f"{folder}/{number}", "wb", buffering=0) as file:
            said += file.write(bytes(1 << 20))
    except OSError:
        pass
"""
    assert 6 * MIB < confined(script, Limits(disk=8 * MIB)).said <= 8 * MIB


def test_the_number_of_files_ends_too(confined: Confined) -> None:
    script = """
said = 0
try:
    for said in range(100_000):
        open(f"/tmp/job/{said}", "w").close()
except OSError:
    pass
"""
    assert confined(script).said < 20_000


def test_memory_ends_at_the_limit(confined: Confined) -> None:
    script = """
try:
    said = len(bytearray(512 << 20))
except MemoryError:
    said = "refused"
"""
    assert confined(script, Limits(memory=128 * MIB)).said == "refused"
    assert confined(script, Limits(memory=2048 * MIB)).said == 512 * MIB


def test_memory_that_belongs_to_no_process_is_refused(confined: Confined) -> None:
    script = """
import os
try:
    said = os.memfd_create("hidden")
except OSError as error:
    said = error.errno
"""
    assert confined(script).said == errno.ENOSYS


def test_only_the_kept_descriptors_stay_open(confined: Confined) -> None:
    script = """
import os
said = sorted(int(fd) for fd in os.listdir("/proc/self/fd"))
said = [fd for fd in said if os.path.exists(f"/proc/self/fd/{fd}") or fd == kept.fileno()]
said.remove(kept.fileno())
"""
    assert confined(script).said == [0, 1, 2]


@pytest.mark.parametrize(
    "call",
    [
        "libc.ptrace(0, 0, 0, 0)",
        "libc.unshare(0x10000000)",
        "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)",
        "libc.syscall(56 if os.uname().machine == 'x86_64' else 220, 0x10000011, 0, 0, 0, 0)",
        "libc.syscall(438, 0, 0, 0)",
        "libc.syscall(425, 8, bytes(256))",
        "libc.syscall(321 if os.uname().machine == 'x86_64' else 280, 0, bytes(128), 128)",
        "libc.shmget(0, 4096, 0o1600)",
        "libc.sethostname(b'mine', 4)",
    ],
)
def test_a_dangerous_system_call_is_refused(confined: Confined, call: str) -> None:
    outcome = confined(f"{LIBC}said = [{call}, ctypes.get_errno()]")
    assert outcome.said == [-1, errno.EPERM]


def test_it_holds_no_capability_and_gains_none(confined: Confined) -> None:
    status = confined("said = open('/proc/self/status').read()").said
    facts = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    kinds = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
    assert {int(facts[kind], 16) for kind in kinds} == {0}
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")
    assert facts["Uid"].split()[0] != "0"


def test_the_judge_can_read_its_memory(confined: Confined) -> None:
    script = """
import ctypes
held = ctypes.create_string_buffer(b"the output", 10)
kept.sendall(f"{ctypes.addressof(held)} 10".encode())
said = kept.recv(100).decode()
"""
    assert confined(script).said == "the output"


def test_threads_and_child_processes_still_work(confined: Confined) -> None:
    script = """
import subprocess, threading
said = []
thread = threading.Thread(target=lambda: said.append("thread"))
thread.start(); thread.join()
said.append(subprocess.run(["/bin/sh", "-c", "echo child"], capture_output=True).stdout.decode())
"""
    assert confined(script).said == ["thread", "child\n"]


@pytest.mark.slow
def test_torch_computes_with_two_threads(confined: Confined) -> None:
    script = """
import torch
torch.set_num_threads(2)
said = float((torch.ones(512, 512) @ torch.ones(512, 512)).sum())
"""
    assert confined(script).said == 512.0**3


@pytest.mark.parametrize("nested", [False, True])
def test_it_dies_with_the_judge(*, nested: bool) -> None:
    script = "import os, select\nos.fork()\nos.setsid() if os.getpid() > 1 else 0\n"
    ready = 'os.write(1, b\'{"said": "ready"}\\n\')\nselect.select([], [], [])'
    with start(script + ready, nested=nested) as process:
        assert process.stdout is not None
        layers = json.loads(process.stdout.readline())
        if "namespaces" in layers["missing"]:
            pytest.skip("no namespaces here")
        assert process.stdout.readline() == '{"said": "ready"}\n'
        beneath = psutil.Process(process.pid).children(recursive=True)
        assert len(beneath) >= 2
        process.send_signal(signal.SIGKILL)
        _, alive = psutil.wait_procs(beneath, timeout=5)
        assert alive == []
        process.communicate(timeout=10)


def test_nothing_in_its_proc_can_be_run_or_is_a_device(confined: Confined) -> None:
    script = (
        "rows = [line.split() for line in open('/proc/self/mounts')]\n"
        "said = next(row[3] for row in reversed(rows) if row[1] == '/proc').split(',')"
    )
    assert {"nosuid", "nodev", "noexec"} <= set(confined(script).said)
