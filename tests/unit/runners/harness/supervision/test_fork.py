"""An evaluation that is forked finds, holds and may do what one that is executed does."""

import os
import secrets
import sys
from typing import Any

import pytest

from runners.harness.sandbox.program import Prelude
from runners.harness.supervision import fork as evaluation
from runners.harness.supervision.handle import StartError
from runners.harness.supervision.template import TemplateProcess
from tests.unit.runners.harness.supervision.conftest import Fork
from tests.unit.runners.harness.supervision.forking import Ran, executed

FOUND = """
import ctypes, gc, locale, multiprocessing.process, resource, signal, site, stat, sys, threading

def state(*wanted):
    for line in open("/proc/self/status"):
        name, value = line.split(":", 1)
        if name in wanted:
            ours = int(value, 16) & ~(3 << 31) if name == "SigCgt" else value.split()
            yield name, ours  # two signals are the C library's own

def found():
    prctl = ctypes.CDLL(None).prctl
    death = ctypes.c_int()
    prctl(2, ctypes.byref(death), 0, 0, 0)
    kinds = [stat.S_IFMT(os.fstat(int(fd)).st_mode) for fd in os.listdir("/proc/self/fd")
             if os.path.exists(f"/proc/self/fd/{fd}")]
    kinds = [kind for kind in kinds if kind != stat.S_IFSOCK or __name__ != "__main__"]
    streams = (sys.stdin, sys.stdout, sys.stderr)
    os.umask(mask := os.umask(0))
    limits = [name for name in dir(resource) if name[:7] == "RLIMIT_" and name != "RLIMIT_DATA"]
    main = sys.modules["__main__"]
    return {
        "arguments": (sys.argv, sys.executable, __name__, __file__, main.__name__),
        "folder": (os.getcwd(), multiprocessing.process.ORIGINAL_DIR, sorted(os.listdir("."))),
        "path": [path for path in sys.path],
        "environment": {name: value for name, value in os.environ.items()
                        if name not in ("PYTHON" + "NOUSERSITE", "LC_CTYPE", "POPCORN_FD")},
        "line": stat.S_ISFIFO(os.fstat(int(os.environ["POPCORN_FD"])).st_mode)
                if __name__ == "__main__" else None,
        "descriptors": sorted(kinds),
        "inheritable": [os.get_inheritable(fd) for fd in range(3)],
        "streams": [(each.encoding, each.errors, each.line_buffering, each.name, each.newlines,
                     each.write_through, each.mode) for each in streams],
        "process": (os.getppid() if __name__ != "__main__" else os.getpid(), os.getsid(0) >= 0,
                    os.getpgid(0) == os.getsid(0), os.getgroups(), os.getresuid(),
                    os.getresgid(), threading.active_count()),
        "dumpable": (prctl(3, 0, 0, 0, 0), death.value),
        **dict(state("NoNewPrivs", "Seccomp", "Seccomp_filters", "CapInh", "CapPrm",
                            "CapEff", "CapBnd", "CapAmb", "SigBlk", "SigIgn", "SigCgt",
                            "Threads", "Umask", "TracerPid")),
        "limits": [(name, resource.getrlimit(getattr(resource, name))) for name in limits],
        "handlers": [str(signal.getsignal(each)) for each in (1, 2, 3, 13, 14, 15, 17)],
        "mask": mask,
        "cores": sorted(os.sched_getaffinity(0)),
        "namespaces": [os.path.exists(f"/proc/self/ns/{kind}") for kind in ("pid", "net")],
        "site": site.ENABLE_USER_SITE,
        "python": (gc.isenabled(), sys.warnoptions, sys._xoptions, sys.flags.optimize,
                   locale.getpreferredencoding(), sys.getrecursionlimit()),
        "harness": [name for name in sys.modules if name.split(".")[0] == "runners"],
        "torch": "torch" in sys.modules,
        "processes": len([pid for pid in os.listdir("/proc") if pid.isdigit()]) > 0,
    }
"""
"""What a script can find out about its process; `found` gives it."""


def test_a_script_finds_what_it_would_find_if_it_were_executed(fork: Fork) -> None:
    script = FOUND + "\ntell(found())"
    compare(fork(script).told, executed(script).told)


def compare(forked: dict[str, Any], executed: dict[str, Any]) -> None:
    """What differs is that torch is at hand, and nothing else."""
    assert (forked.pop("torch"), executed.pop("torch")) == (True, False)
    differing = [key for key in executed if forked[key] != executed[key]]
    assert {key: forked[key] for key in differing} == {key: executed[key] for key in differing}


def test_a_script_is_forked_with_torch_at_hand_where_it_can_be(fork: Fork) -> None:
    script = "import sys\ntell('torch' in sys.modules)"
    assert fork(script).told is True
    assert executed(script).told is False


@pytest.mark.parametrize(
    ("files", "forked"),
    [
        ({"eval.py": "", "reference.py": "import torch", "popcorn-cases.txt": ""}, True),
        ({"s.py": "os.environ['NCCL_DEBUG'] = os.environ['TORCH_CUDA_ARCH_LIST'] = ''"}, True),
        ({"s.py": "TORCH_CHECK(TORCH_EXTENSION_NAME, SYMBOL_, MY_OMP_)"}, True),
        ({"json.py": ""}, False),
        ({"torch/nn.py": ""}, False),
        ({"s.py": "os.environ['OMP_NUM_THREADS'] = '1'"}, False),
        ({"s.py": "os.environ['TORCHDYNAMO_DISABLE'] = '1'"}, False),
        ({"s.py": "os.environ['PYTORCH_JIT'] = '0'"}, False),
        ({"s.py": "os.environ['TRITON_INTERPRET'] = '1'"}, False),
        ({"s.py": "os.environ['PYTHONHASHSEED'] = '0'"}, False),
    ],
)
def test_a_script_is_forked_unless_it_would_find_something_else(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, str], *, forked: bool
) -> None:
    monkeypatch.delitem(sys.modules, "reference", raising=False)  # another test's
    assert evaluation.fits(files) is forked


def test_what_is_executed_after_all_has_its_environment(fork: Fork) -> None:
    script = "import sys\n# OMP_NUM_THREADS\ntell([os.environ['A'], 'torch' in sys.modules])"
    assert fork(script, environment={"A": "b"}).told == ["b", False]


@pytest.mark.parametrize("option", [("warnoptions", ["error"]), ("_xoptions", {"dev": True})])
def test_an_interpreter_that_was_told_more_forks_nothing(
    monkeypatch: pytest.MonkeyPatch, option: tuple[str, object]
) -> None:
    monkeypatch.setattr(sys, *option)
    assert not evaluation.fits({"eval.py": ""})


SEARCH = """
import ctypes, re, sys

def found():
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
    wanted = re.compile(open("pattern").read().encode())
    with open("/proc/self/mem", "rb", 0) as memory:
        for line in open("/proc/self/maps"):
            bounds, rights, _, _, inode, *name = line.split()
            if rights[:2] != "rw" or name == ["[vvar]"]:
                continue
            begin, end = (int(bound, 16) for bound in bounds.split("-"))
            memory.seek(begin)
            try:
                if wanted.search(memory.read(end - begin)):
                    return line
            except OSError:
                continue
    return ""
"""
"""`found` tells a part of its process's memory that matches the file `pattern`, if one does."""


def test_nothing_of_one_evaluation_is_in_the_memory_of_a_later_one(fork: Fork) -> None:
    seed = str(secrets.randbelow(10**18) + 10**18)
    pattern = f"{seed[:9]}[{seed[9]}]{seed[10:]}"  # which does not match itself
    script = SEARCH + "tell(found())"
    assert fork(script, environment={"POPCORN_SEED": seed}, pattern=pattern).told
    assert fork(script, pattern=pattern).told == ""


PLANTED = """
import os, sysconfig
folder = sysconfig.get_path("purelib", "posix_user")
os.makedirs(folder)
open(folder + "/planted.pth", "w").write("import os; os.write(1, b'PLANTED')")
"""


def test_what_a_prelude_planted_is_in_no_program_of_the_evaluation(fork: Fork) -> None:
    script = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', '0'])\ntell(1)"
    first = Prelude("submission.py", {"submission.py": PLANTED}, {}, 10.0)
    ran = fork(script, prelude=first)
    assert (ran.told, ran.printed) == (1, "")


def test_a_prelude_holds_none_of_the_evaluations_descriptors(fork: Fork) -> None:
    forges = (
        "import os\nfor fd in range(3, 64):\n"
        "    try: os.write(fd, b'forged')\n    except OSError: pass\n"
    )
    ran = fork("tell(1)", prelude=Prelude("s.py", {"s.py": forges}, {}, 10.0))
    assert (ran.told, ran.printed) == (1, "")


def test_a_template_that_is_gone_starts_nothing(template: TemplateProcess) -> None:
    os.kill(template.pid, 9)
    with pytest.raises(StartError, match="did not start"):
        Ran(template.start, "")
