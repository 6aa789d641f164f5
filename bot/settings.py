"""The only reader of the environment, and of files that hold secrets."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args
from urllib.parse import unquote, urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic.networks import IPvAnyNetwork
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict
from typing_extensions import override

from bot.domain.costs import MODAL_PRICES, parse_prices
from bot.domain.errors import SetupError, fault_words
from runners.contract.task import GPU_NAME

_LONGEST_SECRET = 4096


class SecretFiles(PydanticBaseSettingsSource):
    """Reads a secret from the file that `NAME_FILE` names: Docker provides secrets as files."""

    @override
    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        name = str(field.validation_alias)
        path = os.environ.get(f"{name}_FILE", "")
        if not path or SecretStr not in (field.annotation, *get_args(field.annotation)):
            return None, field_name, False
        if os.environ.get(name):
            raise SetupError(f"{name} and {name}_FILE are both set; keep one of them")
        return _read_secret(name, Path(path)), field_name, False

    @override
    def __call__(self) -> dict[str, Any]:
        fields = self.settings_cls.model_fields.items()
        found = {
            str(field.validation_alias): self.get_field_value(field, name)[0]
            for name, field in fields
        }
        return {alias: value for alias, value in found.items() if value is not None}


def _read_secret(name: str, path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_LONGEST_SECRET + 1).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise SetupError(f"{name}_FILE: {path} cannot be read: {reason}") from None
    if not 1 <= len(text) <= _LONGEST_SECRET:
        raise SetupError(f"{name}_FILE: {path} must hold the secret and nothing else")
    return text


_SLOT = re.compile(rf":({GPU_NAME.pattern.strip('^$')})=([1-9]\d{{0,3}})")
_ADDRESS = re.compile(r"(https?://(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?)/?")
_NO_RUNNER = "none"
_RUNNER = re.compile(rf"[A-Za-z_]\w*(?:{_SLOT.pattern})*")


@dataclass(frozen=True, slots=True)
class RunnerChoice:
    """A runner plugin, and its slots by GPU type; if there are none, the plugin detects them."""

    name: str
    slots: dict[str, int]


def _parse_choice(text: str) -> RunnerChoice:
    name = text.partition(":")[0]
    return RunnerChoice(name, {gpu: int(count) for gpu, count in _SLOT.findall(text)})


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part for each in text.split(",") if (part := each.strip()))


class Settings(BaseSettings):
    """Everything that the environment can set; every setting has a default.

    A secret may be in a file instead, named by the variable with `_FILE` after its name.
    """

    model_config = SettingsConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    data_dir: Path = Field(default=Path(".podium"), validation_alias="PODIUM_DATA_DIR")
    """The folder of the embedded database and the log."""
    database_url: SecretStr | None = Field(default=None, validation_alias="DATABASE_URL")
    """The URL of a Postgres to use instead of the embedded one; it contains a password."""
    runners: Annotated[tuple[str, ...], NoDecode] = Field(
        default=("local",), validation_alias="PODIUM_RUNNERS"
    )
    """Runner plugins, separated by commas; `fake:H100=2:L4=1` gives one its slots by GPU type.

    With `none`, this process judges nothing; workers do."""
    lease_s: float = Field(default=30.0, ge=1, le=3600, validation_alias="PODIUM_LEASE_S")
    """Seconds without a heartbeat after which a process loses what it has claimed."""
    confirm_places: bool = Field(default=True, validation_alias="PODIUM_CONFIRM_PLACES")
    """Whether a run that would take one of the first three places is first compared with the run
    that holds it."""
    require_sandbox: Literal["", "strict"] = Field(
        default="", validation_alias="PODIUM_REQUIRE_SANDBOX"
    )
    """With `strict`, a machine where a layer of the sandbox is missing does not judge."""
    gpu_prices: Annotated[dict[str, float], NoDecode] = Field(
        default_factory=lambda: dict(MODAL_PRICES), validation_alias="PODIUM_GPU_PRICES"
    )
    """Dollars per second of one GPU, by GPU type, such as `A100=0.000583,H100=0.001097`; others
    have Modal's list price. With `none`, no GPU type has a price."""
    log_level: Literal["debug", "info", "warning", "error", "critical"] = Field(
        default="info", validation_alias="LOG_LEVEL"
    )
    """Events below this level are not logged; `debug` also logs the libraries' info messages."""

    http_host: str = Field(default="127.0.0.1", validation_alias="PODIUM_HTTP_HOST")
    """The address where the HTTP front end listens; 0.0.0.0 is every address."""
    http_port: int | None = Field(default=None, ge=0, le=65535, validation_alias="PODIUM_HTTP_PORT")
    """Its port, 0 for a free one; without a port there is no HTTP front end."""
    http_certificate: Path | None = Field(default=None, validation_alias="PODIUM_HTTP_CERTIFICATE")
    """A certificate file; with it, the server itself uses HTTPS."""
    http_key: Path | None = Field(default=None, validation_alias="PODIUM_HTTP_KEY")
    """The file of the certificate's private key."""
    http_proxies: Annotated[tuple[IPvAnyNetwork, ...], NoDecode] = Field(
        default=(), validation_alias="PODIUM_HTTP_PROXIES"
    )
    """Addresses or networks of proxies whose headers for client and protocol are trusted."""
    http_requests_per_minute: int = Field(
        default=600, ge=0, le=1_000_000, validation_alias="PODIUM_HTTP_REQUESTS_PER_MINUTE"
    )
    """The most requests per token, or per address without one; 0: no limit."""
    device_metrics: bool = Field(default=False, validation_alias="ENABLE_DEVICE_METRICS")
    """Whether `/eval` reads the GPU's counters with `ncu` if a request does not say."""

    public_url: str | None = Field(default=None, validation_alias="PODIUM_PUBLIC_URL")
    """The server's address as browsers know it, such as https://podium.example.org."""

    worker_server: str | None = Field(default=None, validation_alias="PODIUM_SERVER")
    """The server for which `podium worker` judges, instead of a database."""
    worker_token: SecretStr | None = Field(default=None, validation_alias="PODIUM_WORKER_TOKEN")
    """The worker's token for that server."""

    cli_server: str | None = Field(default=None, validation_alias="PODIUM_CLI_SERVER")
    """The server that commands use, instead of the one from `podium login`."""
    cli_token: SecretStr | None = Field(default=None, validation_alias="PODIUM_CLI_TOKEN")
    """A person's token for that server, instead of the one from `podium login`."""
    config_home: Path | None = Field(default=None, validation_alias="XDG_CONFIG_HOME")
    """The user's configuration folder, as on Linux desktops; by default `.config` at home."""

    discord_token: SecretStr | None = Field(default=None, validation_alias="DISCORD_TOKEN")
    """The bot's token; without one there is no Discord front end."""
    discord_api_base: str | None = Field(default=None, validation_alias="DISCORD_API_BASE")
    """Another address for Discord's REST interface, such as a proxy's."""
    discord_trusted_guilds: Annotated[frozenset[int], NoDecode] = Field(
        default=frozenset(), validation_alias="DISCORD_TRUSTED_GUILDS"
    )
    """Ids of servers whose roles give rights, separated by commas; see `bot/discord/README.md`."""
    discord_gateway_url: str | None = Field(default=None, validation_alias="DISCORD_GATEWAY_URL")
    """Another address for Discord's gateway."""

    discord_client_id: str | None = Field(
        default=None, pattern=r"^[0-9]{1,20}$", validation_alias="DISCORD_CLIENT_ID"
    )
    """The id of the application by which people sign in to the pages with Discord."""
    discord_client_secret: SecretStr | None = Field(
        default=None, validation_alias="DISCORD_CLIENT_SECRET"
    )
    """That application's secret, from its OAuth2 page."""
    discord_authorize_url: str | None = Field(
        default=None, validation_alias="DISCORD_AUTHORIZE_URL"
    )
    """Another address for the page on which people consent."""

    @classmethod
    @override
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, SecretFiles(settings_cls), env_settings

    @field_validator("discord_trusted_guilds", "http_proxies", mode="before")
    @classmethod
    def _split_list(cls, value: object) -> object:
        return _parts(value) if isinstance(value, str) else value

    @field_validator("gpu_prices", mode="before")
    @classmethod
    def _prices(cls, value: object) -> object:
        return parse_prices(_parts(value)) if isinstance(value, str) else value

    @field_validator("runners", mode="before")
    @classmethod
    def _split_runners(cls, value: object) -> object:
        if isinstance(value, str):
            if value.strip() == _NO_RUNNER:
                return ()
            names = _parts(value)
            if not names:
                raise ValueError(f"names no runner; write {_NO_RUNNER!r} to run without one")
            return names
        return value

    @field_validator("runners")
    @classmethod
    def _check_runners(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            if not _RUNNER.fullmatch(text):
                raise ValueError(
                    f"{text!r} is not a runner; write one such as local or fake:H100=2"
                )
        return value

    @field_validator(
        "database_url", "discord_token", "http_port", "http_certificate", "http_key",
        "worker_server", "worker_token", "cli_server", "cli_token", "config_home", "public_url",
        "discord_client_id", "discord_client_secret", "discord_authorize_url", mode="before",
    )  # fmt: skip
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("log_level", mode="before")
    @classmethod
    def _to_lowercase(cls, value: object) -> object:
        return value.strip().lower() or "info" if isinstance(value, str) else value

    @field_validator("device_metrics", mode="before")
    @classmethod
    def _empty_is_off(cls, value: object) -> object:
        return value or False

    @field_validator("public_url")
    @classmethod
    def _check_public_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        found = _ADDRESS.fullmatch(value.strip().lower())
        if found is None:
            raise ValueError(
                f"{value!r} is not an address; write one such as https://podium.example.org"
            )
        return found[1]

    @model_validator(mode="after")
    def _check_sign_in(self) -> Self:
        if (self.discord_client_id is None) != (self.discord_client_secret is None):
            raise ValueError("DISCORD_CLIENT_ID and DISCORD_CLIENT_SECRET belong together")
        if self.discord_client_id is not None and self.public_url is None:
            raise ValueError(
                "DISCORD_CLIENT_ID needs PODIUM_PUBLIC_URL, to which Discord sends people back"
            )
        return self

    @model_validator(mode="after")
    def _check_certificate(self) -> Self:
        if (self.http_certificate is None) != (self.http_key is None):
            raise ValueError("PODIUM_HTTP_CERTIFICATE and PODIUM_HTTP_KEY belong together")
        return self

    def at(self, data_dir: Path | None) -> Self:
        """Return the same settings with another data folder; None keeps this one."""
        return self if data_dir is None else self.model_copy(update={"data_dir": data_dir})

    def on_port(self, port: int | None) -> Self:
        """Return the same settings with HTTP on this port; None keeps the configured one."""
        return self if port is None else self.model_copy(update={"http_port": port})

    @property
    def credentials(self) -> Path | None:
        """The file of the logins; None for a user without a home folder."""
        folder = self.config_home
        if folder is None or not folder.is_absolute():  # XDG ignores a relative one
            try:
                folder = Path.home() / ".config"
            except RuntimeError:
                return None
        return folder / "podium" / "credentials.json"

    @property
    def names_this_machine(self) -> bool:
        """Whether a data folder or a database is set; commands then use this machine's Podium."""
        return "data_dir" in self.model_fields_set or self.database_url is not None

    @property
    def runner_choices(self) -> tuple[RunnerChoice, ...]:
        """The runners with their slots."""
        return tuple(_parse_choice(text) for text in self.runners)

    @property
    def discord_token_file(self) -> Path:
        """The file in which `podium discord setup` stores the bot's token."""
        return self.data_dir / "discord_token"

    @property
    def bot_token(self) -> SecretStr | None:
        """The bot's token: that of the environment, else the stored one."""
        if self.discord_token is not None or not self.discord_token_file.exists():
            return self.discord_token
        return SecretStr(_read_secret("DISCORD_TOKEN", self.discord_token_file))

    @property
    def secrets(self) -> tuple[str, ...]:
        """Strings that must never be shown: every secret, and the passwords in URLs."""
        values = (self.bot_token, *(value for _, value in self))
        found = [each.get_secret_value() for each in values if isinstance(each, SecretStr)]
        return tuple(part for secret in found for part in (secret, *_password(secret)))

    @property
    def strict_sandbox(self) -> bool:
        """Whether every layer of the sandbox is required."""
        return self.require_sandbox == "strict"


def _password(secret: str) -> tuple[str, ...]:
    """Return the password in a URL, as written there and decoded."""
    try:
        written = urlsplit(secret).password
    except ValueError:
        return ()
    return (written, unquote(written)) if written else ()


def read_settings() -> Settings:
    """Return the settings of this process; SetupError names each variable that is invalid."""
    try:
        return Settings()
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc'])}: {fault_words(fault)}"
            for fault in error.errors(include_input=False, include_url=False)
        )
        raise SetupError(f"the environment cannot be used: {faults}") from None
