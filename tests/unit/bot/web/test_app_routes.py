"""Tests of the order in which a request is compared with the routes."""

import re
from collections.abc import Iterator
from types import ModuleType

from fastapi.routing import iter_route_contexts
from starlette.routing import compile_path

from bot.web import app, routes
from bot.web.routes import pages
from runners import plugins


def _routes(*modules: ModuleType) -> Iterator[tuple[str, frozenset[str]]]:
    """The path and the methods of each route."""
    for module in modules:
        for route in iter_route_contexts(module.router.routes):
            yield str(route.path), frozenset(getattr(route.original_route, "methods", None) or "*")


def test_pages_come_first_and_take_no_request_from_others() -> None:
    loaded = [plugins.load(routes, name) for name in plugins.names(routes)]
    others = *app.slices(), *(each for each in loaded if each is not pages)
    assert list(app.in_order_of_matching()) == [pages, *others]
    patterns = [(compile_path(path)[0], methods) for path, methods in _routes(pages)]
    assert any(pattern.match("/boards/vectoradd") for pattern, _ in patterns)
    for path, methods in _routes(*others):
        example = re.sub(r"\{[^}]+\}", "1", path)
        assert not any(p.match(example) and methods & m for p, m in patterns), path
