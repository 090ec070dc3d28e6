"""evenmatch discord: the Discord bot."""

from __future__ import annotations

import os

from evenmatch.errors import needing


def command() -> None:
    """Run a Discord bot for one ladder and queue until Ctrl-C or SIGTERM.

    In a channel of your server, players queue, accept, report results and ask for their rank with it. It speaks the API
    of `evenmatch serve`. All settings are environment variables: EVENMATCH_DISCORD_TOKEN, EVENMATCH_DISCORD_CHANNEL,
    EVENMATCH_DISCORD_KEY, EVENMATCH_DISCORD_LADDER and EVENMATCH_DISCORD_QUEUE must be set. The page "A Discord bot for
    your community" lists the others. The log goes to standard error.

    Example:
    evenmatch discord
    """
    with needing("discord", "the Discord bot"):
        from evenmatch.discord.bot import run
    from evenmatch.discord.settings import read_settings

    run(read_settings(os.environ))
