"""Texts and buttons of the bot's messages. The id of a button says what the button is for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

import discord
from discord.utils import escape_markdown, escape_mentions

from evenmatch.discord.api import USER, Json

BUTTON = "em:"  # prefix of every button id
LONGEST_MESSAGE, LONGEST_EMBED = 2000, 4096  # characters that Discord accepts
UNKNOWN = "-"  # in claims: this side has not reported a result
DRAW, NOT_PLAYED = "d", "x"  # outcomes besides the index of the winning side
OFFER_OF_MATCH = re.compile(r"-(\d+)-[0-9a-f]+\Z")  # in the id of a match that a queue made


def player_of(user: int) -> str:
    """The name under which a Discord user plays."""
    return f"{USER}{user}"


def shown(player: str) -> str:
    """A player's name as a message shows it; Discord users are mentioned."""
    user = player.removeprefix(USER)
    return f"<@{user}>" if user != player and user.isdigit() else escape_markdown(escape_mentions(player))


def fit(text: str, limit: int = LONGEST_MESSAGE) -> str:
    """Cut a text after a word if it is too long for Discord."""
    if len(text) <= limit:
        return text
    kept = text[: limit - 2]
    return f"{kept[: max(kept.rfind(' '), kept.rfind(chr(10)))]} …"


def buttons(*listed: tuple[str, discord.ButtonStyle, str]) -> discord.ui.View:
    """A row of buttons, given by label, style and id without prefix."""
    view = discord.ui.View(timeout=None)
    for label, style, name in listed:
        view.add_item(discord.ui.Button(label=label, style=style, custom_id=BUTTON + name))
    view.stop()  # the library forgets it; `on_interaction` reads the ids
    return view


def button_ids(message: discord.Message) -> list[str]:
    """The ids of a message's buttons, without prefix."""
    rows = [row for row in message.components if isinstance(row, discord.ActionRow)]
    ids = [child.custom_id for row in rows for child in row.children if isinstance(child, discord.Button)]
    return [one.removeprefix(BUTTON) for one in ids if one is not None and one.startswith(BUTTON)]


def offer_text(offer: Json) -> str:
    """An offered match with its players, odds and deadline."""
    deadline = round(datetime.fromisoformat(offer["deadline"]).timestamp())
    what = "A match is found" if offer["match_id"] is None else "A running match needs players"
    facts = [*_facts(offer), f"{offer['accepted']} of {offer['players']} accepted"]
    return fit("\n".join((f"**{what}.** Accept <t:{deadline}:R>.", *_sides(offer["teams"]), " · ".join(facts))))


def offer_buttons(offer: int) -> discord.ui.View:
    """The buttons below an offer."""
    return buttons(
        ("Accept", discord.ButtonStyle.success, f"accept:{offer}"),
        ("Decline", discord.ButtonStyle.danger, f"decline:{offer}"),
    )


def match_text(match: Json) -> str:
    """A match that begins. It is one paragraph: `claims_text` adds another."""
    teams = [[one["player"] for one in team] for team in match["teams"]]
    return fit("\n".join(("**The match begins.**", *_sides(teams), " · ".join(_facts(match)))).rstrip())


def match_buttons(match_id: str, claims: str) -> discord.ui.View:
    """The buttons below a running match. claims: what each side has said; empty: results are not reported by button."""
    outcomes = {"Team 1 won": "0", "Team 2 won": "1", "Draw": DRAW, "Not played": NOT_PLAYED} if claims else {}
    style = discord.ButtonStyle.primary
    return buttons(
        *((label, style, f"result:{match_id}:{claims}:{outcome}") for label, outcome in outcomes.items()),
        ("Where do I play?", discord.ButtonStyle.secondary, f"where:{match_id}"),
    )


def claims_of(message: discord.Message) -> str:
    """What each side has said about a match, from the buttons of its message."""
    return next(name.rsplit(":", 2)[1] for name in button_ids(message) if name.startswith("result:"))


def claims_text(text: str, claims: str) -> str:
    """The text of a match, followed by what its sides have said about the result."""
    first = text.partition("\n\n")[0]
    told = [f"Team {side + 1} says: {outcome_words(one)}." for side, one in enumerate(claims) if one != UNKNOWN]
    if UNKNOWN in claims:
        told.append(f"A player of team {claims.index(UNKNOWN) + 1} has to press the same button.")
    else:
        told.append(
            "**The sides disagree, so nothing is recorded.** Press again to change your answer. If you cannot agree, "
            "somebody who may manage this server and did not play presses the right button."
        )
    return fit(first, LONGEST_MESSAGE - 400) + "\n\n" + "\n".join(told)


def outcome_words(outcome: str) -> str:
    """An outcome in words."""
    return {DRAW: "a draw", NOT_PLAYED: "not played"}.get(outcome) or f"team {int(outcome) + 1} won"


def ended_text(live: Json | None, recorded: Json | None) -> str:
    """A match that has ended: the ratings before and after it, or why it changed none."""
    if recorded is None:
        ends = {"cancelled": "was cancelled", "expired": "expired, because nobody reported its result"}
        end = "is unknown to the ranking server" if live is None else ends.get(live["state"], "is not recorded")
        reason = "" if live is None or not live["reason"] else f" ({escape_mentions(live['reason'])})"
        return f"**The match {end}{reason}.** No rating changed."
    best = min(team["place"] for team in recorded["teams"])
    winners = [side for side, team in enumerate(recorded["teams"], 1) if team["place"] == best]
    title = f"Team {winners[0]} won" if len(winners) == 1 else "The match was drawn"
    lines = [f"**{title}.**"]
    for side, team in enumerate(recorded["teams"], 1):
        lines.append(f"Team {side}: {', '.join(_moved(one) for one in team['players'])}")
    return fit("\n".join(lines))


def ended_buttons(match_id: str) -> discord.ui.View:
    """The button below a recorded match."""
    return buttons(("Why?", discord.ButtonStyle.secondary, f"why:{match_id}"))


def rank_text(profile: Json) -> str:
    """A player's standing."""
    standing, name = profile["standing"], profile["player"]
    if standing is None:
        return f"{shown(name)} has no rated match yet. On the ladder the name is `{name}`."
    rank = "not listed yet" if standing["rank"] is None else f"rank {standing['rank']}"
    facts = [rank, *_standing(standing), _record(standing["record"])]
    return f"{shown(name)}: {' · '.join(filter(None, facts))}. On the ladder the name is `{name}`."


def why_text(match: Json, site: str) -> str:
    """Why a rating moved: a sentence, what another result would have done, then the numbers."""
    if match["headline"] is None:
        return escape_mentions(match["reason"] or "This ladder does not show its players how the ratings move.")
    lines = [match["headline"], match["otherwise"]]
    numbers = {"expected": match["expected"], **(match["factors"] or {})}
    told = [f"{name} {_number(value)}" for name, value in numbers.items() if value is not None]
    if told:
        lines.append(f"-# The numbers: {', '.join(told)}.")
    if site:
        lines.append(f"<{site}>")
    return fit("\n".join(filter(None, lines)))


def standings(page: Json) -> discord.Embed:
    """The best players of the ladder."""
    lines = [f"**{row['rank']}.** {shown(row['player'])} {' · '.join(_standing(row))}" for row in page["items"]]
    title = f"{page['title']}: standings" if page["title"] else "Standings"
    return discord.Embed(
        title=fit(title, 200), description=fit("\n".join(lines) or "Nobody is listed yet.", LONGEST_EMBED)
    )


def standings_buttons() -> discord.ui.View:
    """The button below the standings. A bot that starts recognizes its message by this button."""
    return buttons(("My rank", discord.ButtonStyle.secondary, "rank:"))


def _sides(teams: Sequence[Iterable[str]]) -> list[str]:
    return [f"Team {side}: {', '.join(map(shown, team))}" for side, team in enumerate(teams, 1)]


def _facts(match: Json) -> list[str]:
    odds, chosen = match.get("odds"), match.get("map")
    facts = [] if odds is None else [f"Odds {' : '.join(f'{100 * one:.0f}%' for one in odds)}"]
    facts += [] if match["region"] is None else [f"Region {escape_markdown(match['region'])}"]
    return facts if chosen is None else [*facts, f"Map {escape_markdown(chosen)}"]


def _standing(row: Json) -> list[str]:
    facts = [] if row["rating"] is None else [f"rating {row['rating']:.2f}"]
    facts += [] if row["division"] is None else [row["division"]]
    return [*facts, f"{row['matches']} matches" if row["matches"] != 1 else "1 match"]


def _record(record: Json | None) -> str:
    return "" if record is None else f"won {record['won']}, drew {record['drew']}, lost {record['lost']}"


def _moved(player: Json) -> str:
    if player["before"] is None:
        return f"{shown(player['player'])} {player['division'] or ''}".strip()
    return f"{shown(player['player'])} {player['before']:.2f} → {player['after']:.2f}"


def _number(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
