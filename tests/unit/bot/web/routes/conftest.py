import pytest

from tests.doubles.api import Api, make_api


@pytest.fixture
async def api() -> Api:
    return await make_api()
