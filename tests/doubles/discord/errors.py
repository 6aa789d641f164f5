"""Errors of the REST API, which the bot receives, and errors of clients, which tests receive."""

from collections.abc import Sized

from tests.doubles.discord.wire import Json

MESSAGES = {
    10002: "Unknown Application",
    10003: "Unknown Channel",
    10004: "Unknown Guild",
    10007: "Unknown Member",
    10008: "Unknown Message",
    10011: "Unknown Role",
    10013: "Unknown User",
    10015: "Unknown Webhook",
    10062: "Unknown interaction",
    10063: "Unknown application command",
    30005: "Maximum number of guild roles reached (250)",
    30013: "Maximum number of guild channels reached (500)",
    30032: "Maximum number of application commands reached",
    40005: "Request entity too large",
    40060: "Interaction has already been acknowledged.",
    50001: "Missing Access",
    50005: "Cannot edit a message authored by another user",
    50006: "Cannot send an empty message",
    50007: "Cannot send messages to this user",
    50013: "Missing Permissions",
    50024: "Cannot execute action on this channel type",
    50027: "Invalid Webhook Token",
    50083: "Thread is archived",
    160004: "A thread has already been created for this message",
    160006: "Maximum number of active threads reached",
}
_STATUS = {50027: 401, 40005: 413, 50001: 403, 50013: 403, 50007: 403, 50005: 403}


class ApiError(Exception):
    """An error that the REST API answers with."""

    def __init__(self, status: int, code: int, message: str, errors: Json | None = None) -> None:
        super().__init__(f"{status} {code} {message} {errors or ''}")
        self.status, self.code, self.message, self.errors = status, code, message, errors


class RateLimitedError(ApiError):
    """429: too many requests in a window."""

    def __init__(self, wait: float, scope: str) -> None:
        super().__init__(429, 0, "You are being rate limited.")
        self.wait, self.scope = wait, scope
        self.headers: dict[str, str] = {}

    def body(self) -> Json:
        is_global = self.scope == "global"
        return {"message": self.message, "retry_after": round(self.wait, 3), "global": is_global}


def refusal(code: int) -> ApiError:
    """The error of this code, with Discord's status for it."""
    status = _STATUS.get(code) or (404 if 10000 <= code < 11000 else 400)
    return ApiError(status, code, MESSAGES[code])


def invalid(path: str, code: str, message: str) -> ApiError:
    """Return the error 50035 about one field."""
    form = Form()
    form.wrong(path, code, message)
    return form.refusal()


class Form:
    """Collects every error of a body, because Discord reports all of them at once."""

    def __init__(self) -> None:
        self.errors: Json = {}

    def wrong(self, path: str, code: str, message: str) -> None:
        node = self.errors
        for part in path.split("."):
            node = node.setdefault(part, {})
        node.setdefault("_errors", []).append({"code": code, "message": message})

    def at_most(self, path: str, value: Sized | None, most: int) -> None:
        if value is not None and len(value) > most:
            self.wrong(path, "BASE_TYPE_MAX_LENGTH", f"Must be {most} or fewer in length.")

    def between(self, path: str, value: Sized | None, least: int, most: int) -> None:
        if value is not None and not least <= len(value) <= most:
            message = f"Must be between {least} and {most} in length."
            self.wrong(path, "BASE_TYPE_BAD_LENGTH", message)

    def required(self, path: str, value: Sized | None, least: int, most: int) -> None:
        """Check like `between`, and refuse a missing or empty value as well."""
        if not value:
            self.wrong(path, "BASE_TYPE_REQUIRED", "This field is required")
        self.between(path, value or None, least, most)

    def refusal(self) -> ApiError:
        return ApiError(400, 50035, "Invalid Form Body", self.errors)

    def done(self) -> None:
        if self.errors:
            raise self.refusal()


class DriverError(Exception):
    """The person cannot do this in a client: a hidden command, a value that is not offered."""


class NotAnsweredError(Exception):
    """What a person sees as "The application did not respond"."""


class NotSeenError(AssertionError):
    """A person waited for a message or thread that never appeared."""
