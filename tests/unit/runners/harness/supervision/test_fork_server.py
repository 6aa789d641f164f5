"""A worker that is forked finds and holds what one that is executed does, and reaches no more."""

import os
import resource
import secrets
import signal

import pytest

from runners.harness.supervision import fork
from tests.unit.runners.harness.supervision.conftest import Fork
from tests.unit.runners.harness.supervision.forking import IN_A_WORKER, executed
from tests.unit.runners.harness.supervision.test_fork import FOUND, SEARCH, compare

HAS_TORCH = "import sys\ndef found():\n    return 'torch' in sys.modules\n" + IN_A_WORKER


def test_a_worker_finds_what_it_would_find_if_it_were_executed(fork: Fork) -> None:
    one, other = fork(FOUND + IN_A_WORKER), executed(FOUND + IN_A_WORKER)
    if one.lacked:
        pytest.skip(f"refused here: {one.lacked}")
    compare(one.told, other.told)


def test_a_worker_is_forked_with_torch_at_hand(fork: Fork) -> None:
    ran = fork(HAS_TORCH)
    if ran.lacked:
        pytest.skip(f"refused here: {ran.lacked}")
    assert ran.told is True


@pytest.mark.parametrize(
    "changed",
    [
        "os.environ.update(A='x' * 90_000, B='x' * 90_000)",
        "os.kill(2, 9)",
    ],
)
def test_a_worker_is_executed_where_it_would_inherit_something_else(
    fork: Fork, changed: str
) -> None:
    begin, end = IN_A_WORKER.split('main__":\n')
    ran = fork(HAS_TORCH.replace(IN_A_WORKER, f'{begin}main__":\n    {changed}\n{end}'))
    if ran.lacked:
        pytest.skip(f"refused here: {ran.lacked}")
    assert ran.told is False


SEED_TAKEN_OUT = IN_A_WORKER.replace("    with", "    os.unsetenv('POPCORN_SEED')\n    with")


def test_a_seed_that_was_taken_out_is_nowhere_in_a_worker(fork: Fork) -> None:
    """KernelBot's evaluations do so by `os.unsetenv`, which leaves it in `os.environ`."""
    seed = str(secrets.randbelow(10**18) + 10**18)
    pattern = f"{seed[:9]}[{seed[9]}]{seed[10:]}"
    secret = {"POPCORN_SEED": seed}
    assert fork(SEARCH + SEED_TAKEN_OUT, environment=secret, pattern=pattern).told == ""


LOOKS = """
def found():
    seen = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("environ", "maps", "mem", "fd"):
            try:
                place = f"/proc/{pid}/{name}"
                os.listdir(place) if name == "fd" else open(place, "rb").read(1)
            except OSError as error:
                if error.errno in (1, 13):
                    continue
            if int(pid) != os.getpid():
                seen.append((open(f"/proc/{pid}/cmdline").read()[-60:], name))
    return [each for each in seen if "resource_tracker" not in each[0]]
"""


def test_a_worker_can_look_into_neither_evaluation_nor_nursery(fork: Fork) -> None:
    ran = fork(LOOKS + IN_A_WORKER)
    if ran.lacked:
        pytest.skip(f"refused here: {ran.lacked}")
    assert ran.told == []


SEVERAL = """
import multiprocessing, torch

def work(number):
    with torch.no_grad():
        return [os.getpid(), torch.rand(1).item(), number]

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with context.Pool(3, maxtasksperchild=1) as pool:
        first = pool.map(work, range(5), 1)
    queue = context.Queue()
    other = context.Process(target=queue.put, args=("put",))
    other.start()
    said = queue.get()
    other.join(10)
    ends = context.Process(target=os._exit, args=(5,))
    ends.start()
    ends.join(10)
    tell([first, said, other.exitcode, ends.exitcode])
"""


def test_what_exec_would_hand_on_is_known_to_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fork.inherited()
    assert fork.inherited() == before
    handler = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    assert fork.inherited() != before
    signal.signal(signal.SIGUSR2, handler)
    os.umask(mask := os.umask(0o123))
    os.umask(0o123)
    assert fork.inherited() != before
    os.umask(mask)
    with monkeypatch.context() as here:
        here.chdir("/")
        assert fork.inherited() != before
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (soft // 2 if soft > 0 else 1 << 23, hard))
    assert fork.inherited() != before
    resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))
    assert fork.inherited() == before


def test_workers_are_as_many_as_are_wanted_and_all_are_waited_for(fork: Fork) -> None:
    first, said, *ended = fork(SEVERAL).told
    assert [number for _, _, number in first] == list(range(5))
    assert len({pid for pid, _, _ in first}) == len({drawn for _, drawn, _ in first}) == 5
    assert (said, ended) == ("put", [0, 5])
