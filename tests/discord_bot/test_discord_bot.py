"""The Discord bot in a process of its own, between a stand-in for Discord and a real service."""

import os
import re
import signal
import subprocess
import sys
from typing import NamedTuple

import httpx
import pytest

from evenmatch.accounts.keys import Keys
from evenmatch.operations.service import Service
from server_process import SLOWEST, Served, request_json, whole_lines

pytest.importorskip("discord", reason="discord.py, of the extra discord, is not installed")
from discord_server import BOARD, CHANNEL, MANAGE_GUILD, TOKEN, DiscordServer, person

ANN, BOB, EVE, JOE, OPERATOR = (200000000000000000 + number for number in range(1, 6))
DUELS = {
    "policy": {
        "team_size": 1, "max_odds": "none", "even_spread": 100.0, "steps": [[0, 100]],
        "rematch_wait": 0.0, "party_wait": 0.0,
    },
    "rules": {"accept_within": 300, "heartbeat": 600, "tick": 0.1, "penalty": 600},
}  # fmt: skip
# The library's addresses lead to the stand-in; a round every 0.2 s instead of 2 s.
PROGRAM = """
import sys, yarl, discord.http, discord.gateway
discord.http.Route.BASE = "http://{0}"
discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL("ws://{0}/gateway")
from evenmatch.discord import bot
bot.BETWEEN_ROUNDS = 0.2
from evenmatch.cli import main
sys.argv = ["evenmatch", "discord"]
main()
"""


class BotProcess:
    """`evenmatch discord`, begun anew as often as a test wishes."""

    def __init__(self, discord, folder, environment):
        self._discord, self._log, self._environment, self._process = discord, folder / "bot.log", environment, None

    def start(self):
        connected = len(self._discord.asked)
        program = PROGRAM.format(self._discord.address)
        env = {**os.environ, **self._environment}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([sys.executable, "-c", program], stderr=log, env=env)
        self._discord.until(lambda: self._is_connected(connected), lambda: self._process.poll() is None, self.told)

    def attempt(self, changed):
        """A bot with other settings that is expected to end by itself."""
        command = [sys.executable, "-c", PROGRAM.format(self._discord.address)]
        env = {**os.environ, **self._environment, **changed}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=env, timeout=SLOWEST)

    def _is_connected(self, since):
        return any(one == "GET /gateway" for one in self._discord.asked[since:])

    def end(self, number=signal.SIGKILL):
        """Its exit code, after a signal."""
        self._process.send_signal(number)
        code = self._process.wait(SLOWEST)
        self._discord.wait_until_alone()
        return code

    def told(self):
        return whole_lines(self._log)


class Evening(NamedTuple):
    """What a test needs. admin: a client that may do everything; keys: those of the service, by scope."""

    discord: DiscordServer
    bot: BotProcess
    served: Served
    admin: httpx.Client
    keys: dict


@pytest.fixture(scope="module")
def evening(tmp_path_factory):
    """A ladder `arena` with a queue `duels`, its service, Discord and the bot."""
    folder = tmp_path_factory.mktemp("discord")
    path = str(folder / "evenmatch.db")
    with Service.open(path) as service:
        keys = {
            scope: Keys(service.database, service.clock).create(scope, [scope])
            for scope in ("queue", "report", "admin")
        }
        texts = {scope: text for scope, (_, text) in keys.items()}
    with Served(path, folder) as served, DiscordServer() as discord, served.client(texts["admin"]) as admin:
        request_json(
            admin, "POST", "/v1/ladders", {"name": "arena", "system": "elo", "settings": {"placement": 1}}, status=201
        )
        request_json(admin, "PUT", "/v1/ladders/arena/queues/duels", DUELS)
        given = {
            "token": TOKEN, "channel": CHANNEL, "standings_channel": BOARD, "key": texts["queue"],
            "report_key": texts["report"], "ladder": "arena", "queue": "duels", "url": served.address,
            "site": "https://ranks.example",
        }  # fmt: skip
        environment = {f"EVENMATCH_DISCORD_{name.upper()}": str(value) for name, value in given.items()}
        bot = BotProcess(discord, folder, environment)
        try:
            bot.start()
            yield Evening(discord, bot, served, admin, keys)
        finally:
            bot.end()


def begin_match(discord, *users):
    """The message of a match that two users find, whom the bot asks to accept it."""
    for user in users:
        assert discord.command(user, "queue") == "You are in the queue. I will mention you when a match is found."
    offer = discord.shown("A match is found")
    assert all(f"<@{user}>" in offer["content"] for user in users)
    first, second = users
    assert discord.command(first, "accept").startswith("You accepted.")
    assert discord.press(second, offer, "Accept").startswith("You accepted.")
    match = discord.shown("The match begins")
    assert match["id"] == offer["id"], "the match is shown in the place of its offer"
    return match


def side_of(match, user):
    (side,) = re.findall(rf"Team (\d): <@{user}>", match["content"])
    return int(side)


def now(discord, message):
    return discord.messages[message["id"]]


def test_two_users_play_from_the_queue_to_the_standings(evening):
    discord = evening.discord
    assert sorted(discord.commands) == ["accept", "leave", "queue", "rank", "why"]
    board = discord.shown("Nobody is listed yet", BOARD)
    match = begin_match(discord, ANN, BOB)
    won = f"Team {side_of(match, ANN)} won"
    assert discord.press(ANN, match, won) == "The other side must confirm it."
    claimed = now(discord, match)
    assert f"Team {side_of(match, ANN)} says: team {side_of(match, ANN)} won." in claimed["content"]
    assert discord.press(EVE, claimed, won) == "Only those who play this match can report its result."
    assert "The match begins" in now(discord, match)["content"], "an outsider changed nothing"
    assert discord.press(BOB, claimed, won) == f"Recorded: team {side_of(match, ANN)} won."
    ended = discord.shown("1516.00")  # Elo: K = 32, two equal players
    assert ended["id"] == match["id"]
    assert f"<@{ANN}> 1500.00 → 1516.00" in ended["content"]
    assert f"<@{BOB}> 1500.00 → 1484.00" in ended["content"]
    standings = discord.shown(f"**1.** <@{ANN}> rating 1516.00", BOARD)
    assert standings["id"] == board["id"], "the standings are edited"
    assert f"**2.** <@{BOB}> rating 1484.00" in standings["embeds"][0]["description"]
    assert len(discord.in_channel(BOARD)) == 1
    assert [one for one in discord.in_channel(CHANNEL) if "waits in" in one["content"]] == []


def test_a_user_asks_for_a_rank_and_why_it_moved(evening):
    discord = evening.discord
    assert re.match(rf"<@{ANN}>: rank 1 · rating 1516\.00 · .*won 1, drew 0, lost 0", discord.command(ANN, "rank"))
    assert discord.command(ANN, "rank", player=BOB).startswith(f"<@{BOB}>: rank 2 · rating 1484.00")
    told = discord.command(BOB, "why")
    assert "You lost" in told
    assert "16.00" in told
    assert "-# The numbers: expected 0.5" in told
    assert "<https://ranks.example/ladders/arena/matches/duels-" in told
    assert "You beat" in discord.press(ANN, discord.shown("1516.00"), "Why?")
    assert "no rated match yet" in discord.command(EVE, "rank")
    assert discord.command(EVE, "why") == "You have not played yet."
    assert discord.press(BOB, discord.in_channel(BOARD)[0], "My rank").startswith(f"<@{BOB}>: rank 2")


def test_sides_that_disagree_record_nothing_until_they_agree_or_an_operator_decides(evening):
    discord = evening.discord
    for ending in ("they agree", "an operator decides"):
        match = begin_match(discord, EVE, JOE)
        discord.press(EVE, match, f"Team {side_of(match, EVE)} won")
        told = discord.press(JOE, now(discord, match), f"Team {side_of(match, JOE)} won")
        assert told == "The other side says otherwise."
        assert "The sides disagree, so nothing is recorded" in now(discord, match)["content"]
        if ending == "they agree":
            assert discord.press(EVE, now(discord, match), "Draw") == "The other side says otherwise."
            assert discord.press(JOE, now(discord, match), "Draw") == "Recorded: a draw."
            assert "drawn" in discord.shown(f"<@{EVE}> 1500.00 → 1500.00")["content"]
        else:
            told = discord.press(OPERATOR, now(discord, match), f"Team {side_of(match, JOE)} won", MANAGE_GUILD)
            assert told == f"Recorded: team {side_of(match, JOE)} won."
            assert discord.shown(f"<@{JOE}> 1500.00 → 1516.00")["id"] == match["id"]


def test_a_match_that_both_say_was_not_played_changes_no_rating(evening):
    discord = evening.discord
    match = begin_match(discord, ANN, JOE)
    discord.press(ANN, match, "Not played")
    assert discord.press(JOE, now(discord, match), "Not played") == "Recorded: not played."
    ended = discord.shown("The match was cancelled")
    assert ended["id"] == match["id"]
    assert ended["components"] == []
    assert "rating 1516.00" in discord.command(ANN, "rank")


def test_a_bot_that_was_killed_takes_up_who_waits_and_what_was_said(evening):
    discord, bot = evening.discord, evening.bot
    match = begin_match(discord, ANN, BOB)
    said = f"Team {side_of(match, BOB)} won"
    discord.press(ANN, match, said)
    assert discord.command(EVE, "queue").startswith("You are in the queue.")
    bot.end()
    discord.post(CHANNEL, person(JOE, "joe"), {"content": "is the bot away?"})
    bot.start()
    assert discord.press(BOB, now(discord, match), said).startswith("Recorded")
    assert discord.shown(f"<@{BOB}> 1484.00 → 1501.4")["id"] == match["id"]  # 32 × (1 − 1/(1 + 10^(32/400))) = 17.47
    assert discord.command(EVE, "queue").startswith("You are in the queue already")
    assert discord.command(JOE, "queue").startswith("You are in the queue.")
    offer = discord.shown("A match is found")
    assert len(discord.in_channel(BOARD)) == 1, "the standings have one message"
    assert bot.end(signal.SIGINT) == 130, bot.told()
    bot.start()
    discord.press(EVE, offer, "Decline")
    discord.until(lambda: offer["id"] not in discord.messages)
    told = discord.shown(f"<@{EVE}>, you are no longer in the queue")
    assert "declined" in told["content"]
    assert re.search(r"You can try again <t:\d+:R>", discord.command(EVE, "queue")), "a penalty says until when"
    assert discord.command(JOE, "leave") == "You left the queue."
    discord.until(lambda: not [one for one in discord.in_channel(CHANNEL) if "waits in" in one["content"]])
    assert discord.command(JOE, "leave") == "You are not in the queue."


def test_the_gateway_may_drop_the_bot(evening):
    discord = evening.discord
    discord.run(discord.drop())
    assert "rating" in discord.command(ANN, "rank")


def test_a_user_learns_that_the_bot_may_not_write_and_does_not_wait_in_vain(evening):
    discord = evening.discord
    with discord.forbidding():
        assert discord.command(BOB, "queue").startswith("I may not write in my channel.")
    assert discord.command(BOB, "leave") == "You are not in the queue."


def test_a_rate_limit_of_discord_delays_an_answer_and_loses_nothing(evening):
    discord = evening.discord
    discord.limited = 2
    assert discord.command(BOB, "queue").startswith("You are in the queue.")
    assert discord.limited == 0
    notice = discord.shown(f"<@{BOB}> waits in **duels**.")
    assert discord.press(ANN, notice, "Leave") == "Only the player who waits can leave."
    assert discord.press(BOB, notice, "Leave") == "You left the queue."


def test_the_server_of_a_match_is_told_to_its_players_alone(evening):
    discord = evening.discord
    discord.messages.pop(begin_match(discord, ANN, BOB)["id"])  # a moderator tidies up
    assert discord.command(ANN, "queue").startswith("You are in a match.")
    match = discord.shown("The match begins")
    assert discord.press(ANN, match, "Where do I play?").startswith("No server is announced")
    (live,) = request_json(evening.admin, "GET", "/v1/ladders/arena/live")["items"]
    teams = [{"players": [one["player"] for one in team]} for team in live["teams"]]
    connection = {"address": "203.0.113.7:7777", "tokens": {f"discord:{ANN}": "7f3a"}}
    request_json(
        evening.admin, "PUT", f"/v1/ladders/arena/live/{live['match_id']}", {"teams": teams, "connection": connection}
    )
    assert discord.press(ANN, match, "Where do I play?") == "Connect to `203.0.113.7:7777` with `7f3a`."
    assert discord.press(BOB, match, "Where do I play?") == "Connect to `203.0.113.7:7777`."
    assert discord.press(JOE, match, "Where do I play?") == "You do not play this match."
    close = {"teams": [{"place": 1 if f"discord:{ANN}" in team["players"] else 2} for team in teams]}
    request_json(evening.admin, "POST", f"/v1/ladders/arena/live/{live['match_id']}/close", close)
    assert discord.shown(f"<@{ANN}> 1498.53 →")["id"] == match["id"], "a game server reported it"


def test_an_operator_links_a_discord_user_to_a_player_of_the_ladder(evening):
    discord = evening.discord
    teams = [{"place": 1, "players": [{"player": "zoë"}]}, {"place": 2, "players": [{"player": "*max*"}]}]
    report = {"id": "old-1", "played_at": "2026-01-01T12:00:00Z", "teams": teams}
    late = {"matches": [report], "reason": "from the old bot"}
    request_json(evening.admin, "POST", "/v1/ladders/arena/late-matches", late)
    user = 200000000000000099
    for old, new in (("zoë", f"discord:{user}"), (f"discord:{user}", "zoë")):
        request_json(evening.admin, "POST", f"/v1/players/{old}/rename", {"to": new})
    assert "On the ladder the name is `zoë`." in discord.command(user, "rank")
    match = begin_match(discord, user, JOE)
    said = f"Team {side_of(match, user)} won"
    discord.press(user, match, said)
    assert discord.press(JOE, now(discord, match), said).startswith("Recorded")
    assert "zoë" in discord.shown("zoë")["content"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"TOKEN": "wrong"}, "error: EVENMATCH_DISCORD_TOKEN is refused by Discord"),
        ({"CHANNEL": "77"}, "error: EVENMATCH_DISCORD_CHANNEL is 77, which the bot cannot see"),
        ({"QUEUE": "no"}, "error: evenmatch refuses the key, ladder or queue of the bot"),
    ],
    ids=lambda value: "".join(value) if isinstance(value, dict) else "",
)
def test_a_bot_that_cannot_work_says_which_setting_is_wrong(evening, changed, said):
    ended = evening.bot.attempt({f"EVENMATCH_DISCORD_{name}": value for name, value in changed.items()})
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_revoked_key_and_a_server_that_is_away_are_a_sentence_for_the_user(evening):
    discord, bot, served = evening.discord, evening.bot, evening.served
    request_json(evening.admin, "DELETE", f"/v1/keys/{evening.keys['queue'][0].key}")
    told = discord.command(ANN, "rank")
    assert told == "The ranking server does not accept the bot's key for this. Please tell an operator."
    served.kill()
    assert discord.command(ANN, "queue") == "The ranking server does not answer. Please try again in a minute."
    assert bot.end(signal.SIGTERM) == 0, bot.told()
    assert "Traceback" not in bot.told()
