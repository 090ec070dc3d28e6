"""What the bot writes, and its settings: without Discord and without a service."""

import asyncio

import pytest

from evenmatch.discord.settings import VARIABLES, read_settings
from evenmatch.errors import UsageError

pytest.importorskip("discord", reason="discord.py, of the extra discord, is not installed")
import aiohttp
from aiohttp import web

from evenmatch.discord import texts
from evenmatch.discord.api import Api, RefusalError, with_mentions

GIVEN = {"token": "t", "channel": "12", "key": "em_1", "ladder": "arena", "queue": "main"}
ANN = 80351110224678912


def environment(**changed):
    return {f"EVENMATCH_DISCORD_{name.upper()}": value for name, value in {**GIVEN, **changed}.items()}


def test_all_missing_settings_are_named_at_once():
    with pytest.raises(UsageError) as told:
        read_settings({"EVENMATCH_DISCORD_TOKEN": "t", "EVENMATCH_DISCORD_KEY": " "})
    missing = ("CHANNEL", "KEY", "LADDER", "QUEUE")
    assert str(told.value).startswith(", ".join(f"EVENMATCH_DISCORD_{name}" for name in missing) + ": not set")


def test_the_standings_are_in_the_same_channel_unless_another_one_is_named():
    assert read_settings(environment()).standings_channel == 12
    assert read_settings(environment(standings_channel="13")).standings_channel == 13
    assert read_settings(environment(url="http://10.0.0.1:8080/")).url == "http://10.0.0.1:8080"
    assert VARIABLES.keys() == set(read_settings(environment())._fields)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("channel", "#arena", "'Copy Channel ID'"),
        ("standings_channel", "٣", "'Copy Channel ID'"),  # an Arabic three is a digit, and no id
        ("url", "rank.example", "http:// or https://"),
        ("queue", "q" * 51, "at most 50 characters"),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_expected(name, value, expected):
    with pytest.raises(UsageError, match=f"EVENMATCH_DISCORD_{name.upper()} is ") as told:
        read_settings(environment(**{name: value}))
    assert expected in str(told.value)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        (f"discord:{ANN}", f"<@{ANN}>"),
        ("ann", "ann"),
        ("discord:ann", "discord:ann"),
        ("*ann*", r"\*ann\*"),
        ("a_b_c", r"a\_b\_c"),
    ],
)
def test_a_player_of_discord_is_mentioned_and_other_names_are_written_as_they_are(name, written):
    assert texts.shown(name) == written


@pytest.mark.parametrize("name", ["@everyone", "@here", f"<@{ANN}>", f"<@&{ANN}>"])
def test_a_name_that_looks_like_a_mention_calls_nobody(name):
    assert name not in texts.shown(name)


def test_a_refusal_mentions_users_instead_of_naming_them():
    assert with_mentions(f"player 'discord:{ANN}' waits") == f"player <@{ANN}> waits"
    assert with_mentions("player 'ann' waits") == "player 'ann' waits"


def test_a_long_text_is_cut_between_words():
    text = " ".join(f"<@{ANN + number}>" for number in range(200))
    cut = texts.fit(text)
    assert 1950 < len(cut) <= 2000
    assert cut.removesuffix(" …").split() == text.split()[: len(cut.split()) - 1]
    assert texts.fit("x" * 2000) == "x" * 2000


def test_a_match_of_a_hundred_players_fits_with_what_the_sides_say():
    teams = [[{"player": f"discord:{ANN + 50 * side + slot}"} for slot in range(50)] for side in range(2)]
    text = texts.match_text({"teams": teams, "odds": None, "region": None, "map": None})
    assert len(texts.claims_text(text, "01")) <= 2000
    assert texts.claims_text(texts.claims_text(text, "0-"), "01") == texts.claims_text(text, "01")


def test_a_ladder_that_hides_ratings_is_not_given_away():
    """The answers of a ladder that shows divisions, and no ratings (show=division)."""
    hidden = {"rating": None, "percentile": None, "division": "Gold", "matches": 7}
    row = {"player": "ann", "rank": 1, **hidden}
    assert texts.standings({"title": "Arena", "items": [row]}).description == "**1.** ann Gold · 7 matches"
    assert "rating" not in texts.rank_text({"player": "ann", "standing": {**row, "record": None}})
    why = {"headline": None, "reason": None, "otherwise": None, "expected": None, "factors": None}
    assert texts.why_text(why, "") == "This ladder does not show its players how the ratings move."
    player = {"player": "ann", "before": None, "after": None, "division": "Gold"}
    teams = [{"place": 1, "players": [player]}, {"place": 2, "players": [{**player, "player": "bob"}]}]
    assert texts.ended_text({}, {"teams": teams}) == "**Team 1 won.**\nTeam 1: ann Gold\nTeam 2: bob Gold"


REFUSALS = [
    (401, {"detail": "the key em_1 was revoked"}, "The ranking server does not accept the bot's key for this."),
    (403, {"detail": "the key em_1 lacks a scope"}, "The ranking server does not accept the bot's key for this."),
    (429, {"detail": "too many requests", "retry_after": 3.2}, "The ranking server is busy. Please try again in 3 s."),
    (503, {"detail": "the database does not answer", "retry_after": 0.1}, "Please try again in 1 s."),
    (503, {"detail": "about to stop"}, "Please try again in 60 s."),
    (500, {"detail": "Internal server error"}, "The ranking server could not do this. Please tell an operator."),
    (502, "<h1>Bad Gateway</h1>", "The ranking server does not answer. Please try again in a minute."),
    (200, ["a page of another service"], "The ranking server could not do this. Please tell an operator."),
    (409, {"detail": f"player 'discord:{ANN}' is banned"}, f"Player <@{ANN}> is banned."),
    (409, {"detail": "too early", "until": "2026-11-27T20:00:00Z"}, "Too early. You can try again <t:1795809600:R>."),
]


@pytest.mark.parametrize(("status", "body", "sentence"), REFUSALS)
def test_a_refusal_of_the_service_is_a_sentence_for_the_user(status, body, sentence):
    async def refuse(_):
        return (
            web.Response(text=body, status=status) if isinstance(body, str) else web.json_response(body, status=status)
        )

    async def ask():
        app = web.Application()
        app.router.add_get("/v1/ladders/arena/players/{player}", refuse)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        settings = read_settings(environment(url=f"http://127.0.0.1:{runner.addresses[0][1]}"))
        try:
            async with aiohttp.ClientSession() as http:
                await Api(http, settings).get("players", "a/b")
        finally:
            await runner.cleanup()

    with pytest.raises(RefusalError) as told:
        asyncio.run(ask())
    assert sentence in str(told.value)
    assert "em_1" not in str(told.value)
