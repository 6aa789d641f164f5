import builtins
import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest
from typing_extensions import override

from bot.app.runners import (
    create_runner,
    deploy_to_modal,
    grace_s,
    harness_version,
    require_available,
)
from bot.domain.errors import SetupError, UserError
from bot.settings import RunnerChoice, Settings
from runners.backends import fake
from runners.contract.runner import Capabilities, RunnerError
from runners.harness import HARNESS_VERSION
from tests.doubles.factories import make_capabilities

Import = Callable[..., object]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path)


@pytest.fixture
def without_modal(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Import = builtins.__import__

    def absent(name: str, *arguments: object, **options: object) -> object:
        if name.startswith("runners.backends.modal_app."):
            raise ModuleNotFoundError("No module named 'modal'", name="modal")
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", absent)


@pytest.mark.parametrize(
    ("short", "name"),
    [("local", "local_process"), ("fake", "fake"), ("modal", "modal_app"), ("modal_app",) * 2],
)
def test_a_runner_has_its_short_name_too(short: str, name: str, settings: Settings) -> None:
    assert create_runner(RunnerChoice(short, {}), settings).name == name


def test_an_unknown_runner_is_refused_with_those_there_are(settings: Settings) -> None:
    with pytest.raises(UserError, match="local_process, modal_app"):
        create_runner(RunnerChoice("nowhere", {}), settings)


def test_ray_has_the_slots_that_it_is_told(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: "Ray is here")
    assert create_runner(RunnerChoice("ray", {"H100": 4}), settings).name == "ray_cluster"
    with pytest.raises(RunnerError, match="ray:H100=4"):
        create_runner(RunnerChoice("ray", {}), settings)


def test_without_ray_it_is_told_what_to_install(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SetupError, match=r"pip install 'kernel-podium\[ray\]'"):
        create_runner(RunnerChoice("ray", {"H100": 4}), settings)


def test_without_torch_the_local_runner_tells_what_to_install(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SetupError, match=r"local needs torch; run `pip .*kernel-podium\[local\]'`"):
        create_runner(RunnerChoice("local", {}), settings)


def test_a_gpu_type_that_modal_lacks_is_refused(settings: Settings) -> None:
    with pytest.raises(RunnerError, match="H9000"):
        create_runner(RunnerChoice("modal", {"H9000": 1}), settings)


@pytest.mark.usefixtures("without_modal")
async def test_a_missing_client_is_told_with_what_to_install(settings: Settings) -> None:
    with pytest.raises(SetupError, match=r"pip install 'kernel-podium\[modal\]'"):
        create_runner(RunnerChoice("modal", {}), settings)
    with pytest.raises(SetupError, match=r"pip install 'kernel-podium\[modal\]'"):
        await deploy_to_modal()


def test_whoever_waits_for_a_free_machine_elsewhere_waits_longer(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: "Ray is here")
    modal = create_runner(RunnerChoice("modal", {}), settings)
    ray = create_runner(RunnerChoice("ray", {"H100": 1}), settings)
    assert grace_s([fake.create()]) == 120
    assert grace_s([fake.create(), ray]) == 1800
    assert grace_s([fake.create(), modal]) == 1800
    local = create_runner(RunnerChoice("local", {"CPU": 1}), settings)  # a comparison may run first
    assert grace_s([local, ray]) == 3600


async def test_a_runner_that_cannot_serve_is_found_out_by_asking() -> None:
    class Broken(fake.FakeRunner):
        @override
        async def capabilities(self) -> Capabilities:
            raise RunnerError("the sandbox lacks landlock")

    await require_available([fake.create()])
    with pytest.raises(RunnerError, match="landlock"):
        await require_available([fake.create(), Broken("broken", make_capabilities())])


def test_the_harness_that_judges_here_has_a_version() -> None:
    assert harness_version() == HARNESS_VERSION


async def test_slots_are_of_cards_whatever_they_are_called(settings: Settings) -> None:
    slots = {"A100-40GB": 2, "A100": 1, "H100!": 1}
    for name in ("fake", "modal"):
        runner = create_runner(RunnerChoice(name, slots), settings)
        if name == "fake":
            assert (await runner.capabilities()).gpus == {"A100": 3, "H100": 1}
