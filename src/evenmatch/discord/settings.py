"""Settings of the Discord bot, from environment variables such as EVENMATCH_DISCORD_TOKEN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from evenmatch.errors import UsageError

PREFIX = "EVENMATCH_DISCORD_"
LONGEST_QUEUE = 50  # characters: the id of a match begins with its queue, and Discord limits the ids of buttons
PAGE = "see the page 'A Discord bot for your community'"
# What each setting means, and its default; None: it must be set.
VARIABLES: dict[str, tuple[str, str | None]] = {
    "token": ("Token of the bot, from the page *Bot* of your application at Discord.", None),
    "channel": ("Id of the text channel for offers, matches and results.", None),
    "key": ("API key with the scope `queue`.", None),
    "report_key": ("API key with the scope `report`; empty: no buttons for results, your game server reports.", ""),
    "ladder": ("Name of the ladder.", None),
    "queue": (f"Name of the ladder's queue, at most {LONGEST_QUEUE} characters.", None),
    "url": ("Address of `evenmatch serve`.", "http://127.0.0.1:8080"),
    "site": ("Public address of the web site, for links to matches; empty: no links.", ""),
    "standings_channel": ("Id of the text channel for the standings; empty: the other channel.", ""),
}


class Settings(NamedTuple):
    """Every setting of `evenmatch discord`, see VARIABLES."""

    token: str
    channel: int
    key: str
    report_key: str
    ladder: str
    queue: str
    url: str
    site: str
    standings_channel: int


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read the settings. Raises UsageError, which names each missing or wrong variable."""
    given = {name: environment.get(PREFIX + name.upper(), "").strip() for name in VARIABLES}
    missing = [PREFIX + name.upper() for name, (_, default) in VARIABLES.items() if default is None and not given[name]]
    if missing:
        raise UsageError(f"{', '.join(missing)}: not set; {PAGE}")
    text = {name: given[name] or default or "" for name, (_, default) in VARIABLES.items()}
    text["standings_channel"] = text["standings_channel"] or text["channel"]
    for name in ("url", "site"):
        if text[name] and not text[name].startswith(("http://", "https://")):
            raise _wrong(name, text[name], "an address that begins with http:// or https://")
    for name in ("channel", "standings_channel"):
        if not (text[name].isascii() and text[name].isdigit()):
            raise _wrong(name, text[name], "a number, as 'Copy Channel ID' gives it")
    if len(text["queue"]) > LONGEST_QUEUE:
        raise _wrong("queue", text["queue"], f"at most {LONGEST_QUEUE} characters")
    return Settings(
        token=text["token"],
        channel=int(text["channel"]),
        key=text["key"],
        report_key=text["report_key"],
        ladder=text["ladder"],
        queue=text["queue"],
        url=text["url"].rstrip("/"),
        site=text["site"].rstrip("/"),
        standings_channel=int(text["standings_channel"]),
    )


def _wrong(name: str, text: str, expected: str) -> UsageError:
    return UsageError(f"{PREFIX}{name.upper()} is {text!r}; expected {expected}")
