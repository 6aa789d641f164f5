"""Every line that no honest evaluation writes is refused."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.harness.popcorn.stream import (
    BreachError,
    Case,
    Step,
    Times,
    UnfinishedError,
    glimpse,
    read,
)

TESTS = b"""test-count: 2
test.0.spec: size: 3; seed: 4
test.0.status: pass
test.1.spec: size: 5; seed: 4
test.1.status: pass
check: pass
"""
TIMED = b"""benchmark-count: 1
benchmark.0.spec: size: 3
benchmark.0.runs: 4
benchmark.0.mean: 5000.5
benchmark.0.std: 20
benchmark.0.err: 1e1
benchmark.0.best: 4000
benchmark.0.worst: 6000.0
check: pass
"""


def test_tests_that_all_passed() -> None:
    assert read(TESTS, Step.TEST, 2) == (Case(passed=True), Case(passed=True))


def test_times_are_read_as_they_were_said() -> None:
    (case,) = read(TIMED, Step.LEADERBOARD, 1)
    assert case.times == Times(runs=4, mean=5000.5, std=20, err=10, best=4000, worst=6000)


def test_the_message_of_a_failed_test_has_its_lines_back() -> None:
    failed = TESTS.replace(b"1.status: pass", b"1.status: fail\ntest.1.error: a: b\\nc")
    found = read(failed.replace(b"check: pass", b"check: fail"), Step.TEST, 2)
    assert found[1] == Case(passed=False, message="a: b\nc")


@pytest.mark.parametrize("kept", [1, 2])
def test_a_check_that_fails_without_a_reason_fails_the_next_case(kept: int) -> None:
    said = TESTS.replace(b"check: pass", b"check: fail")
    if kept == 1:
        said = said.replace(b"test.1.spec: size: 5; seed: 4\ntest.1.status: pass\n", b"")
    found = read(said, Step.TEST, 2)
    assert found == (Case(passed=True), Case(passed=False, message="the check failed"))


def test_a_benchmark_that_fails_ends_the_list() -> None:
    said = b"benchmark-count: 2\nbenchmark.0.status: fail\nbenchmark.0.error: no\ncheck: fail\n"
    assert read(said, Step.BENCHMARK, 2) == (Case(passed=False, message="no"),)


@pytest.mark.parametrize("alphabet", [b"+/", b"+*"])
def test_a_report_is_decoded_in_either_alphabet(alphabet: bytes) -> None:
    text = "table ÿ¿þ~~~???"
    report = base64.b64encode(text.encode(), alphabet).decode()
    said = f"benchmark.0.report: {report}\ncheck: pass\n".encode()
    assert read(said, Step.PROFILE, 1) == (Case(passed=True, report=text),)


def test_what_public_tasks_say_beside_the_times_is_known_and_not_used() -> None:
    said = TIMED.replace(b"check", b"benchmark.0.speedup: 3\nbenchmark.0.message: m\ncheck")
    assert read(said, Step.BENCHMARK, 1) == read(TIMED, Step.BENCHMARK, 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((b"check: pass\n", b""), "does not end with"),
        ((b"check: pass", b"check: perhaps"), "does not end with"),
        ((b"check: pass\n", b"check: pass\ncheck: pass\n"), "goes on after `check`"),
        ((b"check: pass\n", b"check: pass\ntest.1.status: pass\n"), "goes on after `check`"),
        ((b"check: pass\n", b"check: pass\n" + b"\0" * 9), "goes on after `check`"),
        ((b"test.1.status: pass\n", b"test.1.status: pass\n" * 2), "'test.1.status' twice"),
        ((b"test-count: 2\n", b"test-count: 2\ntest-count: 2\n"), "'test-count' twice"),
        ((b"test-count: 2", b"test-count: 3"), "counts 3 cases, not 2"),
        ((b"check", b"score: 1\ncheck"), "unknown key 'score'"),
        ((b"check", b"benchmark.0.mean: 1\ncheck"), "unknown key 'benchmark.0.mean'"),
        ((b"check", b"test.0.mean: 1\ncheck"), "unknown key 'test.0.mean'"),
        ((b"check", b"test.01.spec: 1\ncheck"), "unknown key"),
        ((b"check", b"no colon\ncheck"), "unknown key 'no colon'"),
        ((b"check", b"\xff: 1\ncheck"), "not UTF-8"),
        ((b"check", b"test.2.status: pass\ncheck"), "one too many"),
        ((b"test.1.status: pass", b"test.1.status: yes"), "neither pass nor fail"),
        ((b"test.1.status: pass", b"test.1.status: fail"), "says `check: pass`, but"),
        ((b"test.1.status: pass\n", b""), "says `check: pass`, but"),
        ((b"test.0.status: pass\n", b""), "unfinished and goes on"),
        ((b"test.0", b"test.7"), "leaves a case out"),
    ],
)
def test_a_breach_of_a_tests_line_is_named(change: tuple[bytes, bytes], words: str) -> None:
    with pytest.raises(BreachError, match=words):
        read(TESTS.replace(*change), Step.TEST, 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((b"mean: 5000.5", b"mean: nan"), "has nan at `benchmark.0.mean`"),
        ((b"mean: 5000.5", b"mean: inf"), "has inf at"),
        ((b"mean: 5000.5", b"mean: 0"), "not positive"),
        ((b"mean: 5000.5", b"mean: -1"), "has -1 at"),
        ((b"mean: 5000.5", b"mean: fast"), "no number at"),
        ((b"best: 4000", b"best: 0"), "not positive"),
        ((b"worst: 6000.0", b"worst: 1e999"), "has 1e999 at"),
        ((b"std: 20", b"std: nan"), "has nan at"),
        ((b"runs: 4", b"runs: 0"), "no count"),
        ((b"runs: 4", b"runs: 2.5"), "no count"),
        ((b"benchmark.0.err: 1e1\n", b""), "lacks `benchmark.0.err`"),
    ],
)
def test_a_number_that_is_no_time_is_refused(change: tuple[bytes, bytes], words: str) -> None:
    with pytest.raises(BreachError, match=words):
        read(TIMED.replace(*change), Step.LEADERBOARD, 1)


def test_a_report_that_is_no_base64_is_refused() -> None:
    with pytest.raises(BreachError, match="no base64"):
        read(b"benchmark.0.report: ###\ncheck: pass\n", Step.PROFILE, 1)


def test_a_line_that_stops_short_is_told_from_one_that_is_forged() -> None:
    with pytest.raises(UnfinishedError):
        read(b"test-count: 2\n", Step.TEST, 2)
    with pytest.raises(UnfinishedError):
        read(b"", Step.TEST, 2)


def test_of_a_phase_that_broke_off_the_whole_cases_are_seen() -> None:
    begun = TESTS.partition(b"test.1.status")[0] + b"test.1.sta"
    assert glimpse(begun, Step.TEST, 2) == (Case(passed=True),)
    assert glimpse(b"forged: 1\n" + begun, Step.TEST, 2) == ()


@given(st.binary(max_size=200))
def test_no_bytes_are_more_than_a_breach(noise: bytes) -> None:
    for step in Step:
        assert glimpse(noise, step, 2) is not None
        with pytest.raises(BreachError):
            read(noise, step, 2)
