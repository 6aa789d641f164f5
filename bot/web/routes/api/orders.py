"""A submission on its way in: as JSON, or as a form with the file in it."""

import json
from typing import Any, Final

from fastapi import Request
from starlette.datastructures import FormData, UploadFile

from bot.domain.acceptance import MAX_SOURCE_BYTES
from bot.domain.access import Viewer
from bot.domain.api.submissions import OrderFields, SubmissionOrder
from bot.domain.errors import UserError
from bot.domain.submission import SubmissionRequest
from bot.web.bodies import form_of, parsed, require_simple, whole
from bot.web.routes.api.bodies import schema_of
from runners.contract.task import GPU_NAME

MOST = 8 * MAX_SOURCE_BYTES
"""Bytes of a whole body: JSON may write one of a source as six."""
_FORM: Final = "multipart/form-data"

ORDER_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": schema_of(SubmissionOrder)},
            _FORM: {
                "schema": {
                    "type": "object",
                    "required": ["file", "mode"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "mode": {"$ref": "#/components/schemas/Mode"},
                        "board": {"type": "string"},
                        "gpus": {
                            "type": "array",
                            "items": {"type": "string", "pattern": GPU_NAME.pattern},
                        },
                    },
                }
            },
        },
    }
}


async def order_of(request: Request, viewer: Viewer) -> SubmissionRequest:
    """What somebody hands in; UserError when it is neither of both, or does not fit."""
    if request.headers.get("content-type", "").lower().startswith(_FORM):
        async with form_of(request, MOST) as form:
            return await _of_form(form, viewer)
    text = await whole(request, MOST)
    require_simple(text)
    order = parsed(SubmissionOrder, text)
    content = order.source.encode(errors="surrogatepass")
    return SubmissionRequest(
        viewer, order.file_name, content, order.mode, order.board or None, order.gpus
    )


async def _of_form(form: FormData, viewer: Viewer) -> SubmissionRequest:
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise UserError("bad-body", "the form has no file; send it as the field `file`")
    fields = {name: _text(form, name) for name in ("mode", "board") if name in form}
    words = [word for each in form.getlist("gpus") for word in str(each).split(",")]
    gpus = [word.strip() for word in words if word.strip()]
    order = parsed(OrderFields, json.dumps({**fields, "gpus": gpus}).encode())
    return SubmissionRequest(
        viewer, file.filename or "", await file.read(), order.mode, order.board or None, order.gpus
    )


def _text(form: FormData, name: str) -> str:
    value = form[name]
    if not isinstance(value, str):
        raise UserError("bad-body", f"the form's field `{name}` is a file; send it as text")
    return value
