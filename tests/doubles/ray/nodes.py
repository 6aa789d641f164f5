"""Ray on this machine, a head and nodes, in a process of its own: one word a line in, one out."""

import json
import sys
from contextlib import suppress

import psutil
import ray
from ray.cluster_utils import Cluster

_STORE_BYTES = 80 << 20  # the least that Ray takes
_SOON = {
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 20,
}
"""A node that died is noticed within eleven seconds; one on a busy machine is not declared dead."""


def main() -> None:
    """Begin with a head alone; `add` a node with JSON resources, `lose` the one that judges."""
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0,
            "object_store_memory": _STORE_BYTES,
            "include_dashboard": False,
            "_system_config": _SOON,
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
    """Kill everything of a node at once, as when its power goes."""
    for process in everything(node):
        with suppress(psutil.NoSuchProcess):  # it ended with its parent
            process.kill()


def judges(node: "ray._private.node.Node") -> bool:
    """Whether a harness runs on it."""
    for process in everything(node):
        with suppress(psutil.Error):  # it has ended meanwhile
            if "runners.harness" in process.cmdline():
                return True
    return False


def everything(node: "ray._private.node.Node") -> list[psutil.Process]:
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
