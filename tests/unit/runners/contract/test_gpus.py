"""The table of GPU types."""

import pytest

from runners.contract.gpus import GPU_TYPES, find_gpu_type, gpu_type, gpu_types, slots_by_type


@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("A100", "A100"),
        ("A100-40GB", "A100"),
        ("a100-80gb", "A100-80GB"),
        ("A10G", "A10"),
        ("H100!", "H100"),
        ("h100", "H100"),
        ("L4x4", "L4"),
        ("A100:8", "A100"),
        ("H100!:8", "H100"),
        ("MI300", "MI300X"),
        ("MI300x8", "MI300X"),
        ("NVIDIA", "NVIDIA"),
        ("B200_Nebius", "B200_Nebius"),
        ("CPU", "CPU"),
        ("RTX-4090", "RTX-4090"),
        ("H9000x8", "H9000x8"),
        ("B200+", "B200+"),
        ("L4x0", "L4x0"),
        ("", ""),
    ],
)
def test_a_gpu_type_has_one_name(called: str, name: str) -> None:
    assert gpu_type(called) == name
    assert gpu_type(name) == name


def test_names_of_one_card_are_one() -> None:
    assert gpu_types(("H100", "A100-40GB", "A100", "H100!")) == ("H100", "A100")


def test_what_somebody_else_spells_is_found() -> None:
    assert find_gpu_type("mi300", ("H100", "MI300x8")) == "MI300x8"
    assert find_gpu_type("cpu", ("H100", "CPU")) == "CPU"
    assert find_gpu_type("A100-80GB", ("A100",)) is None


def test_slots_of_one_card_are_counted_together() -> None:
    assert slots_by_type({"A100": 1, "L4": 1, "A100-40GB": 2}) == {"A100": 3, "L4": 1}


def test_no_name_means_two_cards() -> None:
    names = [each for card in GPU_TYPES.values() for each in (card.name, *card.aliases)]
    assert len({each.casefold() for each in names}) == len(names)


@pytest.mark.parametrize("name", sorted(GPU_TYPES))
def test_a_card_is_faster_in_narrower_types(name: str) -> None:
    peak = GPU_TYPES[name].peak
    assert peak.fastest_per_s > peak.fp32_per_s > peak.bytes_per_s


def test_the_fastest_card_stands_for_one_that_is_not_known() -> None:
    cards = [each.peak for each in GPU_TYPES.values() if each.name.startswith(("NVIDIA", "B", "H"))]
    assert GPU_TYPES["NVIDIA"].peak.bytes_per_s == max(each.bytes_per_s for each in cards)
