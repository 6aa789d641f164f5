"""A language that only tests have: a shell script that prints one number for each of its inputs."""

import subprocess
from pathlib import Path
from typing import Any

from runners.languages import BuildKit, Built, InvalidSubmissionError, LanguageSpec, Recipe

SPEC = LanguageSpec(
    name="sh",
    title="Shell",
    suffixes=(".sh",),
    comment="#",
    lexer="bash",
    config_keys=frozenset(),
)
SHELL = Path("/bin/sh")


def toolchain(kit: BuildKit) -> str | None:
    """Return the shell."""
    return str(SHELL) if SHELL.exists() else None


def build(folder: Path, recipe: Recipe, kit: BuildKit) -> Built:
    """Return a kernel that calls the script with the numbers of its input."""
    script = folder / recipe.submission_file
    if "echo" not in script.read_text(encoding="utf-8"):
        raise InvalidSubmissionError("the script prints nothing")

    def kernel(data: Any) -> Any:  # noqa: ANN401 - tensors; torch is imported next to a submission only
        import torch  # noqa: PLC0415

        numbers = [str(int(each)) for each in data]
        ended = subprocess.run([SHELL, script, *numbers], capture_output=True, check=True)
        return torch.tensor([int(line) for line in ended.stdout.split()])

    return Built(kernel)
