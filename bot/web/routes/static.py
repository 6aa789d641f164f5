"""`/static`: what the pages are drawn with; each address says what is in it, so it is kept."""

from http import HTTPStatus

from fastapi import APIRouter, HTTPException, Request, Response

from bot.web.assets import PREFIX, assets
from bot.web.rendering import takes_gzip

router = APIRouter(include_in_schema=False)


@router.get(f"{PREFIX}/{{digest}}/{{name}}")
async def static(request: Request, digest: str, name: str) -> Response:
    """One file, as long as it is the one that the address means."""
    found = assets().get(name)
    if found is None or found.digest != digest:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable",
        "X-Content-Type-Options": "nosniff",
        "Vary": "Accept-Encoding",
    }
    if not takes_gzip(request):
        return Response(found.data, media_type=found.media_type, headers=headers)
    headers["Content-Encoding"] = "gzip"
    return Response(found.zipped, media_type=found.media_type, headers=headers)
