from runners.backends.ray_cluster.protocol import CPU_RESOURCE, Resources, demand
from runners.contract.evaluation import CPU

BIG = {"H100": 8.0, "GPU": 8.0, "CPU": 64.0, "memory": 1e9, "node:10.0.0.1": 1.0}
SMALL = {"H100": 2.0, "L4": 1.0, "GPU": 3.0, "accelerator_type:L4": 1.0}
NO_GPUS = {"B200": 8.0, "CPU": 64.0}
JUDGES_ON_CPU = {CPU_RESOURCE: 1.0, "CPU": 4.0}


def test_a_slot_asks_for_its_type_and_for_gpus_or_for_the_whole_cpu() -> None:
    assert demand("H100", 4) == {"H100": 4, "GPU": 4}
    assert demand(CPU, 1) == {CPU_RESOURCE: 1}


def test_an_evaluation_gets_the_gpus_of_one_node() -> None:
    there = Resources(nodes=(BIG, SMALL))
    assert (there.most("H100"), there.most("L4"), there.most("H9000")) == (8, 1, 0)


def test_a_type_without_gpus_behind_it_can_hold_nothing() -> None:
    assert Resources(nodes=(NO_GPUS,)).most("B200") == 0


def test_cores_of_ray_are_no_place_on_the_cpu() -> None:
    assert Resources(nodes=(BIG,)).most(CPU) == 0
    assert Resources(nodes=(BIG, JUDGES_ON_CPU)).most(CPU) == 1


def test_the_types_announced_are_named_as_boards_name_them() -> None:
    assert Resources(nodes=(BIG, SMALL, JUDGES_ON_CPU)).kinds() == (CPU, "H100", "L4")


def test_a_type_is_found_under_each_of_its_names() -> None:
    old = {"A100-40G": 4.0, "GPU": 4.0}
    assert Resources(nodes=(old,)).most("A100") == 4
    assert Resources(nodes=(old,)).resource_name("A100") == "A100-40G"
    assert Resources(nodes=(old, {"A100": 1.0, "GPU": 1.0})).resource_name("A100") == "A100"
    assert Resources(nodes=(old,)).resource_name("H100") == "H100"
