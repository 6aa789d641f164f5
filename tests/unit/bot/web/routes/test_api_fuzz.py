"""Every route of the description against what fits its schema, and against what does not."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from bot.domain.accounts import TokenScope
from bot.domain.api.base import PATH
from bot.web.app import build
from bot.web.routes.api import submissions
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.api import Api

EXAMPLES = 3
"""Of each route, fitting ones and as many others."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


async def _known(api: Api) -> dict[str, st.SearchStrategy[Any]]:
    """What is there: a ranked submission, one that is wrong, and one that was cancelled."""
    ranked = await api.place.submit()
    await api.place.judged(ranked)
    wrong = await api.place.submit(mode=Mode.TEST)
    await api.place.judged(wrong, verdict=Verdict.WRONG_ANSWER)
    stopped = await api.place.submit()
    await api.place.store.jobs.request_cancel(stopped.id)
    return {
        "name": st.just("vectoradd"),
        "file": st.just("reference.py"),
        "number": st.sampled_from([ranked.id, wrong.id, stopped.id]),
    }


@pytest.mark.slow
async def test_every_answer_is_as_it_is_described(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submissions, "LONGEST_S", 0.05)
    known = await _known(api)
    headers = await api.headers("ada", TokenScope.ADMIN)
    schema = schemathesis.openapi.from_asgi(f"{PATH}/openapi.json", build(api.door))
    seen: Counter[int] = Counter()

    def ask(operation: Any, mode: GenerationMode, data: st.DataObject) -> None:  # noqa: ANN401
        case = data.draw(operation.as_strategy(generation_mode=mode))
        for name in case.path_parameters or {}:
            if name in known and data.draw(st.booleans()):
                case.path_parameters[name] = data.draw(known[name])
        if isinstance(case.body, dict) and "board" in case.body and data.draw(st.booleans()):
            case.body["board"] = "vectoradd"
        response = case.call(headers=headers)
        seen[int(response.status_code)] += 1
        case.validate_response(response, checks=CHECKS)

    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    for operation, mode in product(operations, GenerationMode):
        with suppress(Unsatisfiable):  # nothing can be wrong where nothing is asked for
            _tried(partial(ask, operation, mode))
    assert len(operations) > 30
    assert {200, 201, 204, 400, 401, 404, 409, 422} <= set(seen)


def _tried(ask: Callable[[st.DataObject], None]) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def each(data: st.DataObject) -> None:
        ask(data)

    each()
