"""What a language is told to build, and how languages are found."""

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from runners import languages
from runners.contract.launch import Signature
from runners.contract.task import BuildConfig, TaskFormat
from runners.languages import BuildFailedError, Recipe
from tests.doubles.judging import ROOT, make_sort_task


def test_a_recipe_says_what_a_language_needs_of_a_task() -> None:
    config = BuildConfig(defines={"N": 1})
    signature = Signature(kernel="k", parameters=("out0",), sizes=(8,))
    task = make_sort_task(lang="cu", submission_file="k.cu", config=config)

    found = Recipe.of(task, signature)

    assert (found.language, found.submission_file, found.format) == (
        "cu", "k.cu", TaskFormat.KERNEL,
    )  # fmt: skip
    assert (found.config, found.signature) == (config, signature)
    assert Recipe.of(make_sort_task()).signature is None


def test_a_failed_build_has_a_headline_and_a_log() -> None:
    error = BuildFailedError("line 3 is wrong", "line 3 is wrong\nline 4 as well")
    assert (str(error), error.log.count("\n")) == ("line 3 is wrong", 1)


def test_languages_are_found_by_name_and_suffix() -> None:
    assert [each.name for each in languages.specs()] == ["py", "cu"]
    assert languages.spec_of("cu").title == "CUDA C++"
    assert languages.spec_by_suffix(".cuh") == languages.spec_of("cu")
    assert languages.spec_by_suffix(".txt") is None
    with pytest.raises(LookupError, match="no language 'rust'; there are py, cu"):
        languages.spec_of("rust")


def test_a_name_and_a_suffix_belong_to_one_language() -> None:
    found = languages.specs()
    suffixes = [suffix for each in found for suffix in each.suffixes]
    assert len({each.name for each in found}) == len(found)
    assert len(set(suffixes)) == len(suffixes)


@pytest.mark.parametrize("each", languages.languages(), ids=lambda each: str(each.SPEC.name))
def test_a_language_imports_the_contract_and_its_own_package_alone(each: ModuleType) -> None:
    tree = ast.parse(Path(str(each.__file__)).read_text(encoding="utf-8"))
    imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported += [
        name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    ]
    foreign = [name for name in imported if name.partition(".")[0] not in sys.stdlib_module_names]
    assert [
        name for name in foreign
        if not name.startswith(("pydantic", "runners.contract.", "runners.languages"))
    ] == []  # fmt: skip


def test_importing_the_languages_loads_neither_torch_nor_the_harness() -> None:
    script = (
        "import sys; from runners.languages import languages; languages();"
        "print(*(n for n in sys.modules if n.startswith(('torch', 'runners.harness', 'bot'))))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == ""
