"""Bodies as the description of the API shows them, while `bot.web.bodies` reads them."""

from typing import Any

from fastapi import Response

from bot.domain.api.base import Asked

NO_STORE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def takes(kind: type[Asked], *, needed: bool = True) -> dict[str, Any]:
    """For `openapi_extra` of a route that reads such a body as JSON."""
    content = {"application/json": {"schema": schema_of(kind)}}
    return {"requestBody": {"required": needed, "content": content}}


def schema_of(kind: type[Asked]) -> dict[str, str]:
    """The place of a type among the components."""
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def unkept(response: Response) -> None:
    """Nobody on the way may keep the answer: it is for one reader, at one time.

    Nor may a browser guess what it is: some page of a neighbour could load it as a script.
    """
    response.headers.update(NO_STORE)
