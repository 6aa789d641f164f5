"""A way to run scripts in forks of one template."""

import os
from collections.abc import Callable, Iterator

import pytest

from runners.harness.supervision.template import TemplateProcess
from runners.process_tree import alive, descendants
from tests.unit.runners.harness.conftest import template
from tests.unit.runners.harness.supervision.forking import Ran

__all__ = ["template"]
Fork = Callable[..., Ran]


@pytest.fixture
def fork(template: TemplateProcess) -> Iterator[Fork]:
    before = descendants(os.getpid())
    yield lambda script, **more: Ran(template.start, script, **more)
    left = set(descendants(os.getpid())) - {*before}
    # A database server may start processes at any time.
    others = {each for known in before if known != template.pid for each in descendants(known)}
    assert not [pid for pid in left - others if alive(pid)]
