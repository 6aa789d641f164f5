"""Ray on this machine, a head and nodes, in a process of its own: one word a line in, one out."""

import json
import sys

import psutil
import ray
from ray.cluster_utils import Cluster

_STORE_BYTES = 80 << 20  # the least that Ray takes
_SOON = {
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 300,
    "health_check_failure_threshold": 3,
}
"""A node that died is noticed within a second or two."""


def main() -> None:
    """Begin with a head alone; `add` a node with JSON resources, `lose` the last one."""
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
            lose(nodes.pop())
            say("lost")
    cluster.shutdown()


def lose(node: "ray._private.node.Node") -> None:
    """Kill everything of a node at once, as when its power goes."""
    raylets = [entry.process.pid for entry in node.all_processes["raylet"]]
    everything = [
        process
        for pid in raylets
        for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True))
    ]
    for process in everything:
        process.kill()


def say(word: str) -> None:
    sys.stdout.write(f"podium: {word}\n")
    sys.stdout.flush()


main()
