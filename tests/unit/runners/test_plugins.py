"""Tests of finding plugins."""

import pytest

from runners import backends, contract
from runners.plugins import load, load_all, names


def test_every_module_of_a_folder_is_a_plugin() -> None:
    assert names(contract) == (
        "comparison", "evaluation", "files", "formula", "gpus", "io_contract", "launch",
        "parameters", "runner", "task", "verdict", "wire",
    )  # fmt: skip
    assert "fake" in names(backends)


def test_a_plugin_is_loaded_by_its_name() -> None:
    assert load(backends, "fake").__name__ == "runners.backends.fake"


@pytest.mark.parametrize("name", ["fakes", "_private", "../evil", "os"])
def test_an_unknown_plugin_is_refused_with_the_names_there_are(name: str) -> None:
    with pytest.raises(LookupError, match=r"runners\.backends; there are .*fake"):
        load(backends, name)


def test_all_plugins_of_a_package_are_loaded_by_its_name() -> None:
    found = [each.__name__ for each in load_all("runners.languages")]
    assert found == ["runners.languages.cuda", "runners.languages.python"]
