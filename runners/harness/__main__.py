"""The harness program: enters the sandbox, then evaluates requests from standard input."""

import argparse
import gc
import os
import sys

from runners.harness.sandbox import outer, view

SPINS = 2000
"""How often an idle thread of libgomp looks for work before it sleeps: for 54 us on an AMD EPYC,
which is longer than between two operations of torch. It may still look when it is frozen."""


def main() -> int:
    """Parse the arguments, enter the sandbox before any large import, and run the harness."""
    parser = argparse.ArgumentParser(prog="python -m runners.harness")
    parser.add_argument("--serve", action="store_true", help="answer one request per line")
    parser.add_argument("--gpu-index", type=int, help="the one GPU that this process may use")
    parser.add_argument("--strict", action="store_true", help="refuse to run with layers missing")
    parser.add_argument(
        "--hide", action="append", default=[], metavar="DIR", help="a folder to hide"
    )
    arguments = parser.parse_args(sys.argv[1:])
    view.hide(arguments.hide)
    isolation = outer.confine(
        sys.argv[1:],
        strict=arguments.strict,
        gpu=arguments.gpu_index is not None,
        until_orphaned=arguments.serve,
    )
    # Idle threads must not take the kernel's cores. Without any spinning, a kernel of many small
    # operations would wait for a thread to wake in each, which takes most of its time.
    os.putenv("OMP_WAIT_POLICY", "PASSIVE")
    os.putenv("GOMP_SPINCOUNT", str(SPINS))
    gc.disable()  # collections during the imports take a quarter of the start
    from runners.harness import server  # noqa: PLC0415 - torch is loaded only inside the sandbox

    gc.freeze()
    gc.enable()
    if arguments.serve:
        return server.serve(isolation, gpu=arguments.gpu_index is not None)
    return server.answer_once(isolation)


if __name__ == "__main__":
    raise SystemExit(main())
