"""What a task of device code must satisfy to be published: its launch, how it is compiled."""

import re
from collections.abc import Sequence

from bot.domain.tasks.yaml_document import Document
from runners.contract.launch import LaunchError, LaunchPlan
from runners.contract.parameters import BufferArgument
from runners.contract.task import BuildConfig, Launch, Workload

MAX_CONFIG = 16 << 10
"""Bytes of `config` as it travels to each candidate."""
_SWITCHES = (
    "use_fast_math", "extra-device-vectorization", "restrict", "device-int128", "disable-warnings",
)  # fmt: skip
_VALUED = (
    "std", "maxrregcount", "fmad", "ftz", "prec-sqrt", "prec-div", "ptxas-options", "diag-suppress",
)  # fmt: skip
"""Options of NVRTC that a task may give; source: NVRTC's documentation, "Supported Options"."""
_FLAG = re.compile(rf"--?(?:{'|'.join(_SWITCHES)}|(?:{'|'.join(_VALUED)})=[\w+.,=-]+)")
_MACRO = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def check_launch(launch: Launch, cases: Sequence[Workload], document: Document) -> None:
    """Refuse a launch that has no numbers for some case, or that writes to no output."""
    try:
        plan = LaunchPlan.of(launch)
        for case in cases:
            plan.numbers(case)
        plan.signature(cases)
    except LaunchError as error:
        raise document.refusal(("launch", error.key), str(error)) from error
    buffers = (each for each in plan.parameters if isinstance(each, BufferArgument))
    if not any(each.kind == "out" for each in buffers):
        words = "launch.params: name where the kernel writes its output, as in [in0, out0, size]"
        raise document.refusal(("launch", "params"), words)


def check_config(config: BuildConfig, document: Document) -> None:
    """Refuse what the compiler of device code, NVRTC, does not know or would never look at."""
    if len(config.model_dump_json()) > MAX_CONFIG:
        words = f"'config' takes more than {MAX_CONFIG:,} bytes; put long text into a header"
        raise document.refusal(("config",), words)
    if config.sources:
        words = "a task with a 'launch' compiles the submission alone; leave 'sources' out"
        raise document.refusal(("config", "sources"), words)
    for i, folder in enumerate(config.include_dirs):
        if not folder.startswith("/"):
            words = f"{folder!r} is no folder of the runner's, as in /cutlass/include"
            beside = "headers among the files are found beside the submission"
            raise document.refusal(("config", "include_dirs", i), f"{words}; {beside}")
    for name in config.defines:
        if not _MACRO.fullmatch(name):
            raise document.refusal(("config", "defines", name), f"{name!r} is no macro's name")
    _check_flags(config.compile_flags, document)


def _check_flags(flags: Sequence[str], document: Document) -> None:
    for i, flag in enumerate(flags):
        if not _FLAG.fullmatch(flag):
            known = ", ".join(
                [f"--{each}" for each in _SWITCHES] + [f"--{each}=" for each in _VALUED]
            )
            words = f"{flag!r} is none of the options that NVRTC takes here: {known}"
            raise document.refusal(("config", "compile_flags", i), words)
