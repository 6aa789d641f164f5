"""What no route takes: told in KernelBot's shape, with the methods that there are."""

from collections.abc import Sequence
from http import HTTPMethod, HTTPStatus

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from bot.domain.errors import UserError
from bot.frontends.web.compat.kernelbot.http import Route
from bot.frontends.web.failures import MethodError


def router_of(others: Sequence[APIRouter]) -> APIRouter:
    """Takes every path that the others do not; to be asked last."""
    routes = [each for other in others for each in other.routes if isinstance(each, APIRoute)]
    router = APIRouter(route_class=Route)

    async def elsewhere(path: str, request: Request) -> Response:
        """Nothing is here, or not by this method."""
        allowed = {
            method
            for route in routes
            if route.path_regex.match(f"/{path}")
            for method in route.methods or ()
        }
        if allowed:
            raise MethodError(allowed)
        if request.url.path.endswith("/") or "//" in request.url.path:
            words = "there is nothing at this address; take the / from the end of POPCORN_API_URL"
            raise UserError("unknown-address", words)
        raise HTTPException(HTTPStatus.NOT_FOUND)

    router.add_api_route("/{path:path}", elsewhere, methods=[each.value for each in HTTPMethod])
    return router
