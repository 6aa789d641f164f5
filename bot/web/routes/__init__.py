"""The routes of the HTTP front end: each module has a `router` and imports no other."""

from fastapi import APIRouter

from runners import plugins


def folder_router(folder: str, prefix: str = "", *, in_schema: bool = True) -> APIRouter:
    """Return one router with the `router` of every module of a folder that has one."""
    router = APIRouter(prefix=prefix, include_in_schema=in_schema)
    for module in plugins.load_all(folder):
        if hasattr(module, "router"):
            router.include_router(module.router)
    return router
