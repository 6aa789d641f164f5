"""What is asked of each version of Landlock."""

import pytest

from runners.harness.sandbox import filters


@pytest.mark.parametrize(
    ("version", "fields", "rights"),
    [(1, 1, 13), (2, 1, 14), (3, 1, 15), (4, 2, 15), (5, 2, 16), (6, 3, 16), (9, 3, 16)],
)
def test_a_version_is_asked_only_for_what_it_knows(version: int, fields: int, rights: int) -> None:
    attributes = filters.landlock_attributes(version)
    assert len(attributes) == 8 * fields
    assert int.from_bytes(attributes[:8], "little") == (1 << rights) - 1


@pytest.mark.parametrize(("version", "tcp"), [(4, 3), (9, 3)])
def test_tcp_is_left_alone_only_for_who_needs_it(version: int, tcp: int) -> None:
    assert int.from_bytes(filters.landlock_attributes(version)[8:16], "little") == tcp
    assert int.from_bytes(filters.landlock_attributes(version, tcp=True)[8:16], "little") == 0
    assert (
        filters.landlock_attributes(version, tcp=True)[16:]
        == filters.landlock_attributes(version)[16:]
    )
