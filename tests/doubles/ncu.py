"""A fake of NVIDIA's `ncu`: it runs the command and writes a report, but profiles nothing.

It accepts the options that the judge passes to the real one, and prints tables that name them. Its
report has the text that the command wrote to `launched` in the work folder: a line for each kernel
that the real one would have profiled. Like the real one, it creates no report without kernels.
"""

import sys
from pathlib import Path

from runners.harness.toolchains.ncu import Ncu

VERSION = "0.0.1"
_SCRIPT = """#!{python}
import os, subprocess, sys
words = sys.argv[1:]
if "--version" in words:
    print("NVIDIA (R) Nsight Compute Command Line Profiler\\nVersion {version} (a stand-in)")
elif "raw" in words:
    print("==WARNING== of a stand-in")
    print('"ID","Kernel Name","launch__block_size"\\n"","",""')
    for number, line in enumerate(open(words[words.index("--import") + 1])):
        print(f'"{{number}}","{{line.strip()}}","64"')
elif "--csv" in words:
    print("==PROF== of a stand-in")
    print('"ID","Kernel Name","Metric Name","Metric Value"')
    for number, line in enumerate(open(words[words.index("--import") + 1])):
        print(f'"{{number}}","{{line.strip()}}","Duration","1"')
elif "--import" in words:
    print("[3] python3@127.0.0.1")
    for line in open(words[words.index("--import") + 1]):
        print(f"  {{line.strip()}} (1, 1, 1)x(1, 1, 1), Context 1, Stream 7, Device 0, CC 0.0   ")
        if words[-1] == "header":
            print("    Section: GPU Speed Of Light Throughput (of a stand-in)   ")
        else:
            print("    Section: Memory Workload Analysis Tables\\n    a counter of a stand-in  ")
else:
    begin = words.index("--export") + 2
    status = subprocess.run(words[begin:]).returncode
    print("==PROF== a stand-in profiled nothing")
    launched = os.path.join(os.environ["HOME"], "launched")
    if os.path.exists(launched):
        os.rename(launched, words[begin - 1])
    sys.exit(status)
"""


def installed(folder: Path) -> Ncu:
    """Install the fake in its own folder."""
    folder.mkdir(parents=True)
    program = folder / "ncu"
    program.write_text(_SCRIPT.format(python=sys.executable, version=VERSION))
    program.chmod(0o755)
    return Ncu(program, VERSION)
