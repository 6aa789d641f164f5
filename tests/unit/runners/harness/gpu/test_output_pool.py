"""What of the pool needs no GPU: which memory is handed out."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.harness.gpu.memory import SEGMENT_BYTES, Segments

BEGIN = 16 * SEGMENT_BYTES


class Driver:
    """Memory beyond the one piece, of which there may be none."""

    def __init__(self, address: int | None = 1 << 60) -> None:
        self.address = address
        self.asked: list[int] = []

    def __call__(self, size: int) -> int | None:
        self.asked.append(size)
        return self.address


def test_segments_follow_each_other_whole_grains_apart() -> None:
    driver = Driver()
    segments = Segments(BEGIN, 8 * SEGMENT_BYTES, driver)

    found = [
        segments.allocate(size) for size in (1, SEGMENT_BYTES, SEGMENT_BYTES + 1, SEGMENT_BYTES)
    ]

    assert found == [
        BEGIN,
        BEGIN + SEGMENT_BYTES,
        BEGIN + 2 * SEGMENT_BYTES,
        BEGIN + 4 * SEGMENT_BYTES,
    ]
    assert driver.asked == []


def test_what_does_not_fit_comes_from_the_driver_and_the_rest_is_still_there() -> None:
    driver = Driver()
    segments = Segments(BEGIN, 2 * SEGMENT_BYTES, driver)

    assert segments.allocate(3 * SEGMENT_BYTES) == driver.address
    assert segments.allocate(2 * SEGMENT_BYTES) == BEGIN
    assert segments.allocate(5) == driver.address
    assert driver.asked == [3 * SEGMENT_BYTES, 5]


def test_where_the_driver_has_none_there_is_none() -> None:
    assert Segments(BEGIN, 0, Driver(None)).allocate(1) is None


@pytest.mark.parametrize(
    ("address", "own"),
    [
        (BEGIN - 1, False),
        (BEGIN, True),
        (BEGIN + SEGMENT_BYTES - 1, True),
        (BEGIN + SEGMENT_BYTES, False),
    ],
)
def test_only_what_lies_in_the_one_piece_is_its_own(*, address: int, own: bool) -> None:
    assert Segments(BEGIN, SEGMENT_BYTES, Driver()).owns(address) is own


@given(st.lists(st.integers(1, 5 * SEGMENT_BYTES), max_size=12))
def test_no_two_segments_overlap_or_leave_the_piece(sizes: list[int]) -> None:
    segments = Segments(BEGIN, 8 * SEGMENT_BYTES, Driver(None))
    spans = [(address, size) for size in sizes if (address := segments.allocate(size)) is not None]

    assert all(segments.owns(address) and address % SEGMENT_BYTES == 0 for address, _ in spans)
    assert all(address + size <= BEGIN + 8 * SEGMENT_BYTES for address, size in spans)
    for (one, size), (other, _) in itertools.pairwise(spans):
        assert one + size <= other
