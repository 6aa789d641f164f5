"""The fixture that confines a script."""

import os
import subprocess
from functools import cache

import pytest

from runners.contract.evaluation import Limits
from runners.harness.sandbox import outer
from tests.unit.runners.harness.sandbox.confinement import Confined, Outcome, run


@cache
def namespaces_allowed() -> bool:
    """Whether the machine lets another program than ours make namespaces."""
    command = ["unshare", "--user", "--mount", "--pid", "--fork", "true"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture(params=["bare", "nested"])
def confined(request: pytest.FixtureRequest) -> Confined:
    """Run a script bare, and inside the harness's own sandbox."""
    nested = request.param == "nested"
    if nested and os.getuid() != 0 and outer.bubblewrap_installed():
        pytest.skip("bubblewrap starts the harness program itself, not a test's driver")

    def confine(script: str, limits: Limits | None = None) -> Outcome:
        outcome = run(script, nested=nested, limits=limits)
        if "namespaces" in outcome.missing and not namespaces_allowed():
            pytest.skip(f"no namespaces here: {outcome.missing['namespaces']}")
        return outcome

    return confine
