"""Makes the runners that the settings name, with what each kind of place has to be told."""

from collections.abc import Sequence

from bot.domain.errors import SetupError, UserError
from bot.services.dispatch import DispatchConfig
from bot.settings import RunnerChoice, Settings
from runners import backends, plugins
from runners.contract.gpus import slots_by_type
from runners.contract.runner import Runner
from runners.harness.version import HARNESS_VERSION

_LOCAL, _MODAL, _RAY = "local_process", "modal_app", "ray_cluster"
_SHORT_NAMES = {"local": _LOCAL, "modal": _MODAL, "ray": _RAY}
_QUEUE_S = {_MODAL: 1800.0, _RAY: 1800.0}
"""What a call may wait where its machine is yet to be found, beyond the task's time limits."""


def create_runner(choice: RunnerChoice, settings: Settings) -> Runner:
    """The runner of a choice; UserError for an unknown one, SetupError where a package lacks."""
    name = _SHORT_NAMES.get(choice.name, choice.name)
    try:
        module = plugins.load(backends, name)
    except LookupError as error:
        raise UserError("unknown-runner", f"PODIUM_RUNNERS: {error}") from error
    options: dict[str, dict[str, object]] = {
        _LOCAL: {"strict": settings.strict_sandbox, "hidden": [settings.data_dir]},
        _MODAL: {"version": HARNESS_VERSION},
        _RAY: {"version": HARNESS_VERSION, "strict": settings.strict_sandbox},
    }
    try:
        runner: Runner = module.create(
            slots=slots_by_type(choice.slots) or None, **options.get(name, {})
        )
    except ModuleNotFoundError as error:
        raise _lacking(name, error) from error
    return runner


def grace_s(runners: Sequence[Runner]) -> float:
    """How long an evaluation may take beyond its task's time limits, in seconds."""
    usual = DispatchConfig().grace_s
    return max([usual, *(_QUEUE_S.get(each.name, usual) for each in runners)])


async def deploy_to_modal() -> str:
    """Put the app of the runner `modal` where it runs; gives its page there.

    RunnerError when Modal refuses, SetupError without its client.
    """
    module = plugins.load(backends, _MODAL)
    try:
        page: str = await module.deploy()
    except ModuleNotFoundError as error:
        raise _lacking(_MODAL, error) from error
    return page


def _lacking(name: str, error: ModuleNotFoundError) -> SetupError:
    extra = name.partition("_")[0]
    return SetupError(
        f"the runner {extra} needs {error.name}; run `pip install 'kernel-podium[{extra}]'`"
    )


def harness_version() -> str:
    """Of the harness that judges here: times of another one cannot be compared with its own."""
    return HARNESS_VERSION


async def ask(runners: Sequence[Runner]) -> None:
    """RunnerError for one that cannot serve: a dispatcher would wait for it in silence."""
    for runner in runners:
        await runner.capabilities()
