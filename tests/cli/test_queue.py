"""evenmatch queue: make, list and remove queues."""

import json

import pytest

from evenmatch.accounts.audit_trail import Audit
from evenmatch.operations.service import Service
from service.sample_joins import SECOND, evenly, store_joins


@pytest.fixture
def queue_command(run, league):
    def command(*words):
        return run("queue", *words)

    run("ladder", "change", "duel", "--team-size", "3")
    return command


def listed(queue):
    return json.loads(queue("list", "--json").out)


def test_a_queue_is_made_with_the_ladders_team_size_and_listed(queue_command):
    made = queue_command("set", "duel", "ranked")
    assert (made.code, made.out) == (
        0,
        "queue ranked of ladder duel: 3 v 3, accept within 20 s, heartbeat 30 s, a tick each 1 s\n",
    )
    (told,) = listed(queue_command)
    assert (told["queue"], told["policy"]["team_size"], told["rules"]["penalty"]) == ("ranked", 3, 30.0)
    assert "ranked" in queue_command("list").out


def test_what_is_set_again_is_replaced_and_rules_that_are_not_named_stay(queue_command, tmp_path):
    own = tmp_path / "own.toml"
    own.write_text('preset = "quick"\nteam_size = 2\n')
    queue_command("set", "duel", "ranked", "--accept-within", "9", "--heartbeat", "none")
    assert queue_command("set", "duel", "ranked", "--policy", own, "--tick", "0.5").code == 0
    (told,) = listed(queue_command)
    assert (told["policy"]["team_size"], told["policy"]["overdue_after"]) == (2, 120.0)  # of the preset quick
    rules = told["rules"]
    assert (rules["accept_within"], rules["heartbeat"], rules["tick"]) == (9.0, None, 0.5)


def test_a_queue_is_removed(queue_command):
    queue_command("set", "duel", "ranked")
    assert queue_command("remove", "duel", "ranked").out == "queue ranked of ladder duel: removed\n"
    assert listed(queue_command) == []
    assert queue_command("remove", "duel", "ranked").code == 2


def test_a_queue_is_paused_listed_and_resumed(queue_command):
    queue_command("set", "duel", "ranked")
    paused = queue_command("pause", "duel", "ranked", "--message", "Back at 18:00")
    assert paused.out == "queue ranked of ladder duel: paused (Back at 18:00)\n"
    assert "ranked: paused (Back at 18:00)" in queue_command("list").out
    assert listed(queue_command)[0]["paused"] == "Back at 18:00"
    assert json.loads(queue_command("pause", "duel", "ranked", "--json").out)["paused"] == ""
    assert queue_command("resume", "duel", "ranked").out == "queue ranked of ladder duel: resumed\n"
    assert listed(queue_command)[0]["paused"] is None
    assert queue_command("pause", "duel", "rankd").code == 2


def test_an_experiment_is_started_listed_and_stopped(queue_command, tmp_path):
    own = tmp_path / "own.toml"
    own.write_text('preset = "quick"\nmax_odds = 0.8\n')
    queue_command("set", "duel", "ranked")
    assert "queue 'ranked' runs no experiment" in queue_command("stop-experiment", "duel", "ranked").err
    longer = queue_command("experiment", "duel", "ranked", "--policy", "quick", "--washout", "700")
    assert (longer.code, "washout=700: expected less than slice_seconds" in longer.err) == (2, True)
    design = ("--share", "0.25", "--seed", "7", "--slice-seconds", "900", "--washout", "60", "--worth", "0.2")
    started = queue_command("experiment", "duel", "ranked", "--policy", own, *design)
    assert started.code == 0, started.err
    words = "a second policy decides in 25% of the slices of 900 s, seed 7, washout 60 s"
    assert words in started.out
    assert words in queue_command("list").out
    (told,) = listed(queue_command)
    assert told["experiment"]["second"]["max_odds"] == 0.8
    assert (told["experiment"]["second"]["team_size"], told["experiment"]["first"]["max_odds"]) == (3, 0.6)
    assert queue_command("experiment", "duel", "ranked", "--policy", "fair").code == 1
    refused = queue_command("set", "duel", "ranked", "--policy", "fair")
    assert (refused.code, "stop the experiment before" in refused.err) == (1, True)
    stopped = json.loads(queue_command("stop-experiment", "duel", "ranked", "--json").out)
    assert stopped["stopped_at"] is not None
    assert listed(queue_command)[0]["experiment"] is None
    audited = queue_command("audit", "duel", "ranked").out
    assert "Nothing is known yet: at least 10 blocks of slices are needed" in audited


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("experiment duel ranked --policy unfair", "unknown policy 'unfair'"),
        ("experiment duel none --policy quick", "unknown queue 'none'"),
        ("experiment duel ranked --policy quick --share 1.5", "--share 1.5: expected a number from 0 to 1"),
        ("experiment duel ranked --policy quick --seed x", "--seed x: expected a whole number from 0"),
        ("set none ranked", "unknown ladder 'none'"),
        ("set duel ranked --policy unfair", "unknown policy 'unfair'"),
        ("set duel ranked --accept-within soon", "--accept-within soon: expected a number from 1 to 86,400"),
        ("set duel ranked --accept-within 0", "--accept-within 0: expected a number from 1 to 86,400"),
        ("set duel ranked --within 60", "--within and --share are for --policy auto, not for balanced"),
    ],
)
def test_what_is_wrong_is_said_in_words(queue_command, words, told):
    ended = queue_command(*words.split())
    assert (ended.code, ended.out) == (2, "")
    assert told in ended.err
    assert listed(queue_command) == []


def test_a_queue_with_a_target_is_fitted_each_day_until_a_policy_is_set(queue_command):
    made = queue_command("set", "duel", "ranked", "--policy", "auto", "--within", "45", "--share", "0.8")
    assert made.out.endswith("a tick each 1 s, policy fitted each day to four of five within 45 s\n")
    (told,) = listed(queue_command)
    assert (told["rules"]["auto_within"], told["rules"]["auto_share"]) == (45, 0.8)
    assert told["policy"]["even_spread"] == 4.5  # of the preset balanced
    queue_command("set", "duel", "ranked", "--policy", "quick")
    assert listed(queue_command)[0]["rules"]["auto_within"] is None
    queue_command("set", "duel", "ranked", "--policy", "auto")
    (told,) = listed(queue_command)
    assert (told["rules"]["auto_within"], told["policy"]["overdue_after"]) == (90, 120.0)  # the policy so far
    refused = queue_command("set", "duel", "ranked", "--policy", "fair", "--within", "45")
    assert (refused.code, "--within and --share are for --policy auto" in refused.err) == (2, True)
    short = queue_command("set", "duel", "casual", "--policy", "auto", "--within", "1")
    assert "expected a number from 5 to 3,600" in short.err


def test_a_queue_that_too_few_joined_is_not_fitted(queue_command):
    queue_command("set", "duel", "ranked")
    refused = queue_command("fit", "duel", "ranked", "--adopt")
    assert refused.code == 1
    assert "0 players joined queue 'ranked' in the last day; at least 200 are needed" in refused.err


def test_a_queue_is_fitted_explained_and_adopted(queue_command, league):
    queue_command("set", "duel", "ranked", "--team-size", "1")
    with Service.open(str(league)) as service:
        store_joins(service, "duel", evenly(service.clock() - 1200 * SECOND, 1200, 600), first=10_000)
    fitted = queue_command("fit", "duel", "ranked", "--within", "30", "--share", "0.8")
    assert (fitted.code, "Players join at 0.5" in fitted.out) == (0, True)
    adopted = json.loads(
        queue_command("fit", "duel", "ranked", "--within", "30", "--share", "0.8", "--adopt", "--json").out
    )
    assert (adopted["adopted"], adopted["is_kept"]) == (True, True)
    assert "four of five wait" in adopted["explanation"][1]
    assert len(fitted.out.splitlines()) == len(adopted["explanation"])
    assert listed(queue_command)[0]["policy"] == adopted["policy"]
    with Service.open(str(league)) as service:
        entry = Audit(service.database).page("duel")[0]
    assert (entry.action, entry.actor, entry.target) == ("queue.fitted", "operator", "ranked")
    assert entry.body["explanation"] == adopted["explanation"]
