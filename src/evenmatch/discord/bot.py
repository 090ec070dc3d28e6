"""The Discord bot: commands and buttons, the tickets and matches that it follows, and the standings.

The bot stores nothing. Players, tickets and matches are in evenmatch. The button ids of a message name the ticket,
offer or match that it shows, and what each side has said about the result. A bot that starts reads both.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable
from urllib.parse import quote

import aiohttp
import discord
from discord import app_commands

from evenmatch.discord import texts
from evenmatch.discord.api import Api, Json, RefusalError, with_mentions
from evenmatch.discord.settings import PREFIX, Settings
from evenmatch.errors import EvenmatchError, UsageError

log = logging.getLogger(__name__)
BETWEEN_ROUNDS = 2.0  # seconds
ROUNDS_PER_BOARD = 8  # rounds after which the standings are read again, if no match has ended before
MESSAGES_READ = 300  # messages of a channel that a bot looks through when it starts
LISTED = 20  # players of the standings
MATCHES_EXPLAINED = 20  # latest matches of a player which can be explained
DISCORD_FAILURES = (discord.HTTPException, aiohttp.ClientError, OSError)
PERMISSIONS = "the permissions View Channel, Send Messages, Embed Links and Read Message History"
NO_PERMISSION = f"I may not write in my channel. Please tell an operator: there I need {PERMISSIONS}."
Note = discord.PartialMessage  # as is every Message


class Bot(discord.Client):
    """The connection to Discord, with the messages of open tickets, offers and matches."""

    channel: discord.TextChannel
    board: discord.TextChannel  # where the standings are

    def __init__(self, settings: Settings, api: Api) -> None:
        mentions = discord.AllowedMentions(everyone=False, roles=False, users=True)
        super().__init__(intents=discord.Intents(guilds=True), allowed_mentions=mentions, max_messages=None)
        self.settings, self.api = settings, api
        self._tree = app_commands.CommandTree(self)
        self._turn = asyncio.Lock()  # a round and a report by button do not write the same message at once
        self._wake = asyncio.Event()
        self._waiting: dict[int, tuple[int, Note]] = {}  # by user: the ticket, and the message that says who waits
        self._offers: dict[int, tuple[Note, str]] = {}  # by number: the message, and its text
        self._matches: dict[str, Note] = {}  # running ones, by id
        self._standings: tuple[Note | None, object] = (None, None)  # the message, and what it shows

    async def setup_hook(self) -> None:
        """Declare the commands, and resume from the messages in the channels. Raises UsageError."""
        try:
            await self.api.get("queues", self.settings.queue)
        except RefusalError as error:
            if error.status in (401, 403, 404):
                raise UsageError(f"evenmatch refuses the key, ladder or queue of the bot: {error.detail}") from None
            log.warning("evenmatch does not answer yet: %s", error.detail)
        self.channel = await self._text_channel("channel", self.settings.channel)
        self.board = await self._text_channel("standings_channel", self.settings.standings_channel)
        add_commands(self, self._tree)
        await self._tree.sync(guild=self.channel.guild)
        for channel in {self.channel, self.board}:
            async for message in channel.history(limit=MESSAGES_READ):
                if self.user is not None and message.author.id == self.user.id:
                    for name in texts.button_ids(message):
                        self._resume(message, *name.split(":", 1))
        log.info("%s serves #%s", self.user, self.channel)

    def _resume(self, message: discord.Message, verb: str, rest: str) -> None:
        match verb:
            case "leave":
                user, ticket = map(int, rest.split(":"))
                self._waiting.setdefault(user, (ticket, message))  # the latest message comes first
            case "accept":
                self._offers.setdefault(int(rest), (message, ""))
            case "where":
                self._matches.setdefault(rest, message)
            case "rank" if self._standings[0] is None:
                self._standings = (message, None)

    # commands and buttons

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        """Answer a press on one of the bot's buttons."""
        name = str(dict(interaction.data or {}).get("custom_id"))
        if interaction.type is discord.InteractionType.component and name.startswith(texts.BUTTON):
            await self.answer(interaction, lambda: press(self, interaction, name.removeprefix(texts.BUTTON)))

    async def answer(self, interaction: discord.Interaction, work: Callable[[], Awaitable[str]]) -> None:
        """Show the text that `work` returns, or the reason of its failure, to this user alone."""
        try:
            await interaction.response.defer(ephemeral=True, thinking=True)  # Discord waits for three seconds only
            await interaction.edit_original_response(content=texts.fit(await _told(work)))
        except DISCORD_FAILURES as error:
            log.warning("a user got no answer: %s", error)

    async def join(self, user: int) -> str:
        """Queue a user, or follow the user's present ticket."""
        seat = await self._seat(user)
        if seat["match_id"] is not None:
            async with self._turn:
                note = self._matches.get(seat["match_id"])
                if note is None or not await _exists(note):
                    self._matches.pop(seat["match_id"], None)
                    await self._show_match(await self.api.get("live", seat["match_id"]))
            return "You are in a match. It has to end before you queue again."
        ticket = seat["ticket"]
        if ticket is not None and user in self._waiting:
            return "You are in the queue already. I will mention you when a match is found."
        if ticket is None:
            body = {"queues": [self.settings.queue], "members": [{"player": texts.player_of(user)}]}
            ticket = (await self.api.write("POST", "tickets", body=body))["ticket"]
        leave = texts.buttons(("Leave", discord.ButtonStyle.secondary, f"leave:{user}:{ticket}"))
        text = f"<@{user}> waits in **{discord.utils.escape_markdown(self.settings.queue)}**."
        try:
            notice = await self.channel.send(text, view=leave, silent=True)
        except DISCORD_FAILURES:
            await self.api.write("DELETE", "tickets", str(ticket))  # nobody would see the offer either
            raise
        self._waiting[user] = (ticket, notice)
        return "You are in the queue. I will mention you when a match is found."

    async def respond(self, user: int, verb: str, offer: int | None = None) -> str:
        """Let a user `accept` or `decline` an offer, or `leave`. offer  None: the present one."""
        seat = await self._seat(user)
        if seat["ticket"] is None:
            return "You are in a match." if seat["match_id"] is not None else "You are not in the queue."
        path = ("tickets", str(seat["ticket"]))
        if verb == "leave":
            await self.api.write("DELETE", *path)
            return "You left the queue."
        body = {"player": texts.player_of(user), "offer": offer}
        await self.api.write("POST", *path, verb, body=body)
        return "You accepted. The match begins when everybody has." if verb == "accept" else "You declined the match."

    async def rank(self, user: int) -> str:
        """A user's standing on the ladder."""
        name = texts.player_of(user)
        profile = await self.api.find("players", name)
        return texts.rank_text({"player": name, "standing": None} if profile is None else profile)

    async def why(self, user: int, match_id: str | None = None) -> str:
        """Why a match moved a user's rating. match_id  None: the latest match."""
        page = await self.api.find("players", texts.player_of(user), "matches", limit=MATCHES_EXPLAINED)
        played = [] if page is None else page["items"]
        match = next((one for one in played if match_id in (None, one["match_id"])), None)
        if match is None:
            return "You have not played yet." if not played else f"I know only your last {MATCHES_EXPLAINED} matches."
        parts = ("ladders", self.settings.ladder, "matches", match["match_id"])
        link = "/".join((self.settings.site, *(quote(part, "") for part in parts))) if self.settings.site else ""
        return texts.why_text(match, link)

    async def where(self, user: int, match_id: str) -> str:
        """The address of a match for one of its players, with this player's token."""
        live, name = await self.api.get("live", match_id), await self._present_name(user)
        ticket = next((one["ticket"] for team in live["teams"] for one in team if one["player"] == name), None)
        if ticket is None:
            return "You do not play this match."
        match = (await self.api.get("tickets", str(ticket)))["match"]
        connection = None if match is None else match["connection"]
        if connection is None:
            return "No server is announced for this match. Agree on one with the other players."
        tokens = [token for own, token in connection["tokens"].items() if own in (name, texts.player_of(user))]
        return f"Connect to `{connection['address']}`{f' with `{tokens[0]}`' if tokens else ''}."

    async def claim(self, interaction: discord.Interaction, match_id: str, outcome: str) -> str:
        """Note the result that a user reports. Once both sides report the same, the match is recorded."""
        assert interaction.message is not None
        async with self._turn:
            live, name = await self.api.get("live", match_id), await self._present_name(interaction.user.id)
            if live["state"] != "open":
                return "This match has ended already."
            message = await self.channel.fetch_message(interaction.message.id)  # the other side may have been faster
            claims = texts.claims_of(message)
            players = [[one["player"] for one in team] for team in live["teams"]]
            side = next((index for index, team in enumerate(players) if name in team), None)
            if side is not None:
                claims = claims[:side] + outcome + claims[side + 1 :]
            elif interaction.permissions.manage_guild:
                claims = outcome * len(claims)
            else:
                return "Only those who play this match can report its result."
            if claims == outcome * len(claims):
                await self._end(match_id, outcome)
                return f"Recorded: {texts.outcome_words(outcome)}."
            buttons = texts.match_buttons(match_id, claims)
            await message.edit(content=texts.claims_text(message.content, claims), view=buttons)
            return "The other side must confirm it." if texts.UNKNOWN in claims else "The other side says otherwise."

    async def _end(self, match_id: str, outcome: str) -> None:
        if outcome == texts.NOT_PLAYED:
            await self.api.report("live", match_id, "cancel", body={"reason": "the players say that it was not played"})
        else:
            places = [1 if outcome in (texts.DRAW, side) else 2 for side in "01"]
            await self.api.report("live", match_id, "close", body={"teams": [{"place": place} for place in places]})
        self._wake.set()

    async def _seat(self, user: int) -> Json:
        return await self.api.get("players", texts.player_of(user), "ticket")

    async def _present_name(self, user: int) -> str:
        """The present name of a user's player, which an operator may have changed."""
        profile = await self.api.find("players", texts.player_of(user))
        return texts.player_of(user) if profile is None else str(profile["player"])

    # rounds

    async def rounds(self) -> None:
        """Show changes until the bot is closed. A failed step is repeated in the next round."""
        count = 0
        while not self.is_closed():
            try:
                async with self._turn:
                    await self._show_tickets()
                    has_ended = await self._show_matches()
                if has_ended or count % ROUNDS_PER_BOARD == 0:
                    await self._show_standings()
                count += 1
            except RefusalError as error:
                log.warning("evenmatch does not answer as expected: %s", error.detail)
            except DISCORD_FAILURES as error:
                log.warning("Discord does not answer as expected: %s", error)
            except Exception:  # a bug here must not end the commands
                log.exception("a round failed")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), BETWEEN_ROUNDS)
            self._wake.clear()

    async def _show_tickets(self) -> None:
        """Show offers, matches that begin, and tickets that end. Reading a ticket is its heartbeat."""
        listed = list(self._waiting.items())
        tickets = await asyncio.gather(*(self.api.find("tickets", str(ticket)) for _, (ticket, _) in listed))
        offered = set()
        for (user, waiting), ticket in zip(listed, tickets, strict=True):
            if ticket is not None and ticket["offer"] is not None:
                offered.add(ticket["offer"]["offer"])
                await self._show_offer(ticket["offer"])
            elif ticket is None or ticket["state"] in ("matched", "gone"):
                await self._show_end_of_wait(user, ticket)
                if self._waiting.get(user) == waiting:
                    del self._waiting[user]
                await _delete(waiting[1])
        for number in self._offers.keys() - offered:
            await _delete(self._offers.pop(number)[0])

    async def _show_offer(self, offer: Json) -> None:
        note, before = self._offers.get(offer["offer"], (None, ""))
        text = texts.offer_text(offer)
        if text != before:
            note = await _write(self.channel, note, text, texts.offer_buttons(offer["offer"]))
            self._offers[offer["offer"]] = (note, text)

    async def _show_end_of_wait(self, user: int, ticket: Json | None) -> None:
        if ticket is not None and ticket["match"] is not None:
            await self._show_match(ticket["match"])
        elif ticket is None or ticket["ended"] != "left the queue":
            why = "" if ticket is None else f": {with_mentions(ticket['ended'])}"
            await self.channel.send(texts.fit(f"<@{user}>, you are no longer in the queue{why}."))

    async def _show_match(self, match: Json) -> None:
        """Show a running match in the message of its offer."""
        match_id, sides = match["match_id"], len(match["teams"])
        if match_id in self._matches or match["state"] != "open":
            return
        made = texts.OFFER_OF_MATCH.search(match_id)
        number = int(made[1]) if made else 0
        note, _ = self._offers.get(number, (None, ""))
        claims = texts.UNKNOWN * sides if self.settings.report_key and sides == 2 else ""
        buttons = texts.match_buttons(match_id, claims)
        self._matches[match_id] = await _write(self.channel, note, texts.match_text(match), buttons)
        self._offers.pop(number, None)

    async def _show_matches(self) -> bool:
        """Show the results of matches that have ended; return whether there are any."""
        ended = 0
        for match_id, note in list(self._matches.items()):
            live = await self.api.find("live", match_id)
            if live is not None and live["state"] == "open":
                continue
            recorded = await self.api.find("matches", match_id) if live and live["state"] == "closed" else None
            buttons = texts.buttons() if recorded is None else texts.ended_buttons(match_id)
            await _write(self.channel, note, texts.ended_text(live, recorded), buttons)
            del self._matches[match_id]
            ended += 1
        return ended > 0

    async def _show_standings(self) -> None:
        note, before = self._standings
        embed = texts.standings(await self.api.get("standings", limit=LISTED))
        if embed.to_dict() != before:
            note = await _write(self.board, note, None, texts.standings_buttons(), embed)
            self._standings = (note, embed.to_dict())

    async def _text_channel(self, name: str, number: int) -> discord.TextChannel:
        given = f"{PREFIX}{name.upper()} is {number}"
        try:
            channel = await self.fetch_channel(number)
        except (discord.NotFound, discord.Forbidden) as error:
            raise UsageError(f"{given}, which the bot cannot see ({error}); it needs {PERMISSIONS}") from None
        if not isinstance(channel, discord.TextChannel):
            raise UsageError(f"{given}; expected a text channel of a server")
        return channel


async def _told(work: Callable[[], Awaitable[str]]) -> str:
    try:
        return await work()
    except RefusalError as error:
        log.info("refused: %s", error.detail)
        return str(error)
    except discord.Forbidden as error:
        log.warning("Discord refuses this: %s; the bot needs %s", error, PERMISSIONS)
        return NO_PERMISSION
    except DISCORD_FAILURES as error:
        log.warning("Discord does not answer: %s", error)
        return "Discord did not answer me. Please try again."
    except Exception:  # without an answer, Discord shows "thinking" for 15 minutes
        log.exception("a command failed")
        return "Something went wrong. Please tell an operator."


async def press(bot: Bot, interaction: discord.Interaction, name: str) -> str:
    """Do what a button is for. name: its id without prefix."""
    user, (verb, _, rest) = interaction.user.id, name.partition(":")
    if verb == "leave" and not rest.startswith(f"{user}:"):
        return "Only the player who waits can leave."
    match verb:
        case "leave" | "accept" | "decline":
            return await bot.respond(user, verb, None if verb == "leave" else int(rest))
        case "result":
            match_id, _, outcome = rest.rsplit(":", 2)
            return await bot.claim(interaction, match_id, outcome)
        case "where":
            return await bot.where(user, rest)
        case "why":
            return await bot.why(user, rest)
    return await bot.rank(user)


def add_commands(bot: Bot, tree: app_commands.CommandTree[Bot]) -> None:
    """Declare the bot's commands in the server of its channel."""
    guild = bot.channel.guild

    @tree.command(name="queue", description="Wait for a match", guild=guild)
    async def queue(interaction: discord.Interaction) -> None:
        await bot.answer(interaction, lambda: bot.join(interaction.user.id))

    @tree.command(name="leave", description="Leave the queue", guild=guild)
    async def leave(interaction: discord.Interaction) -> None:
        await bot.answer(interaction, lambda: bot.respond(interaction.user.id, "leave"))

    @tree.command(name="accept", description="Accept the match that is offered to you", guild=guild)
    async def accept(interaction: discord.Interaction) -> None:
        await bot.answer(interaction, lambda: bot.respond(interaction.user.id, "accept"))

    @tree.command(name="rank", description="Your place on the ladder, or another player's", guild=guild)
    async def rank(interaction: discord.Interaction, player: discord.Member | None = None) -> None:
        await bot.answer(interaction, lambda: bot.rank((player or interaction.user).id))

    @tree.command(name="why", description="Why your rating moved in your latest match", guild=guild)
    async def why(interaction: discord.Interaction) -> None:
        await bot.answer(interaction, lambda: bot.why(interaction.user.id))


async def _exists(note: Note) -> bool:
    try:
        await note.fetch()
    except discord.NotFound:
        return False
    return True


async def _delete(note: Note) -> None:
    with contextlib.suppress(discord.NotFound):
        await note.delete()


async def _write(
    channel: discord.TextChannel,
    note: Note | None,
    text: str | None,
    buttons: discord.ui.View,
    embed: discord.Embed | None = None,
) -> Note:
    """Edit a message; if there is none, or somebody deleted it, send one."""
    if note is not None:
        with contextlib.suppress(discord.NotFound):
            return await note.edit(content=text, embed=embed, view=buttons)
    return await channel.send(text, view=buttons) if embed is None else await channel.send(embed=embed, view=buttons)


def run(settings: Settings) -> None:
    """Run the bot until Ctrl-C or SIGTERM. Raises UsageError for wrong settings, EvenmatchError without Discord."""
    discord.utils.setup_logging(level=logging.INFO)
    discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False  # the bot does not speak
    asyncio.run(_run(settings))


async def _run(settings: Settings) -> None:
    async with aiohttp.ClientSession() as http, Bot(settings, Api(http, settings)) as bot:
        ending: list[asyncio.Task[None]] = []
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, lambda: ending.append(loop.create_task(bot.close())))
        try:
            await bot.login(settings.token)
            await asyncio.gather(bot.connect(), bot.rounds())
        except discord.Forbidden as error:
            scopes = "the scopes bot and applications.commands"
            raise UsageError(f"Discord refuses the bot: {error}; it needs {scopes}, and {PERMISSIONS}") from None
        except discord.LoginFailure:
            raise UsageError(f"{PREFIX}TOKEN is refused by Discord; expected the token of the page Bot") from None
        except DISCORD_FAILURES as error:
            raise EvenmatchError(f"Discord cannot be reached: {error}") from error
