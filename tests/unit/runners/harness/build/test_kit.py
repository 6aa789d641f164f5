"""What languages are offered; compiling and loading are tested with the languages."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from runners.harness.build import kit
from runners.harness.build.kit import KIT
from runners.harness.protocol.builds import FOLDER
from runners.harness.toolchains import nvrtc
from runners.languages import Recipe


def test_a_submission_is_built_by_its_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "submission", raising=False)
    (tmp_path / "submission.py").write_text("def custom_kernel(data): return data + 1\n")
    assert (
        kit.build(tmp_path, Recipe(language="py", submission_file="submission.py")).kernel(1) == 2
    )
    with pytest.raises(LookupError, match="no language 'rust'; there are py, cu"):
        kit.build(tmp_path, Recipe(language="rust", submission_file="submission.rs"))


def test_a_module_without_a_model_has_no_kernel() -> None:
    module = ModuleType("submission")
    assert KIT.model_kernel(module) is None
    vars(module)["forward"] = abs
    assert KIT.model_kernel(module) is not None


def test_what_is_cached_lies_where_builds_are_packed(tmp_path: Path) -> None:
    assert KIT.cache_folder(tmp_path, "device") == tmp_path / FOLDER / "device"


def test_a_machine_without_nvrtc_has_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "find", lambda: None)
    assert KIT.nvrtc() is None
