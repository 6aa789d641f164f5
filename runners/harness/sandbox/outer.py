"""Puts the whole harness into a sandbox before it imports torch or reads a request.

The task's own code runs in the judge, so the judge needs a sandbox too. A user without root rights
gets bubblewrap, if it works; the functions at the end of this module start it. Otherwise this
module splits the process into three:

- The supervisor is the process that the backend started. If it exits, everything below it is
  killed. If its backend exits, it kills everything below it. Only the supervisor stays outside of
  the sandbox, because it removes the cgroup at the end.
- PID 1 of the new namespace reaps orphans.
- The harness is the process in which `confine` returns.
"""

import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from runners.contract.evaluation import Isolation, Limits
from runners.contract.task import IsolationLayer
from runners.harness.sandbox import isolate, process_limits, syscalls, view
from runners.harness.sandbox.devices import devices
from runners.harness.sandbox.isolate import Layers

LAUNCHER, NONE = "unshare", "none"
CGROUP, PRIORITY, WAIT_TIMES = "cgroup", "priority", "wait times"
NO_PRIORITY = "times on a busy CPU vary more"
STRICT_EXIT = 3
_REPLACED = 75
"""The exit status of a process whose child continues in its place."""
_SCRATCH_BYTES = 512 << 20
_HARNESS_PROCESSES = 4096
_KEPT = ("CUDA_HOME", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")
_OUTSIDE = (IsolationLayer.FILESYSTEM, IsolationLayer.NAMESPACES, IsolationLayer.NETWORK)


def confine(
    argv: Sequence[str], *, strict: bool, gpu: bool, until_orphaned: bool = False
) -> Isolation:
    """Put this process into a sandbox; returns in the harness process.

    The process must have only one thread. All descriptors except the standard streams are closed.
    Bubblewrap starts the program again, with the arguments `argv`. Missing layers are reported on
    stderr and in the result. With `strict`, the program exits with status 3 if a layer is missing.
    With `until_orphaned`, everything is killed when this process's parent exits.
    """
    layers = Layers()
    if inside_bubblewrap():
        layers.active += _OUTSIDE
        view.own_scratch()
        layers.attempt(CGROUP, process_limits.require_cgroup)
        layers.missing[PRIORITY] = NO_PRIORITY
        outer = BUBBLEWRAP
    else:
        supervisor = os.pidfd_open(os.getpid())
        _fork_under_supervisor(layers, _backend_fd() if until_orphaned else ())
        if os.getuid() != 0 and bubblewrap_installed():
            layers.attempt(
                BUBBLEWRAP, lambda: enter_bubblewrap(argv, _environment(), _SCRATCH_BYTES, gpu=gpu)
            )
        _enter_namespaces(layers, supervisor, gpu=gpu)
        outer = LAUNCHER if IsolationLayer.NAMESPACES in layers.active else NONE
    layers.attempt(WAIT_TIMES, process_limits.require_wait_times)
    _drop_rights(layers)
    active, missing = candidate_layers(gpu=gpu)
    isolation = Isolation(
        outer=outer,
        layers=tuple(layers.active),
        missing={f"harness {name}": why for name, why in layers.missing.items()},
    ).with_layers(active, missing)
    _report(isolation, strict=strict)
    return isolation


def _backend_fd() -> tuple[int, ...]:
    """A pidfd of this process's parent; () if this is the first process of a container."""
    parent = os.getppid()
    return (os.pidfd_open(parent),) if parent else ()


def _fork_under_supervisor(layers: Layers, backend: tuple[int, ...]) -> None:
    try:
        group = process_limits.make_cgroup()
    except OSError as error:
        layers.missing[CGROUP] = f"{error}; process limits and the watchdog replace it"
        group = None
    try:
        preferred = process_limits.make_priority(group)
    except OSError as error:
        layers.missing[PRIORITY] = f"{error}; {NO_PRIORITY}"
        preferred = None
    syscalls.adopt_orphans()
    if child := os.fork():
        _supervise(tuple(each for each in (group, preferred) if each), backend, child)
    if group:
        layers.attempt(CGROUP, group.enter)
    if preferred:
        layers.attempt(PRIORITY, preferred.enter)


def _enter_namespaces(layers: Layers, supervisor: int, *, gpu: bool) -> None:
    as_root = os.getuid() == 0
    if as_root:
        layers.attempt(
            IsolationLayer.FILESYSTEM, lambda: isolate.build_view(_SCRATCH_BYTES, gpu=gpu)
        )
        layers.attempt(isolate.OWN_USER, lambda: isolate.leave_root(layers))
    isolate.make_namespaces(layers)
    intermediate = os.pidfd_open(os.getpid())
    if os.fork():
        os._exit(_REPLACED)
    select.select([intermediate], [], [])  # now the supervisor is the parent
    _exit_with(supervisor)
    if not as_root and IsolationLayer.NAMESPACES in layers.active:
        layers.attempt(IsolationLayer.FILESYSTEM, lambda: view.build(_SCRATCH_BYTES, gpu=gpu))
    if IsolationLayer.NAMESPACES in layers.active:
        layers.attempt(isolate.PROC, view.mount_proc)
    init = os.pidfd_open(os.getpid())
    if child := os.fork():
        _reap_until(child)
    _exit_with(init)


def _supervise(
    groups: tuple[process_limits.Group, ...], backend: tuple[int, ...], child: int
) -> None:
    """Wait until all processes have ended, then exit with the harness's status; never returns.

    Processes that end after the harness are orphans, such as bubblewrap's PID 1, which is killed
    with its parent. When the backend has exited, everything is killed: the answer has no reader,
    and a kernel that still runs would disturb the next timing.
    """
    isolate.detach_streams()
    child_ended = _child_exit_fd()
    status, status_known = 0, False
    try:
        while True:
            ended, last = os.waitpid(-1, os.WNOHANG)
            if not ended:
                backend = _wait_for_exit(backend, child_ended)
            elif not status_known:
                status = last
                status_known = ended == child and _exit_status(last) != _REPLACED
    except ChildProcessError:
        for group in groups:
            group.remove()
        os._exit(_exit_status(status))


def _child_exit_fd() -> int:
    """A descriptor that becomes readable whenever a child has ended."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def _wait_for_exit(backend: tuple[int, ...], child_ended: int) -> tuple[int, ...]:
    """Wait until a child or the backend ends; return the backend, or kill all and return ()."""
    ready = select.select([child_ended, *backend], [], [])[0]
    if child_ended in ready:
        os.read(child_ended, 1 << 12)
    if ready == [child_ended]:
        return backend
    process_limits.kill_beneath(os.getpid())
    return ()


def _reap_until(child: int) -> None:
    """Act as PID 1: reap orphans until the harness ends, then exit; never returns."""
    isolate.detach_streams()
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == child:
            os._exit(_exit_status(status))


def _exit_status(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _exit_with(parent: int) -> None:
    """Make Linux kill this process when its parent exits; exit now if the parent has exited."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if select.select([parent], [], [], 0)[0]:
        os._exit(1)
    os.close(parent)


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    path = isolate.SEARCH_PATH
    return {"LANG": "C.UTF-8", "PATH": path, "HOME": view.SCRATCH[0], "USER": "nobody", **kept}


def _drop_rights(layers: Layers) -> None:
    """Take the steps that only remove rights and need no namespaces of their own."""
    environment = _environment()
    if IsolationLayer.FILESYSTEM not in layers.active:  # /tmp is shared with other processes
        environment["TMPDIR"] = tempfile.mkdtemp(prefix="podium-", dir=view.SCRATCH[0])
    os.environ.clear()
    os.environ.update(environment)
    lowered = {resource.RLIMIT_NPROC: _HARNESS_PROCESSES}
    layers.attempt(IsolationLayer.LIMITS, lambda: isolate.lower_limits(lowered))
    layers.attempt(isolate.NO_DUMPS, isolate.forbid_dumps)
    _raise_open_files()
    layers.attempt(isolate.CAPABILITIES, syscalls.drop_capabilities)
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)  # a candidate's maps are written through /proc/self
    isolate.close_others(frozenset({process_limits.precedence.file}))


def _raise_open_files() -> None:
    """Raise the soft limit on open files to the hard one, which is far above that of candidates.

    Candidates have the same user. As many descriptors as their limit allows can be on their way
    between their sockets. Linux then lets this process send one only if its own limit is higher.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def candidate_layers(*, gpu: bool) -> isolate.LayerReport:
    """Start one trial candidate; return its layers, and why others are missing."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _try_candidate(writer, gpu=gpu)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as answer:
        text = answer.read()  # ends when PID 1 of the trial has exited
    if not text:
        return (), dict.fromkeys(IsolationLayer, "the trial candidate died")
    active, missing = json.loads(text)
    return tuple(active), missing


def _try_candidate(writer: int, *, gpu: bool) -> None:
    try:
        found = isolate.enter(Limits(), lambda _: None, keep_fds=frozenset({writer}), gpu=gpu)
        os.write(writer, json.dumps(found).encode())
    finally:
        os._exit(0)


def _report(isolation: Isolation, *, strict: bool) -> None:
    for name, why in isolation.missing.items():
        owner = "" if name.startswith("harness ") else "candidate "
        sys.stderr.write(f"podium sandbox: MISSING {owner}{name}: {why}\n")
    missing = isolation.missing_strict
    if strict and missing:
        names = ", ".join(sorted({name.removeprefix("harness ") for name in missing}))
        sys.stderr.write(f"podium sandbox: refusing to run without {names} (strict)\n")
        sys.stderr.flush()
        raise SystemExit(STRICT_EXIT)
    sys.stderr.flush()


MARKER = "PODIUM_WRAPPED_BY"
"""The environment variable by which the program detects that it runs inside bubblewrap."""
BUBBLEWRAP = "bubblewrap"
_TRIAL_S = 5.0


def bubblewrap_installed() -> str | None:
    """The path of bubblewrap, or None."""
    return shutil.which("bwrap")


def inside_bubblewrap() -> bool:
    """Whether this process was started by `enter_bubblewrap`."""
    return os.environ.get(MARKER) == BUBBLEWRAP


def enter_bubblewrap(
    argv: Sequence[str], environment: dict[str, str], scratch: int, *, gpu: bool
) -> None:
    """Replace this process by the harness inside bubblewrap; OSError if that is impossible.

    A trial first runs one bubblewrap inside another, because a candidate needs nested namespaces.
    """
    wrapped = bubblewrap_options(environment, scratch, gpu=gpu)
    nested = [wrapped[0], "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    try:
        trial = subprocess.run(
            [*wrapped, *nested], capture_output=True, timeout=_TRIAL_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise OSError("bubblewrap did not answer") from error
    if trial.returncode != 0:
        raise OSError(trial.stderr.decode(errors="replace").strip() or "bubblewrap failed")
    os.execv(wrapped[0], [*wrapped, sys.executable, "-m", "runners.harness", *argv])  # noqa: S606 - no shell wanted


def bubblewrap_options(environment: dict[str, str], scratch: int, *, gpu: bool) -> list[str]:
    """The command line before the program; it shows the same files as `view.build`."""
    bubblewrap = bubblewrap_installed()
    if bubblewrap is None:
        raise OSError("bubblewrap is not installed")
    command = [bubblewrap, "--unshare-all", "--die-with-parent", "--clearenv"]
    for name, value in {**environment, MARKER: BUBBLEWRAP}.items():
        command += ["--setenv", name, value]
    for path in view.SYSTEM:
        link = Path(path).is_symlink()
        command += ["--symlink", str(Path(path).readlink()), path] if link else []
        command += _bind_options(path) if Path(path).is_dir() and not link else []
    command += ["--proc", "/proc", "--dev", "/dev", "--ro-bind", "/sys", "/sys"]
    for folder in (*view.SCRATCH, *view.EMPTY):
        command += ["--size", str(scratch), "--tmpfs", folder]
    for path in view.interpreter():
        command += _bind_options(path)
    for path in view.hidden():
        command += ["--remount-ro", path]
    for path in devices(gpu=gpu):
        command += ["--dev-bind-try", path, path]
    return [*command, "--chdir", str(Path(__file__).resolve().parents[3]), "--"]


def _bind_options(path: str) -> list[str]:
    """Options that bind a folder read-only, with an empty folder over each hidden one inside."""
    inside = [
        folder for folder in view.hidden() if folder != path and Path(folder).is_relative_to(path)
    ]
    return ["--ro-bind", path, path, *(word for folder in inside for word in ("--tmpfs", folder))]
