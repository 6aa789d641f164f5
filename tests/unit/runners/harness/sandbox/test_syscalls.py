"""System calls that the kernel refuses say which one and why."""

import errno
from collections.abc import Callable

import pytest

from runners.harness.sandbox import syscalls

NOWHERE = "/no/such/place"


def test_a_file_that_is_not_there_reads_as_nothing() -> None:
    assert syscalls._read("/proc/self/no such file") == ""
    assert syscalls._read("/proc/sys/kernel/ostype") == "Linux\n"


@pytest.mark.parametrize(
    ("call", "number", "words"),
    [
        (lambda: syscalls.prctl(-1), errno.EINVAL, "prctl -1"),
        (lambda: syscalls.unshare(-1), errno.EINVAL, "unshare"),
        (lambda: syscalls.mount("no-such-kind", "/", 0), errno.ENODEV, "mount /"),
        (lambda: syscalls.bind(NOWHERE, NOWHERE), errno.ENOENT, f"bind {NOWHERE}"),
        (
            lambda: syscalls.set_mount_attributes(NOWHERE, 1, recursive=True),
            errno.ENOENT,
            f"mount_setattr {NOWHERE}",
        ),
        (lambda: syscalls.landlock_ruleset(b""), errno.EINVAL, "Landlock ruleset"),
        (lambda: syscalls.landlock_allow(-1, 0, -1), errno.EBADF, "Landlock rule"),
        (lambda: syscalls.install_filter(b""), errno.EINVAL, "seccomp"),
    ],
)
def test_a_refused_call_is_an_error_that_names_it(
    call: Callable[[], None], number: int, words: str
) -> None:
    with pytest.raises(OSError, match=words) as refused:
        call()
    assert refused.value.errno in {number, errno.EPERM}
