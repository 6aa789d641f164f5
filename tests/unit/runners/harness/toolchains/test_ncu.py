"""Where NVIDIA's profiler is looked for, and what is said where it cannot be used."""

import re
from pathlib import Path

import pytest

from runners.contract.evaluation import KernelNameBase, ProfileOptions
from runners.harness.sandbox import view
from runners.harness.toolchains import ncu

SAYS = "#!/bin/sh\nprintf 'NVIDIA (R) Nsight Compute\\nVersion 2025.3.1.0 (build 3639)\\n'\n"


def install(folder: Path, script: str = SAYS) -> Path:
    folder.mkdir(parents=True)
    found = folder / "ncu"
    found.write_text(script)
    found.chmod(0o755)
    return found


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setattr(ncu, "_PACKAGES", tmp_path / "opt")
    monkeypatch.setattr(ncu, "TOOLKIT", tmp_path / "toolkit")
    monkeypatch.setattr(ncu, "_DRIVER", tmp_path / "params")


def test_each_place_is_looked_at_and_the_newest_one_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = install(tmp_path / "bin")
    assert ncu.here() == ncu.Ncu(on_path, "2025.3.1.0")
    assert ncu.folders() == ()  # nobody's own folder is shown to submissions
    toolkit = install(tmp_path / "toolkit" / "nsight-compute-2024.1.0")
    assert ncu.here().program == toolkit
    home = install(tmp_path / "home" / "nsight-compute-2024.1.0")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert ncu.here().program == home
    install(tmp_path / "opt" / "2025.3.1")
    newest = install(tmp_path / "opt" / "2025.10.0")
    assert ncu.here().program == newest
    assert ncu.folders() == (newest.parent,)
    assert str(newest.parent) in view.interpreter()


def test_one_that_only_its_owner_may_read_keeps_nobody_from_leaving_root(tmp_path: Path) -> None:
    before = view.unreadable_by_others()
    install(tmp_path / "opt" / "2025.3.1").parent.chmod(0o700)
    assert str(tmp_path / "opt" / "2025.3.1") in view.interpreter()
    assert view.unreadable_by_others() == before


def test_without_it_the_places_are_named(tmp_path: Path) -> None:
    with pytest.raises(ncu.UnusableError, match=re.escape(f"no ncu in {tmp_path}/opt, CUDA_HOME")):
        ncu.here()


def test_one_that_finds_no_other_is_none(tmp_path: Path) -> None:
    install(tmp_path / "bin", "#!/bin/sh\nexit 1\n")
    with pytest.raises(ncu.UnusableError, match="--version` does not answer"):
        ncu.here()


def test_where_only_administrators_may_profile_the_owner_is_told_what_to_do(tmp_path: Path) -> None:
    install(tmp_path / "opt" / "2025.3.1")
    (tmp_path / "params").write_text("EnableMSI: 1\nRmProfilingAdminOnly: 1\nDmaRemapPeerMmio: 1\n")
    with pytest.raises(ncu.UnusableError, match="NVreg_RestrictProfilingToAdminUsers=0"):
        ncu.here()
    (tmp_path / "params").write_text("RmProfilingAdminOnly: 0\n")
    assert ncu.here().version == "2025.3.1.0"


@pytest.mark.parametrize("details", ["header", "body"])
def test_a_report_is_read_in_parts(details: ncu.Details) -> None:
    line = ncu.Ncu(Path("/opt/ncu"), "1").reading("r.ncu-rep", details)
    assert line[:3] == ("/opt/ncu", "--import", "r.ncu-rep")
    assert line[-2:] == ("--print-details", details)


def test_the_marked_kernels_alone_are_measured_at_the_clocks_that_are_timed() -> None:
    line = ncu.Ncu(Path("/opt/ncu"), "1").measuring("{made}", ("python", "-m", "it"))
    assert line[:5] == ("/opt/ncu", "--profile-from-start", "off", "--clock-control", "none")
    assert line[-5:] == ("--export", "{made}", "python", "-m", "it")
    assert "MemoryWorkloadAnalysis_Tables" in line


def test_it_looks_at_the_kernels_that_are_asked_for() -> None:
    measuring = ncu.Ncu(Path("/opt/ncu"), "1").measuring
    usual = measuring("a", ("it",))
    assert usual[usual.index("--launch-count") + 1] == str(ncu.KERNELS_MOST)
    assert "--kernel-name" not in usual
    asked = ProfileOptions(
        kernel_name="regex:a b", kernel_name_base=KernelNameBase.MANGLED, launch_count=3
    )
    line = measuring("a", ("it",), options=asked)
    for option, value in (
        ("--kernel-name", "regex:a b"),
        ("--kernel-name-base", "mangled"),
        ("--launch-count", "3"),
    ):
        assert line[line.index(option) + 1] == value
        assert line.index(option) < line.index("--export")


def test_details_are_listed_as_csv() -> None:
    told = ncu.Ncu(Path("/opt/ncu"), "1").listing("a.ncu-rep")
    assert told == ("/opt/ncu", "--import", "a.ncu-rep", "--page", "details", "--csv")


def test_counters_are_printed_in_base_units_as_csv() -> None:
    told = ncu.Ncu(Path("/opt/ncu"), "1").counting("a.ncu-rep")
    assert told[:3] == ("/opt/ncu", "--import", "a.ncu-rep")
    assert told[3:] == ("--page", "raw", "--csv", "--print-units", "base")
    more = ncu.Ncu(Path("/opt/ncu"), "1").measuring("a", (), ncu.MORE_SECTIONS)
    assert [more[i + 1] for i, word in enumerate(more) if word == "--section"] == [
        *ncu.MORE_SECTIONS
    ]
