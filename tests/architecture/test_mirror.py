"""Holds the mirror: a module with behaviour has its test at the same path under tests/unit."""

from pathlib import PurePosixPath

import pytest

from tests.architecture.tree import ROOT, has_behaviour, modules

COVERED_ELSEWHERE = {
    "bot/__main__.py": "tests/e2e/test_command_line.py",
    "bot/app/worker.py": "tests/e2e/test_agents.py",
    "bot/domain/api/workers.py": "tests/conformance/test_worker_queue.py",
    "bot/app/doors.py": "tests/e2e/test_agents.py",
    "bot/cli/commands": "tests/e2e/test_command_line.py",
    "bot/cli/client.py": "tests/integration/test_commands_at_a_server.py",
    "bot/discord/setup_check.py": "tests/e2e/discord",
    "bot/discord/commands": "tests/e2e/discord",
    "bot/discord/context.py": "tests/e2e/discord",
    "bot/discord/options.py": "tests/e2e/discord",
    "bot/discord/channels.py": "tests/e2e/discord",
    "bot/discord/pagination.py": "tests/e2e/discord",
    "bot/discord/notifications.py": "tests/e2e/discord",
    "bot/discord/roles.py": "tests/e2e/discord",
    "bot/web/compat/kernelbot": "tests/unit/bot/web/compat/kernelbot",
    "bot/domain/api": "tests/unit/bot/web/routes",
    "bot/web/routes/api": "tests/unit/bot/web/routes",
    "bot/web/routes": "tests/unit/bot/web/test_app.py",
    "bot/remote/client/client.py": "tests/integration/test_commands_at_a_server.py",
    "bot/remote/worker.py": "tests/conformance/test_worker_queue.py",
    "bot/services/accounts.py": "tests/conformance/test_accounts.py",
    "bot/services/confirmations.py": "tests/conformance/test_confirmations.py",
    "bot/services/contests.py": "tests/conformance/test_confirmation_attacks.py",
    "bot/services/finals.py": "tests/conformance/test_finals.py",
    "bot/services/dispatch/execution.py": "tests/unit/bot/services/dispatch/test_dispatcher.py",
    "bot/services/dispatch/worker_queue.py": "tests/conformance/test_worker_queue.py",
    "bot/services/publishing/own_checks.py": "tests/unit/bot/web/test_boards_of_ones_own.py",
    "bot/store/backup": "tests/integration/test_backup.py",
    "bot/store/embedded": "tests/integration/test_embedded.py",
    "bot/store/migrate.py": "tests/migrations/test_migrate.py",
    "bot/store/postgres": "tests/conformance/test_store.py",
    "runners/backends/local_process.py": "tests/unit/runners/backends/test_local_process_gpus.py",
    "runners/backends/modal_app": "tests/unit/runners/backends/modal_app",
    "runners/backends/ray_cluster": "tests/unit/runners/backends/ray_cluster",
    "runners/harness/gpu": "tests/gpu",
    "runners/harness/judge/answer.py": "tests/unit/runners/harness/judge/test_device_candidate.py",
    "runners/slots": "tests/unit/runners/slots",
}
"""Module or folder to the tests which run it whole, where a unit test would only repeat them."""


def _covered_elsewhere(module: str) -> bool:
    return any(
        module == place or module.startswith((f"{place}/", f"{place}.py"))
        for place in COVERED_ELSEWHERE
    )


def _test_of(module: str) -> PurePosixPath:
    path = PurePosixPath("tests/unit") / module
    return path.with_name(f"test_{path.stem.strip('_')}.py")


def test_a_module_with_behaviour_has_its_test() -> None:
    held = [each for each in modules("bot", "runners") if not _covered_elsewhere(each)]
    wanted = [_test_of(module) for module in held if has_behaviour(module)]
    assert not [str(test) for test in wanted if not (ROOT / test).is_file()], "missing"


@pytest.mark.parametrize(("place", "tests"), sorted(COVERED_ELSEWHERE.items()))
def test_an_exemption_names_tests_that_exist(place: str, tests: str) -> None:
    assert (ROOT / tests).exists()
    assert (ROOT / place).exists() or (ROOT / f"{place}.py").exists()
