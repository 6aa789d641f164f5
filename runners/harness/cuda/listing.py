"""What a compiler's output tells of a kernel: registers and memory from ptxas, parameters from PTX.

Sources: the log of `ptxas --verbose`, and the PTX ISA's chapter "Kernel Function Parameters".
"""

import re

from runners.contract.evaluation import Compiled

LOG_MOST = 16_000
"""Characters of a compiler's log that are kept; the limit on what a candidate prints is wider."""
_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_INFO = re.compile(r"^ptxas (?:info  |      ).*$\n?", re.MULTILINE)
_TYPE = re.compile(r"\.[usbf](8|16|32|64)\b")
_COUNT = re.compile(r"\[(\d+)\]")


def resources(log: str, entry: str) -> Compiled | None:
    """What the kernel of this lowered name uses; None where the log knows of no such kernel."""
    parts = _ENTRY.split(log)
    texts = dict(zip(parts[1::2], parts[2::2], strict=True))
    text = texts.get(entry)
    if text is None:
        return None
    return Compiled(
        registers=_sum(r"Used (\d+) registers", text),
        spill_stores=_sum(r"(\d+) bytes spill stores", text),
        spill_loads=_sum(r"(\d+) bytes spill loads", text),
        stack=_sum(r"(\d+) bytes stack frame", text),
        shared=_sum(r"(\d+) bytes smem", text),
        constant=_sum(r"(\d+) bytes cmem", text) if "cmem" in text else None,
    )


def _sum(pattern: str, text: str) -> int:
    return sum(map(int, re.findall(pattern, text)))


def remarks(log: str) -> str:
    """The log without what ptxas counts: warnings, if there are any."""
    return shortened(_INFO.sub("", log).strip())


def shortened(text: str) -> str:
    """The beginning of what a compiler says: a fault in a template may fill any log."""
    return text if len(text) <= LOG_MOST else f"{text[:LOG_MOST]}\n... and more"


def parameter_sizes(ptx: str, entry: str) -> tuple[int, ...]:
    """The bytes of each parameter of a kernel, in order."""
    found = re.search(rf"\.entry\s+{re.escape(entry)}\s*\(([^)]*)\)", ptx)
    parameters = found[1].split(",") if found else []
    return tuple(_size(each) for each in parameters if each.strip())


def _size(parameter: str) -> int:
    kind, count = _TYPE.search(parameter), _COUNT.search(parameter)
    return int(kind[1]) // 8 * int(count[1] if count else 1) if kind else 0
