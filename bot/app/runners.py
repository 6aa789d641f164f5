"""Creates the runners that the settings name, with the configuration of each backend."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from bot.domain.errors import SetupError, UserError
from bot.services.dispatch.config import DispatchConfig
from bot.settings import RunnerChoice, Settings
from runners import backends, plugins
from runners.contract.gpus import slots_by_type
from runners.contract.runner import Runner
from runners.harness import HARNESS_VERSION

_LOCAL, _MODAL, _RAY = "local_process", "modal_app", "ray_cluster"
_SHORT_NAMES = {"local": _LOCAL, "modal": _MODAL, "ray": _RAY}
_QUEUE_S = {_LOCAL: 3600.0, _MODAL: 1800.0, _RAY: 1800.0}
"""How long a call may wait for its machine, in seconds, beyond the task's time limits.

On this machine, calls wait while two submissions are compared on its CPU.
"""


@asynccontextmanager
async def open_runners(settings: Settings) -> AsyncIterator[tuple[Runner, ...]]:
    """Yield the runners that the settings name; they are closed at the end.

    SetupError when a runner is named twice; other errors as in `create_runner`.
    """
    async with AsyncExitStack() as stack:
        opened: dict[str, Runner] = {}
        for choice in settings.runner_choices:
            runner = create_runner(choice, settings)
            stack.push_async_callback(runner.aclose)
            if runner.name in opened:
                raise SetupError(
                    f"PODIUM_RUNNERS names the runner {runner.name!r} twice; write it once, "
                    f"with slots where wanted, as in {choice.name}:CPU=2"
                )
            opened[runner.name] = runner
        yield tuple(opened.values())


def create_runner(choice: RunnerChoice, settings: Settings) -> Runner:
    """Create the chosen runner; UserError for an unknown one, SetupError for a missing package."""
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
        raise _missing(name, error) from error
    return runner


def grace_s(runners: Sequence[Runner]) -> float:
    """Return how long an evaluation may take beyond its task's time limits, in seconds."""
    usual = DispatchConfig().grace_s
    return max([usual, *(_QUEUE_S.get(each.name, usual) for each in runners)])


async def deploy_to_modal() -> str:
    """Deploy the app of the runner `modal`; return the address of its page.

    RunnerError when Modal refuses, SetupError without its client.
    """
    module = plugins.load(backends, _MODAL)
    try:
        page: str = await module.deploy()
    except ModuleNotFoundError as error:
        raise _missing(_MODAL, error) from error
    return page


def _missing(name: str, error: ModuleNotFoundError) -> SetupError:
    extra = name.partition("_")[0]
    return SetupError(
        f"the runner {extra} needs {error.name}; run `pip install 'kernel-podium[{extra}]'`"
    )


def harness_version() -> str:
    """Return the version of this harness; times of two versions cannot be compared."""
    return HARNESS_VERSION


async def require_available(runners: Sequence[Runner]) -> None:
    """Raise RunnerError for a runner that cannot serve: a dispatcher would silently wait for it."""
    for runner in runners:
        await runner.capabilities()
