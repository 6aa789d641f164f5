"""A profile's list of metrics becomes facts, percentages and findings."""

import pytest

from bot.domain.records import StoredFile
from bot.reports import profiles as module
from bot.reports.profiles import Profile, Share, profile, profiles
from runners.contract.files import EvaluationFile
from tests.doubles.shapes import METRICS, RULES, listed


def read(*kernels: str, metrics: tuple[tuple[str, ...], ...] = METRICS) -> Profile:
    return profile("case 1", listed(*kernels, metrics=metrics))


def test_a_kernel_has_its_shares_its_launch_and_what_limits_it() -> None:
    (kernel,) = read("add(float *, int)").kernels
    assert kernel.name == "add(float *, int)"
    assert kernel.limit == "memory limits it: 73 % used, and 8 % of the arithmetic"
    assert kernel.shares == (
        Share("Arithmetic", 8.22),
        Share("Memory", 72.88),
        Share("Memory bandwidth", 72.88),
        Share("L2 hits", 50.7),
        Share("Occupancy", 14.13, 18.75),
    )
    assert dict(kernel.facts) == {
        "Launch": "grid (2, 64, 1), block (128, 1, 1)",
        "Duration": "31.4 µs",
        "Registers": "168 per thread",
        "Shared memory": "213.19 Kbyte dynamic, per block",
        "Waves": "7.76 per multiprocessor",
        "Occupancy": "14 % of at most 19 %, limited by registers and shared memory",
    }


@pytest.mark.parametrize(
    ("compute", "begins"), [("90", "arithmetic limits it: 90 %"), ("8.22", "memory limits it")]
)
def test_the_busier_unit_is_named_as_the_limit(compute: str, begins: str) -> None:
    changed = tuple(
        (*each[:3], compute) if each[1] == "Compute (SM) Throughput" else each for each in METRICS
    )
    assert read("a", metrics=changed).kernels[0].limit.startswith(begins)
    idle = tuple((*each[:3], "20") if each[2] == "%" else each for each in METRICS)
    assert read("a", metrics=idle).kernels[0].limit.startswith("neither memory (20 %)")


def test_the_three_findings_with_the_largest_estimates_are_shown() -> None:
    found = read("a").findings
    assert [each.words for each in found] == [RULES[3][2], RULES[1][2], RULES[0][2]]
    assert [each.estimate for each in found] == [
        "estimated speedup 78 % of the kernel",
        "estimated speedup 81 % of this part alone",
        "estimated speedup 3 % of the kernel",
    ]


def test_a_remark_on_a_short_kernel_matters_less() -> None:
    long, short = listed("long").splitlines(), listed("short").splitlines()
    slow = [line.replace('"31.39"', '"9,000"') for line in long]
    both = "\n".join([*slow, *(line.replace('"0"', '"1"', 1) for line in short[1:])])
    assert {each.kernel for each in profile("case 1", both).findings} == {"long"}


def test_the_parts_of_a_profile_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KERNELS_MOST", 2)
    found = read(*["\u202e<b>" + "x" * 999] * 3)
    assert (len(found.kernels), found.more) == (2, 1)
    assert found.kernels[0].name.startswith("<b>x")
    assert len(found.kernels[0].name) <= 120
    assert module._shortened("A sentence. " * 99).endswith("sentence.")
    assert len(module._shortened("x" * 999)) < 430


@pytest.mark.parametrize("text", ["", "no list", '"ID"\n"0"\n', f'"ID","a"\n"{"x" * 200_000}"\n'])
def test_details_of_another_format_are_no_profile(text: str) -> None:
    files = [StoredFile("H100", EvaluationFile.of("case-1.csv", text.encode()))]
    assert profiles(files, "H100") == ()


def test_each_gpu_type_has_its_own() -> None:
    file = EvaluationFile.of("case-2.csv", listed("a").encode())
    other = EvaluationFile.of("case-2.ncu-rep", b"report")
    stored = [StoredFile("H100", file), StoredFile("H100", other)]
    assert [each.case for each in profiles(stored, "H100")] == ["case 2"]
    assert profiles(stored, "A100") == ()
