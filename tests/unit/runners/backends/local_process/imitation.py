"""Imitates a serving harness, well or badly as the request's source says."""

import json
import os
import sys
from pathlib import Path

VERSION = "imitation"
READY = {
    "contract_version": 1,
    "harness_version": VERSION,
    "gpus": {"CPU": 1},
}
ENVIRONMENT = {
    "gpu": "CPU",
    "python": "3",
    "cpu": "x",
    "cores": 1,
    "platform": "x",
    "harness_version": VERSION,
    "transport": "none",
}


def say(line: object) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def evaluation(request_id: str) -> dict[str, object]:
    return {
        "request_id": request_id,
        "verdict": "passed",
        "mode": "test",
        "task": "identity",
        "gpu": "CPU",
        "environment": ENVIRONMENT,
        "isolation": {"outer": "none"},
        "wall_s": 0.1,
        "message": str(os.getpid()),
    }


def answer(request: dict[str, str]) -> None:
    say({"progress": {"stage": "test", "done": 1, "total": 1}})
    match request["source"]:
        case "die":
            sys.stderr.write("I fell\n")
            sys.stderr.flush()
            os._exit(9)
        case "hang":
            sys.stdin.read()
        case "shout":
            sys.stdout.write("x" * (17 << 20) + "\n")
            sys.stdout.flush()
        case "leave":
            say({"evaluation": evaluation(request["request_id"])})
            os._exit(0)
        case source:
            say(reply(source, request["request_id"]))


def reply(source: str, request_id: str) -> dict[str, object]:
    match source:
        case "babble":
            return {"evaluation": {"verdict": "best of all"}}
        case "mistake":
            return {"evaluation": evaluation("another")}
        case "apologise":
            return {"error": "the disk is full"}
        case "environment":
            return {"error": json.dumps(dict(os.environ))}
        case _:
            return {"evaluation": evaluation(request_id)}


def health() -> dict[str, object]:
    """As the file that `--health` names says, which a test may change meanwhile."""
    if "--health" not in sys.argv:
        return {"health": {}}
    found: dict[str, object] = json.loads(
        Path(sys.argv[sys.argv.index("--health") + 1]).read_text()
    )
    return found


def main() -> None:
    if "--refuse" in sys.argv:
        sys.stderr.write("refusing to run without seccomp\n")
        raise SystemExit(3)
    if "--rude" in sys.argv:
        say({"error": "not yet"})
    say({"ready": READY})
    say(health())
    for line in sys.stdin:
        answer(json.loads(line))
        say(health())


main()
