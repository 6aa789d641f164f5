"""`/docs`: how to begin, by each door."""

from fastapi import APIRouter, Request, Response

from bot.frontends.web.rendering import page
from bot.frontends.web.viewers import AnyViewer

router = APIRouter()


@router.get("/docs")
async def docs(request: Request, viewer: AnyViewer) -> Response:
    """How to submit, and what the numbers mean."""
    base = str(request.base_url).rstrip("/")
    return await page(request, viewer, "docs.html", {"title": "How to submit", "base": base})
