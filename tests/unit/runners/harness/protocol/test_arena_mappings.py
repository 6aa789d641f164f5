import mmap
import re
from pathlib import Path

import pytest

from runners.harness.protocol.arena import Arena, places_of, repeats_memory

FILE, OTHER, MEMORY = b"00:2a 7 /tmp/ring", b"00:2b 7 /tmp/ring", b"00:01 9 /dev/zero (deleted)"
PRIVATE, ZEROS, PINNED = b"00:00 0", b"00:05 4 /dev/zero", b"00:05 99  /dev/nvidia-uvm"


def listed(*files: bytes, offsets: tuple[int, ...] = (0, 0)) -> bytes:
    """Two mappings of two pages each, at 0x1000 and at 0x3000."""
    rows = zip((0x1000, 0x3000), offsets, files, strict=True)
    return b"".join(
        b"%x-%x rw-s %08x %s\n" % (at, at + 0x2000, off, name) for at, off, name in rows
    )


def mappings() -> bytes:
    return Path("/proc/self/maps").read_bytes()


def test_a_memory_file_that_is_not_mapped_has_no_place() -> None:
    with Arena(4096) as arena:
        arena.buffer.close()
        assert places_of(mappings(), arena.fd) == frozenset()


def test_each_order_of_the_pages_of_a_memory_file_is_a_place_of_its_own() -> None:
    with Arena(8192) as arena:  # the judge maps it once
        (whole,) = places_of(mappings(), arena.fd)
        with mmap.mmap(arena.fd, 4096, offset=4096):
            assert len(places_of(mappings(), arena.fd)) == 2
        assert places_of(mappings(), arena.fd) == {whole}


def test_a_mapping_that_has_another_name_is_found() -> None:
    with Arena(4096) as arena:
        found = mappings()
        renamed = re.sub(rb"/memfd:.*", b"[anon_shmem:numbers]", found)
        assert places_of(renamed, arena.fd) == places_of(found, arena.fd) != frozenset()


@pytest.mark.parametrize(
    ("text", "spans", "twice"),
    [
        (listed(FILE, FILE), [(0x1000, 0x5000)], True),
        (listed(MEMORY, MEMORY), [(0x1000, 0x5000)], True),
        (
            listed(FILE, FILE),
            [(0x2FFF, 0x4FFF)],
            False,
        ),  # each byte once
        (listed(FILE, FILE), [(0x2FFE, 0x4FFF)], True),
        (listed(FILE, FILE, offsets=(0, 0x2000)), [(0x1000, 0x5000)], False),
        (listed(FILE, FILE, offsets=(0, 0x1000)), [(0x1000, 0x5000)], True),
        (listed(FILE, FILE), [(0x1000, 0x1004), (0x3000, 0x3004)], True),
        (listed(FILE, FILE), [(0x3004, 0x3008), (0x1000, 0x1004)], False),
        (listed(FILE, FILE), [(0x1000, 0x2000), (0x1000, 0x2000), (0x1800, 0x3000)], False),
        (listed(FILE, FILE), [(0x1000, 0x2000), (0x1400, 0x1800), (0x1500, 0x3000)], False),
        (listed(FILE, FILE), [(0x1000, 0x2000), (0x1400, 0x1800), (0x3900, 0x3904)], True),
        (listed(FILE, OTHER), [(0x1000, 0x5000)], False),
        (listed(PRIVATE, PRIVATE), [(0x1000, 0x5000)], False),
        (listed(ZEROS, ZEROS), [(0x1000, 0x5000)], False),
        (listed(PINNED, PINNED), [(0x1000, 0x5000)], False),
        (listed(FILE, FILE), [(0x5000, 0x9000), (0, 0x1000), (0x1000, 0x1000)], False),
        (listed(FILE, FILE), [], False),
    ],
)
def test_memory_that_spans_have_twice_is_found(
    text: bytes, spans: list[tuple[int, int]], *, twice: bool
) -> None:
    assert repeats_memory(text, spans) is twice
