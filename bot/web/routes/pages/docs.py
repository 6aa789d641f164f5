"""`/docs`: how to begin, with each front end."""

from fastapi import APIRouter, Request, Response

from bot.web.auth import AnyViewer
from bot.web.context import context_of, is_here
from bot.web.rendering import page
from runners.languages import specs

router = APIRouter()


@router.get("/docs")
async def docs(request: Request, viewer: AnyViewer) -> Response:
    """Show how to submit, and what the numbers mean."""
    values = {
        "title": "How to submit",
        "base": _address(request),
        "is_here": is_here(request),
        "languages": specs(),
    }
    return await page(request, viewer, "docs.html", values)


def _address(request: Request) -> str:
    """Return the public address, else the one that was connected to; never the `Host` header."""
    public = context_of(request).public_url
    if public is not None:
        return public
    host, port = request.scope.get("server") or ("127.0.0.1", None)
    name = f"[{host}]" if ":" in host else host
    return f"{request.url.scheme}://{name}" + (f":{port}" if port else "")
