import pytest
from pydantic import ValidationError

from bot.domain.api.publishing import RejudgeOrder


@pytest.mark.parametrize("written", ["2", "2.0", "2e0"])
def test_an_integer_is_one_as_json_schema_has_it(written: str) -> None:
    assert RejudgeOrder.model_validate_json(f'{{"version": {written}}}').version == 2


@pytest.mark.parametrize("written", ['"2"', "2.5", "true", "null", "0"])
def test_what_is_none_is_refused(written: str) -> None:
    with pytest.raises(ValidationError):
        RejudgeOrder.model_validate_json(f'{{"version": {written}}}')
