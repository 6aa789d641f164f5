"""The filter's program, run by a small interpreter for every architecture that has a table."""

import errno
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runners.harness.sandbox import filters

ALLOW, KILL, REFUSED, REPORTED = 0x7FFF0000, 0x80000000, 0x50000, 0x7FC00000
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
BOTH = pytest.mark.parametrize("machine", ARCH)


def verdict(
    machine: str,
    number: int,
    *args: int,
    arch: int = 0,
    gpu: bool = False,
    counts_locks: bool = False,
) -> int:
    """What the kernel would answer to one call."""
    data = {0: number, 4: arch or ARCH[machine]}
    for index, arg in enumerate((*args, *[0] * (6 - len(args)))):
        data |= {16 + 8 * index: arg & 0xFFFFFFFF, 20 + 8 * index: arg >> 32}
    program = filters.seccomp_instructions(machine, gpu=gpu, counts_locks=counts_locks)
    held, at = 0, 0
    while True:
        code, yes, no, value = program[at]
        at += 1
        match code:
            case 0x20:
                held = data[value]
            case 0x15:
                at += yes if held == value else no
            case 0x45:
                at += yes if held & value else no
            case 0x35:
                at += yes if held >= value else no
            case 0x06:
                return value
            case _:
                raise AssertionError(f"no such instruction: {code:#x}")


@BOTH
def test_every_jump_fits_its_byte(machine: str) -> None:
    program = filters.seccomp_instructions(machine, gpu=False)
    assert len(program) < 4096
    assert all(0 <= jump < 256 for _, yes, no, _ in program for jump in (yes, no))


@BOTH
def test_another_architecture_is_killed(machine: str) -> None:
    assert verdict(machine, 0, arch=0x40000003) == KILL


def test_x32_calls_are_killed() -> None:
    assert verdict("x86_64", 0x40000000 + 101) == KILL


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("ptrace", (101, 117)),
        ("unshare", (272, 97)),
        ("mount", (165, 40)),
        ("bpf", (321, 280)),
        ("timer_create", (222, 107)),
        ("vmsplice", (278, 75)),
        ("fadvise64", (221, 223)),
        ("move_pages", (279, 239)),
        ("migrate_pages", (256, 238)),
        ("mbind", (237, 235)),
        ("landlock_create_ruleset", (444, 444)),
        ("landlock_add_rule", (445, 445)),
    ],
)
def test_a_refused_call_gives_eperm(name: str, numbers: tuple[int, int]) -> None:
    for machine, number in zip(ARCH, numbers, strict=True):
        assert verdict(machine, number) == REFUSED | errno.EPERM


@pytest.mark.parametrize("numbers", [(141, 140), (144, 119), (314, 274)])
def test_no_process_changes_its_priority(numbers: tuple[int, int]) -> None:
    done_without_effect = REFUSED
    for machine, number in zip(ARCH, numbers, strict=True):
        assert verdict(machine, number) == done_without_effect


@BOTH
@given(flags=st.integers(0, 2**32 - 1))
@example(flags=0x400)
@example(flags=0x10400)
def test_clone_is_refused_exactly_for_a_namespace_a_sibling_or_shared_descriptors(
    machine: str, flags: int
) -> None:
    number = {"x86_64": 56, "aarch64": 220}[machine]
    namespaces = 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000
    sibling, files, thread = 0x8000, 0x400, 0x10000
    shares = flags & files and not flags & thread
    refused = shares or flags & (namespaces | sibling)
    assert verdict(machine, number, flags) == (REFUSED | errno.EPERM if refused else ALLOW)


@BOTH
@given(command=st.integers(0, 2**32 - 1))
@example(command=1024)
@example(command=1026)
@example(command=1036)
def test_no_descriptor_may_send_signals_or_get_a_lease_or_hint(machine: str, command: int) -> None:
    number = {"x86_64": 72, "aarch64": 25}[machine]
    f_setsig, f_setlease, f_notify, f_set_rw_hint, locks = 10, 1024, 1026, 1036, (6, 7, 37, 38)
    refused = (f_setsig, f_setlease, f_notify, f_set_rw_hint)
    expected = REFUSED | errno.EPERM if command in refused else ALLOW
    assert command in locks or verdict(machine, number, 3, command) == expected


@BOTH
@given(flags=st.integers(0, 2**32 - 1))
def test_no_file_is_made_to_send_signals(machine: str, flags: int) -> None:
    fcntl, ioctl = {"x86_64": (72, 16), "aarch64": (25, 29)}[machine]
    f_setfl, o_async, fioasync, fionbio = 4, 0x2000, 0x5452, 0x5421
    expected = REFUSED | errno.EPERM if flags & o_async else ALLOW
    assert verdict(machine, fcntl, 3, f_setfl, flags) == expected
    assert verdict(machine, ioctl, 3, fioasync) == REFUSED | errno.EPERM
    assert verdict(machine, ioctl, 3, fionbio) == ALLOW


@BOTH
@pytest.mark.parametrize(("counts", "expected"), [(True, REPORTED), (False, REFUSED)])
@pytest.mark.parametrize("command", [6, 7, 37, 38])
def test_a_lock_on_a_part_of_a_file_is_reported_or_without_effect(
    machine: str, command: int, *, counts: bool, expected: int
) -> None:
    number = {"x86_64": 72, "aarch64": 25}[machine]
    assert verdict(machine, number, 3, command, counts_locks=counts) == expected


@BOTH
@pytest.mark.parametrize(("counts", "expected"), [(True, REPORTED), (False, REFUSED)])
@given(operation=st.integers(0, 300))
def test_exclusive_locks_of_whole_files_are_allowed_unreported(
    machine: str, operation: int, *, counts: bool, expected: int
) -> None:
    number = {"x86_64": 73, "aarch64": 32}[machine]
    exclusive, no_wait, unlock = 2, 4, 8
    plain = not operation & ~(exclusive | no_wait | unlock)
    found = verdict(machine, number, 3, operation, counts_locks=counts)
    assert found == (ALLOW if plain else expected)


@BOTH
@given(option=st.integers(0, 100))
@example(option=0x53564D41)
def test_dangerous_options_of_prctl_are_refused(machine: str, option: int) -> None:
    number = {"x86_64": 157, "aarch64": 167}[machine]
    set_seccomp, set_mm, set_child_subreaper, sched_core, futex_hash = 22, 35, 36, 62, 78
    set_vma = 0x53564D41
    errors = {
        set_seccomp: errno.EPERM,
        set_mm: errno.EPERM,
        set_child_subreaper: errno.EPERM,
        sched_core: errno.EINVAL,
        futex_hash: errno.EINVAL,
        set_vma: errno.EINVAL,
    }
    expected = REFUSED | errors[option] if option in errors else ALLOW
    assert verdict(machine, number, option) == expected


@BOTH
@given(pid=st.integers(0, 2**32 - 1))
@example(pid=0)
@example(pid=1)
def test_a_process_sets_no_limits_but_its_own(machine: str, pid: int) -> None:
    number = {"x86_64": 302, "aarch64": 261}[machine]
    expected = REFUSED | errno.EPERM if pid else ALLOW
    assert verdict(machine, number, pid) == expected


@BOTH
@given(limit=st.integers(0, 15), new=st.integers(0, 2**64 - 1))
@example(limit=4, new=0)
@example(limit=4, new=1 << 32)
def test_to_set_the_limit_of_core_dumps_has_no_effect(machine: str, limit: int, new: int) -> None:
    prlimit, setrlimit = {"x86_64": (302, 160), "aarch64": (261, 164)}[machine]
    core, done_without_effect = 4, REFUSED
    expected = done_without_effect if limit == core and new else ALLOW
    assert verdict(machine, prlimit, 0, limit, new) == expected
    assert verdict(machine, setrlimit, limit) == (done_without_effect if limit == core else ALLOW)


@BOTH
@given(length=st.integers(0, 2**64 - 1))
def test_no_call_reads_which_pages_of_a_long_range_exist(machine: str, length: int) -> None:
    number = {"x86_64": 27, "aarch64": 232}[machine]
    expected = ALLOW if length < 1 << 32 else REFUSED | errno.EPERM
    assert verdict(machine, number, 4096, length) == expected


@BOTH
def test_clone3_is_answered_as_unknown(machine: str) -> None:
    assert verdict(machine, 435) == REFUSED | errno.ENOSYS


@BOTH
def test_extended_attributes_are_refused_as_by_a_file_system_without_them(machine: str) -> None:
    calls = {"x86_64": (188, 189, 190, 463), "aarch64": (5, 6, 7, 463)}[machine]
    assert {verdict(machine, each) for each in calls} == {REFUSED | errno.EOPNOTSUPP}
    read_and_removed = {"x86_64": (191, 197), "aarch64": (8, 14)}[machine]
    assert {verdict(machine, each) for each in read_and_removed} == {ALLOW}


@BOTH
@given(family=st.integers(0, 60))
def test_only_ordinary_socket_families_are_allowed(machine: str, family: int) -> None:
    number = {"x86_64": 41, "aarch64": 198}[machine]
    expected = ALLOW if family in {1, 2, 10, 16} else REFUSED | errno.EAFNOSUPPORT
    assert verdict(machine, number, family) == expected


@BOTH
@pytest.mark.parametrize(("protocol", "allowed"), [(0, True), (6, True), (17, True), (132, False)])
def test_no_socket_makes_linux_load_a_protocol(
    machine: str, protocol: int, *, allowed: bool
) -> None:
    number = {"x86_64": 41, "aarch64": 198}[machine]
    expected = ALLOW if allowed else REFUSED | errno.EPROTONOSUPPORT
    assert verdict(machine, number, 2, 1, protocol) == expected


@BOTH
@pytest.mark.parametrize(("protocol", "allowed"), [(0, True), (4, False), (12, False)])
def test_netlink_only_lists_network_interfaces(
    machine: str, protocol: int, *, allowed: bool
) -> None:
    number = {"x86_64": 41, "aarch64": 198}[machine]
    expected = ALLOW if allowed else REFUSED | errno.EPROTONOSUPPORT
    assert verdict(machine, number, 16, 3, protocol) == expected
    counted = REPORTED if allowed else expected
    assert verdict(machine, number, 16, 3, protocol, counts_locks=True) == counted
    assert verdict(machine, number, 2, 2, protocol and 17, counts_locks=True) == ALLOW


@BOTH
@pytest.mark.parametrize("request_number", [0x8940, 0x8941, 0x8982, 0x8983, 0x89A0, 0x89A1])
def test_no_request_makes_linux_load_the_module_of_bridges(
    machine: str, request_number: int
) -> None:
    number = {"x86_64": 16, "aarch64": 29}[machine]
    assert verdict(machine, number, 3, request_number) == REFUSED | errno.EPERM


@BOTH
@pytest.mark.parametrize(("advice", "expected"), [(21, REFUSED), (20, ALLOW), (4, ALLOW)])
def test_no_memory_is_moved_to_the_swap_space_on_request(
    machine: str, advice: int, expected: int
) -> None:
    number = {"x86_64": 28, "aarch64": 233}[machine]
    assert verdict(machine, number, 4096, 4096, advice) == expected


@BOTH
@pytest.mark.parametrize("option", [7, 8])
def test_the_buffers_of_sockets_keep_their_size(machine: str, option: int) -> None:
    number = {"x86_64": 54, "aarch64": 208}[machine]
    done_without_effect = REFUSED
    assert verdict(machine, number, 3, 1, option) == done_without_effect
    assert verdict(machine, number, 3, 1, 9) == ALLOW
    assert verdict(machine, number, 3, 6, option) == ALLOW


@BOTH
@pytest.mark.parametrize("option", [26, 51])
def test_no_socket_gets_a_filter(machine: str, option: int) -> None:
    number = {"x86_64": 54, "aarch64": 208}[machine]
    assert verdict(machine, number, 3, 1, option) == REFUSED | errno.EPERM
    assert verdict(machine, number, 3, 6, option) == ALLOW


@BOTH
def test_keystrokes_cannot_be_pushed_into_a_terminal(machine: str) -> None:
    number = {"x86_64": 16, "aarch64": 29}[machine]
    assert verdict(machine, number, 0, 0x5412) == REFUSED | errno.EPERM
    assert verdict(machine, number, 0, 0x541C) == REFUSED | errno.EPERM
    assert verdict(machine, number, 0, 0x5401) == ALLOW


@BOTH
def test_memory_files_are_allowed_only_beside_a_gpu(machine: str) -> None:
    number = {"x86_64": 319, "aarch64": 279}[machine]
    assert verdict(machine, number) == REFUSED | errno.ENOSYS
    assert verdict(machine, number, gpu=True) == ALLOW


@BOTH
def test_ordinary_calls_are_allowed(machine: str) -> None:
    ordinary = {"x86_64": (0, 1, 9, 202, 231, 257), "aarch64": (63, 64, 222, 98, 94, 56)}
    assert {verdict(machine, number) for number in ordinary[machine]} == {ALLOW}


def test_a_machine_without_a_table_is_said() -> None:
    with pytest.raises(OSError, match="riscv64"):
        filters.seccomp_instructions("riscv64", gpu=False)


HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


@BOTH
def test_each_refused_call_has_the_number_that_the_kernels_headers_give_it(machine: str) -> None:
    if not HEADERS[machine].is_file():
        pytest.skip("the kernel's headers are not installed")
    lines = re.findall(r"#define __NR\w*?_(\w+)\s+(\d+)", HEADERS[machine].read_text("utf-8"))
    known = {name: int(number) for name, number in lines}
    column = list(ARCH).index(machine)
    calls = {**filters._REFUSED, **{name: each[:2] for name, each in filters._ANSWERED.items()}}
    refused = {name: numbers[column] for name, numbers in calls.items()}
    found = {name: known[name] for name in refused if name in known}
    assert len(found) > 40
    assert found == {name: refused[name] for name in found}
