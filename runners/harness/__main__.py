"""The harness program: enters the sandbox, then evaluates requests from standard input."""

import argparse
import gc
import os
import sys

from runners.harness.sandbox import outer, view


def main() -> int:
    """Parse the arguments, enter the sandbox before any large import, and run the harness."""
    parser = argparse.ArgumentParser(prog="python -m runners.harness")
    parser.add_argument("--serve", action="store_true", help="stay warm and answer request lines")
    parser.add_argument("--gpu-index", type=int, help="the one GPU that this process may use")
    parser.add_argument("--strict", action="store_true", help="refuse to run with layers missing")
    parser.add_argument(
        "--hide", action="append", default=[], metavar="DIR", help="a folder that is not shown"
    )
    arguments = parser.parse_args(sys.argv[1:])
    view.hide(arguments.hide)
    isolation = outer.confine(
        sys.argv[1:],
        strict=arguments.strict,
        gpu=arguments.gpu_index is not None,
        until_orphaned=arguments.serve,
    )
    os.putenv("OMP_WAIT_POLICY", "PASSIVE")  # idle threads must not take the kernel's cores
    gc.disable()  # collections during the imports take a quarter of the start
    from runners.harness import server  # noqa: PLC0415 - torch is loaded only inside the sandbox

    gc.freeze()
    gc.enable()
    if arguments.serve:
        return server.serve(isolation, gpu=arguments.gpu_index is not None)
    return server.answer_once(isolation)


if __name__ == "__main__":
    raise SystemExit(main())
