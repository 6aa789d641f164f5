"""The bot's user, application and guilds, and the gateway's address."""

from tests.doubles.discord.errors import refusal
from tests.doubles.discord.rest.calls import Answer, Call, route

STARTS_A_DAY = 1000


@route("GET", "/users/@me")
def get_me(call: Call) -> Answer:
    return call.world.bot.to_api() | {"verified": True, "mfa_enabled": False, "locale": "en-US"}


@route("GET", "/users/@me/guilds")
def list_my_guilds(call: Call) -> Answer:
    world = call.world
    return [
        {
            "id": str(guild.id),
            "name": guild.name,
            "icon": None,
            "banner": None,
            "owner": False,
            "permissions": str(int(world.permissions(world.bot, guild))),
            "features": [],
        }
        for guild in world.guilds.values()
        if world.bot.id in guild.members
    ]


@route("GET", "/users/{user_id}")
def get_user(call: Call) -> Answer:
    user = call.world.users.get(call.id("user_id"))
    if user is None:
        raise refusal(10013)
    return user.to_api()


@route("POST", "/users/@me/channels")
def open_direct(call: Call) -> Answer:
    user = call.world.users.get(int(call.body["recipient_id"]))
    if user is None:
        raise refusal(10013)
    return call.world.direct(user).to_api()


@route("GET", "/oauth2/applications/@me", "/applications/@me")
def get_application(call: Call) -> Answer:
    bot, flags = call.world.bot, call.admission.application_flags
    return {
        "id": str(bot.id),
        "name": bot.name,
        "icon": None,
        "description": "",
        "bot_public": True,
        "summary": "",
        "type": None,
        "flags": flags,
        "flags_new": str(flags),
        "redirect_uris": [],
        "interactions_endpoint_url": None,
        "explicit_content_filter": 0,
        "role_connections_verification_url": None,
        "approximate_user_install_count": 0,
        "approximate_user_authorization_count": 0,
        "approximate_guild_count": len(call.world.guilds),
        "eligible_oauth2_scopes": [],
        "bot_require_code_grant": False,
        "verify_key": "00" * 32,
        "owner": bot.to_api(),
        "team": None,
        "bot": bot.to_api(),
        "integration_types_config": {"0": {}},
    }


@route("GET", "/applications/{application_id}/emojis")
def list_emojis(_call: Call) -> Answer:
    return {"items": []}


@route("GET", "/gateway", "/gateway/bot")
def get_gateway(call: Call) -> Answer:
    return {
        "url": call.admission.url,
        "shards": 1,
        "session_start_limit": {
            "total": STARTS_A_DAY,
            "remaining": STARTS_A_DAY - call.admission.identifies,
            "reset_after": 14400000,
            "max_concurrency": 1,
        },
    }
