"""A pass is read strictly, and a failure from whatever tells one."""

import base64
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.harness.kernelbot.stream import (
    BreachError,
    ReportedCase,
    Step,
    Times,
    UnfinishedError,
    error_text,
    finished_cases,
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
    assert read(TESTS, Step.TEST, 2) == (ReportedCase(passed=True), ReportedCase(passed=True))


def test_times_are_read_as_they_were_said() -> None:
    (case,) = read(TIMED, Step.LEADERBOARD, 1)
    assert case.times == Times(5000.5, runs=4, err=10)


def test_the_message_of_a_failed_test_has_its_lines_back() -> None:
    failed = TESTS.replace(b"1.status: pass", b"1.status: fail\ntest.1.error: a: b\\nc")
    found = read(failed.replace(b"check: pass", b"check: fail"), Step.TEST, 2)
    assert found[1] == ReportedCase(passed=False, message="a: b\nc")


@pytest.mark.parametrize("kept", [1, 2])
def test_a_check_that_fails_without_a_reason_fails_the_next_case(kept: int) -> None:
    said = TESTS.replace(b"check: pass", b"check: fail")
    if kept == 1:
        said = said.replace(b"test.1.spec: size: 5; seed: 4\ntest.1.status: pass\n", b"")
    found = read(said, Step.TEST, 2)
    assert found == (
        ReportedCase(passed=True),
        ReportedCase(passed=False, message="the check failed"),
    )


def test_a_benchmark_that_fails_ends_the_list() -> None:
    said = b"benchmark-count: 2\nbenchmark.0.status: fail\nbenchmark.0.error: no\ncheck: fail\n"
    assert read(said, Step.BENCHMARK, 2) == (ReportedCase(passed=False, message="no"),)


@pytest.mark.parametrize("alphabet", [b"+/", b"+*"])
def test_a_report_is_decoded_in_either_alphabet(alphabet: bytes) -> None:
    text = "table ÿ¿þ~~~???"
    report = base64.b64encode(text.encode(), alphabet).decode()
    said = f"benchmark.0.report: {report}\ncheck: pass\n".encode()
    assert read(said, Step.PROFILE, 1) == (ReportedCase(passed=True, report=text),)


def test_what_public_tasks_say_beside_the_times_is_known_and_not_used() -> None:
    said = TIMED.replace(b"check", b"benchmark.0.speedup: 3\nbenchmark.0.message: m\ncheck")
    assert read(said, Step.BENCHMARK, 1) == read(TIMED, Step.BENCHMARK, 1)


@pytest.mark.parametrize(
    "change",
    [
        (b"check", b"score: 1\ncheck"),
        (b"check", b"no colon\ncheck"),
        (b"check", b"benchmark.0.mean: 1\ntest.0.mean: 1\ntest.01.spec: 1\ncheck"),
        (b"check", b"test.2.status: pass\ncheck"),
        (b"check: pass\n", b"check: pass\ncheck: pass\n"),
        (b"check: pass\n", b"check: pass\nmessage: done\n" + b"\0" * 9),
        (b"test.1.status: pass\n", b"test.1.status: pass\n" * 2),
        (b"1.status: pass\n", b"1.status: pass\ntest.1.message: off by 0\n  in all: 3\n"),
    ],
)
def test_what_is_no_key_or_is_said_again_takes_no_pass_away(change: tuple[bytes, bytes]) -> None:
    assert read(TESTS.replace(*change), Step.TEST, 2) == (
        ReportedCase(passed=True),
        ReportedCase(passed=True),
    )


@pytest.mark.parametrize("step", [Step.TEST, Step.BENCHMARK, Step.LEADERBOARD, Step.PROFILE])
@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"check: fail\nerror: No module named 'x'\n", "No module named 'x'"),
        (b"check: fail\nerror: two\nlines: of it\nerror: and\n", "two\nlines: of it\nerror: and"),
        (b"check: fail\n", "the check failed"),
        (b"test-count: 1\ntest.0.status: fail\ntest.0.error: off by 3\n", "off by 3"),
        (b"benchmark.0.error: a\\nb\n", "a\nb"),
        (b"check: pass\ntest.0.error: late\n", "late"),
        (b"test.7.status: fail\ncheck: pass\n", "the output is wrong"),
    ],
)
def test_a_failure_is_final_in_whichever_place_it_stands(
    step: Step, said: bytes, words: str
) -> None:
    """An import that fails; a wrong answer in a ranked run that says it as a test does."""
    assert read(said, step, 1) == (ReportedCase(passed=False, message=words),)


def test_an_error_of_several_lines_is_read_whole() -> None:
    """As evaluations of several ranks write it, a line for each."""
    said = (
        b"test-count: 2\ntest.0.spec: size: 3\ntest.0.status: fail\n"
        b"test.0.error: rank 0 - mismatch\nrank 1 - mismatch: 2 of 3\n\n  at (0, 1)\n"
        b"test.1.spec: size: 5\ntest.1.status: pass\ncheck: fail\n"
    )
    words = "rank 0 - mismatch\nrank 1 - mismatch: 2 of 3\n  at (0, 1)"
    assert read(said, Step.TEST, 2) == (
        ReportedCase(passed=False, message=words),
        ReportedCase(passed=True),
    )


def test_a_ranked_run_without_best_and_worst_is_timed() -> None:
    said = b"".join(
        each
        for each in TIMED.splitlines(keepends=True)
        if b"best" not in each and b"worst" not in each
    )
    assert read(said, Step.LEADERBOARD, 1) == read(TIMED, Step.LEADERBOARD, 1)


def test_a_mean_alone_is_a_time_of_one_run() -> None:
    (case,) = read(b"benchmark.0.mean: 5000\ncheck: pass\n", Step.LEADERBOARD, 1)
    assert case == ReportedCase(passed=True, times=Times(5000.0))


@pytest.mark.parametrize("report", [b"", b"benchmark.0.report:\n"])
def test_a_profile_need_not_tell_anything(report: bytes) -> None:
    said = b"benchmark-count: 1\nbenchmark.0.spec: size: 3\n" + report + b"check: pass\n"
    assert read(said, Step.PROFILE, 1) == (ReportedCase(passed=True),)


def test_a_line_of_a_million_errors_is_read_at_once() -> None:
    said = b"error: x\n" * 100_000 + b"check: fail\n"
    begin = time.process_time()
    (case,) = read(said, Step.TEST, 1)
    assert not case.passed
    assert time.process_time() - begin < 5


@given(
    st.lists(st.sampled_from([*TESTS.splitlines(), b"check: fail", b"x: 1", b"test.0.error: e"]))
)
def test_no_order_of_lines_passes_but_one_that_says_so_of_every_case(lines: list[bytes]) -> None:
    try:
        found = read(b"\n".join(lines), Step.TEST, 2)
    except BreachError:
        return
    end = lines.index(b"check: pass") if b"check: pass" in lines else 0
    wanted = {b"test.0.status: pass", b"test.1.status: pass"} <= set(lines[:end])
    failed = b"check: fail" in lines or b"test.0.error: e" in lines
    assert all(case.passed for case in found) == (wanted and not failed)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((b"check: pass\n", b""), "does not end with"),
        ((b"check: pass", b"check: perhaps"), "does not end with"),
        ((b"check: pass\n", b"check: pass\ncheck: fail\n"), "'check' twice"),
        ((b"check: pass\n", b"check: fail\ncheck: pass\n"), "'check' twice"),
        ((b"1.status: pass\n", b"1.status: pass\ntest.1.status: fail\n"), "'test.1.status' twice"),
        ((b"check: pass\n", b"check: pass\ntest.1.status: fail\n"), "'test.1.status' twice"),
        ((b"test-count: 2\n", b"test-count: 2\ntest-count: 1\n"), "'test-count' twice"),
        ((b"test-count: 2", b"test-count: 3"), "counts 3 cases, not 2"),
        ((b"check", b"\xff: 1\ncheck"), "not UTF-8"),
        ((b"test.1.status: pass", b"test.1.status: yes"), "says `check: pass` without"),
        ((b"test.1.status: pass\n", b""), "says `check: pass` without"),
        ((b"test.0.status: pass\n", b""), "says `check: pass` without"),
        ((b"test.0", b"test.7"), "says `check: pass` without"),
        (
            (b"test.1.status: pass\ncheck: pass", b"check: pass\ntest.1.status: pass"),
            "says `check: pass` without",
        ),
    ],
)
def test_a_tests_line_that_is_no_pass_is_refused(change: tuple[bytes, bytes], words: str) -> None:
    with pytest.raises(BreachError, match=words):
        read(TESTS.replace(*change), Step.TEST, 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((b"mean: 5000.5", b"mean: nan"), "has nan at `benchmark.0.mean`"),
        ((b"mean: 5000.5", b"mean: inf"), "has inf at"),
        ((b"mean: 5000.5", b"mean: 0"), "not positive"),
        ((b"mean: 5000.5", b"mean: 5e-324"), "less than 1e-09 ns"),
        ((b"mean: 5000.5", b"mean: -1"), "has -1 at"),
        ((b"mean: 5000.5", b"mean: fast"), "no number at"),
        ((b"best: 4000", b"best: 0"), "not positive"),
        ((b"worst: 6000.0", b"worst: 1e999"), "has 1e999 at"),
        ((b"std: 20", b"std: nan"), "has nan at"),
        ((b"runs: 4", b"runs: 0"), "not a positive integer"),
        ((b"runs: 4", b"runs: 2.5"), "not a positive integer"),
        ((b"runs: 4", b"runs: 1e200"), "has 1e200 at"),
        ((b"std: 20", b"std: 1e308"), "has 1e308 at"),
        ((b"benchmark.0.mean: 5000.5\n", b""), "says `check: pass` without"),
        (
            (b"benchmark.0.mean: 5000.5", b"benchmark.0.status: maybe\nbenchmark.0.mean: 1"),
            "says `check: pass` without",
        ),
    ],
)
def test_a_number_that_is_no_time_is_refused(change: tuple[bytes, bytes], words: str) -> None:
    with pytest.raises(BreachError, match=words):
        read(TIMED.replace(*change), Step.LEADERBOARD, 1)


@pytest.mark.parametrize("report", ["###", "é"])
def test_a_report_that_is_no_base64_is_refused(report: str) -> None:
    with pytest.raises(BreachError, match="not base64"):
        read(f"benchmark.0.report: {report}\ncheck: pass\n".encode(), Step.PROFILE, 1)


def test_a_case_has_one_number_only() -> None:
    said = "test.10.status: fail\ntest.1\u0660.status: pass\ncheck: pass\n"
    passed = "".join(f"test.{number}.status: pass\n" for number in range(10))
    assert not read((passed + said).encode(), Step.TEST, 11)[10].passed


def test_a_line_that_stops_short_is_told_from_one_that_is_forged() -> None:
    with pytest.raises(UnfinishedError):
        read(b"test-count: 2\n", Step.TEST, 2)
    with pytest.raises(UnfinishedError):
        read(b"", Step.TEST, 2)


def test_the_error_of_a_whole_phase_is_told_apart_from_those_of_cases() -> None:
    assert error_text(b"check: fail\nerror: no import\nof it\n") == "no import"
    assert error_text(b"test.0.error: wrong\ncheck: fail\n") == error_text(b"\xff") == ""


def test_of_a_phase_that_broke_off_the_whole_cases_are_seen() -> None:
    begun = TESTS.partition(b"test.1.status")[0] + b"test.1.sta"
    assert finished_cases(begun, Step.TEST, 2) == (ReportedCase(passed=True),)
    assert finished_cases(b"test-count: 3\n" + begun, Step.TEST, 2) == ()
    assert finished_cases(b"benchmark.0.spec: size: 3\n", Step.PROFILE, 1) == ()


@given(st.binary(max_size=200))
def test_no_bytes_are_more_than_a_breach(noise: bytes) -> None:
    for step in Step:
        assert finished_cases(noise, step, 2) is not None
        with pytest.raises(BreachError):
            read(noise, step, 2)
