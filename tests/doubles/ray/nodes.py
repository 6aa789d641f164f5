"""A program that runs Ray's head and nodes; it reads commands and prints a word for each."""

import json
import sys
from contextlib import suppress

import psutil
import ray
from ray.cluster_utils import Cluster

_STORE_BYTES = 80 << 20  # the least that Ray takes
_FAST_CHECKS = {
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 20,
}
"""Ray notices a dead node within 11 s, but does not declare a busy one dead."""


def main() -> None:
    """Start a head; `add` adds a node with JSON resources, `lose` kills the one with a harness."""
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0,
            "object_store_memory": _STORE_BYTES,
            "include_dashboard": False,
            "include_log_monitor": False,
            "no_monitor": True,
            "_system_config": _FAST_CHECKS,
        },
    )
    say(cluster.address)
    nodes = []
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if word == "add":
            options = json.loads(rest)
            nodes.append(cluster.add_node(object_store_memory=_STORE_BYTES, **options))
            say("added")
        elif word == "lose":
            nodes.sort(key=judges)
            lose(nodes.pop())
            say("lost")
    cluster.shutdown()


def lose(node: "ray._private.node.Node") -> None:
    """Kill all processes of a node at once, as in a power failure."""
    for process in processes_of(node):
        with suppress(psutil.NoSuchProcess):  # it ended with its parent
            process.kill()


def judges(node: "ray._private.node.Node") -> bool:
    """Whether a harness runs on it."""
    for process in processes_of(node):
        with suppress(psutil.Error):  # it has ended meanwhile
            if "runners.harness" in process.cmdline():
                return True
    return False


def processes_of(node: "ray._private.node.Node") -> list[psutil.Process]:
    found = []
    for entry in node.all_processes["raylet"]:
        with suppress(psutil.NoSuchProcess):  # it ended by itself
            raylet = psutil.Process(entry.process.pid)
            found += [raylet, *raylet.children(recursive=True)]
    return found


def say(word: str) -> None:
    sys.stdout.write(f"podium: {word}\n")
    sys.stdout.flush()


main()
