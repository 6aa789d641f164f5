"""`/healthz`: whether this process answers."""

from fastapi import APIRouter

router = APIRouter()


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """For whoever restarts what does not answer."""
    return {"status": "ok"}
