"""Journals: written, read, replayed; and what is said of damaged ones."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.rivals import line_up, others, proposals

from evenmatch.errors import InputError, UsageError
from evenmatch.lab.queue.journal import JournalWriter, load_journal, read_journal
from evenmatch.lab.queue.run_metrics import summary_of
from evenmatch.lab.queue.runs import MATCHED, OVERTAKEN
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.lab.queue.simulation import first_difference, replay, simulate
from evenmatch.matchmaking.propose import propose
from evenmatch.matchmaking.queue import Queue
from evenmatch.matchmaking.tickets import Member, Ticket, Tickets
from evenmatch.policy import Policy, presets

SECOND = 1_000_000
EVERYTHING = Scenario(
    minutes=1.7,
    arrivals=10,
    players=900,
    parties=(0.6, 0.3, 0.1),
    regions={"eu": 2.0, "us": 1.0},
    patience=40.0,
    return_share=0.8,
    match_seconds=20.0,
    match_seconds_sd=5.0,
    share_newcomers=0.1,
    roles={"tank": 0.6, "healer": 0.6},
    share_avoiding=0.2,
    attributes={"platform": {"pc": 2, "console": 1, "any": 1}},
    vetoes={"dust": 0.3},
)
POLICY = Policy(
    team_size=3,
    roles={"tank": 1},
    max_wait=60.0,
    attributes={"platform": {"values": ["pc", "console"], "worth": 20}},
    maps=("dust", "nuke", "train"),
    vetoes=1,
)


def recorded_run(scenario, matchmaker, policy):
    file = io.StringIO()
    run = simulate(scenario, matchmaker, policy, name="recorded", journal=file)
    return run, file.getvalue().splitlines()


@pytest.fixture(scope="module")
def lines():
    return recorded_run(Scenario(minutes=1, arrivals=3), others()["fifo"].propose, Policy(team_size=2))[1]


@pytest.mark.parametrize("maker", [propose, others()["greedy"].propose, others()["waves"].propose])
def test_the_same_policy_decides_the_same_ticket_for_ticket(maker):
    run, lines = recorded_run(EVERYTHING, maker, POLICY)
    journal = read_journal(lines)
    again = replay(journal, journal.policy, maker)
    assert first_difference(journal, again) is None
    assert len(run.matches) > 20
    for column in ("time", "start", "ticket", "team", "region", "role"):
        assert (getattr(again.matches, column) == getattr(run.matches, column)).all()
    assert (again.fate == run.fate).all()
    ours, theirs = summary_of(again), summary_of(run)
    for name in ("wait_p95", "violations", "cancelled", "expired", "realised_45_55", "favourites_won", "by_decile"):
        assert ours[name] == theirs[name], name


def test_every_column_of_a_ticket_comes_back():
    run, lines = recorded_run(EVERYTHING, others()["fifo"].propose, POLICY)
    again = replay(read_journal(lines), POLICY, others()["fifo"].propose).tickets
    for column in (
        "id",
        "queued",
        "start",
        "player",
        "percentile",
        "rating",
        "within",
        "loose",
        "newcomer",
    ):
        assert (getattr(again, column) == getattr(run.tickets, column)).all(), column
    for column in ("roles", "named_start", "named", "met"):
        assert (getattr(again, column) == getattr(run.tickets, column)).all(), column
    np.testing.assert_array_equal(again.ping, run.tickets.ping)
    assert (again.region_names, again.role_names) == (("eu", "us"), ("tank", "healer"))
    assert np.isinf(again.ping).any()
    choices = [[own.choices[row] for row in own.choice.tolist()] for own in (again, run.tickets)]
    assert choices[0] == choices[1]
    assert len(set(choices[0])) == 6  # three kinds of platforms, with and without a veto


def test_a_journal_reports_its_policy_scenario_and_ticks(lines):
    journal = read_journal(lines)
    assert (journal.name, journal.policy, journal.scenario.arrivals) == ("recorded", Policy(team_size=2), 3)
    assert len(journal.ticks) == 60
    assert [tick.now for tick in journal.ticks][:2] == [SECOND, 2 * SECOND]
    again = Scenario(kind="recorded", times=journal.times, minutes=1, seed=4)
    assert len(simulate(again, others()["fifo"].propose, Policy()).tickets) == sum(
        len(one.joined) for one in journal.ticks
    )


def test_another_policy_decides_otherwise_from_a_tick_on():
    _, lines = recorded_run(Scenario(minutes=1.5, arrivals=4), propose, Policy())
    journal = read_journal(lines)
    run = replay(journal, presets()["quick"])
    at = first_difference(journal, run)
    assert at is not None
    made = set(run.matches.time.tolist())
    for tick in journal.ticks[:at]:
        assert (tick.now in made) == bool(tick.matches)
    assert summary_of(run)["wait_p50"] < summary_of(replay(journal, Policy()))["wait_p50"]


def solo_ticket(number, player, percentile, queued=0):
    return Ticket(id=number, queued=queued, members=(Member(player=player, percentile=percentile, rating=1500.0),))


def written_journal(*ticks, policy):
    """A journal of ticks at 1, 2 … seconds: tickets that join, and who makes the matches."""
    file, queue = io.StringIO(), Queue()
    writer = JournalWriter(file, "by hand", policy, None)
    for at, (joining, maker) in enumerate(ticks, 1):
        joined = Tickets.of(joining)
        queue.join_all(joined)
        decided = maker(queue, at * SECOND, policy)
        queue.leave_all(decided.ticket)
        writer.tick(at * SECOND, joined, np.full(len(joined.player), np.nan), [], decided)
    writer.end()
    return file.getvalue().splitlines()


def nobody(queue, now, policy):
    return proposals(line_up(queue), now, policy, [])


def test_a_player_who_joins_again_leaves_the_ticket_in_which_the_replay_still_holds_them():
    fifo, duel = others()["fifo"].propose, Policy(team_size=1, max_odds=None)
    journal = read_journal(
        written_journal(
            ([solo_ticket(1, 7, 50.0), solo_ticket(2, 8, 50.0)], fifo), ([solo_ticket(3, 7, 50.0)], fifo), policy=duel
        )
    )
    run = replay(journal, duel, nobody)
    assert run.fate.tolist()[0] == OVERTAKEN
    assert summary_of(run)["overtaken"] == 1
    assert summary_of(run)["unmatched"] == 2
    assert first_difference(journal, run) == 0
    assert summary_of(run)["realised_45_55"] is None
    kept = replay(journal, duel, fifo)
    assert (summary_of(kept)["overtaken"], kept.fate[0]) == (0, MATCHED)


def test_the_first_difference_is_reported_by_tick():
    fifo, duel = others()["fifo"].propose, Policy(team_size=1, max_odds=None)
    ticks = [
        ([solo_ticket(1, 1, 50.0), solo_ticket(2, 2, 50.0)], fifo),
        ([solo_ticket(3, 3, 50.0)], nobody),
        ([solo_ticket(4, 4, 90.0)], fifo),
    ]
    journal = read_journal(written_journal(*ticks, policy=duel))
    assert first_difference(journal, replay(journal, duel, fifo)) is None
    assert first_difference(journal, replay(journal, duel, others()["greedy"].propose)) == 2


def test_a_file_is_read_and_what_is_no_text_is_refused(tmp_path, lines):
    path = tmp_path / "queue.jsonl"
    path.write_text("\n".join(lines) + "\n")
    assert len(load_journal(path).ticks) == 60
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not a text file"):
        load_journal(path)
    with pytest.raises(UsageError, match=r"none.jsonl: No such file"):
        load_journal(tmp_path / "none.jsonl")


def joining(lines):
    """The number, from 0, of a line on which at least two tickets join."""
    return next(at for at, line in enumerate(lines) if '"join"' in line and len(json.loads(line)["join"]["id"]) > 1)


def test_a_journal_that_was_cut_off_is_refused(lines):
    for kept in (lines[:-1], lines[:20], lines[:1]):
        with pytest.raises(InputError, match=rf"line {len(kept)}: the journal stops here"):
            read_journal(kept)
    with pytest.raises(InputError, match="journal is empty"):
        read_journal([])
    with pytest.raises(InputError, match="line 30: is not JSON"):
        read_journal([*lines[:29], lines[29][:-5]])


def test_lines_that_are_missing_doubled_or_behind_the_end_are_noticed(lines):
    with pytest.raises(InputError, match="the end states 60 ticks, but the journal has 59"):
        read_journal([*lines[:5], *lines[6:]])
    with pytest.raises(InputError, match="line 7: now is 5000000; expected a time after 5000000"):
        read_journal([*lines[:6], *lines[5:]])
    with pytest.raises(InputError, match="line 63: follows the end"):
        read_journal([*lines, lines[5]])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda head: head.update(journal="other"), "not the header"),
        (lambda head: head.update(format=2), "format=1"),
        (lambda head: head.pop("policy"), "lacks policy"),
        (lambda head: head["policy"].update(team_size=0), "team_size=0"),
        (lambda head: head["scenario"].update(arrivals=-1), "arrivals=-1"),
        (lambda head: head.update(policy=[]), "line 1"),
    ],
)
def test_a_head_that_cannot_be_is_refused(lines, change, words):
    head = json.loads(lines[0])
    change(head)
    with pytest.raises(InputError, match=words) as caught:
        read_journal([json.dumps(head), *lines[1:]])
    assert "line 1" in str(caught.value)


DAMAGES = [
    lambda tick: tick.update(now="soon"),
    lambda tick: tick.update(joyn=[]),
    lambda tick: tick.update(join=[1]),
    lambda tick: tick.update(cancel=[-1]),
    lambda tick: tick.update(cancel=3),
    lambda tick: tick.update(matches=[[[1.5]]]),
    lambda tick: tick["join"].pop("rating"),
    lambda tick: tick["join"]["id"].__setitem__(0, 1.5),
    lambda tick: tick["join"]["id"].__setitem__(0, tick["join"]["id"][1]),
    lambda tick: tick["join"]["player"].__setitem__(0, tick["join"]["player"][1]),
    lambda tick: tick["join"]["id"].pop(),
    lambda tick: tick["join"]["player"].pop(),
    lambda tick: tick["join"]["rating"].pop(),
    lambda tick: tick["join"]["percentile"].__setitem__(0, 100.5),
    lambda tick: tick["join"]["percentile"].__setitem__(0, None),
    lambda tick: tick["join"]["rating"].__setitem__(0, 1e999),
    lambda tick: tick["join"]["loose"].__setitem__(0, 1),
    lambda tick: tick["join"]["skill"].pop(),
    lambda tick: tick["join"]["roles"].__setitem__(0, 1),
    lambda tick: tick["join"].update(regions=["eu", "eu"]),
    lambda tick: tick["join"].update(regions=["eu"]),
    lambda tick: tick["join"].update(regions=["eu"], ping=[[None]] * len(tick["join"]["id"])),
    lambda tick: tick["join"].update(regions=["eu"], ping=[["a"]] * len(tick["join"]["id"])),
    lambda tick: tick["join"].update(regions=["eu"], ping=[[-1]] * len(tick["join"]["id"])),
    lambda tick: tick["join"].update(named=[1]),
    lambda tick: tick["join"].update(choices={"a": 1}),
    lambda tick: tick["join"].update(choices=[{"vetoes": []}]),
    lambda tick: tick["join"].update(choices=[{"attributes": {"mode": [1]}, "vetoes": []}]),
    lambda tick: tick["join"].update(choice=[0] * len(tick["join"]["id"])),
    lambda tick: tick["join"].update(choices=[{"attributes": {}, "vetoes": []}], choice=[0, 0, 0, 0, 0, 0, 0]),
]


@pytest.mark.parametrize("change", DAMAGES)
def test_a_damaged_tick_is_refused_with_its_line_number(lines, change):
    at = joining(lines)
    tick = json.loads(lines[at])
    change(tick)
    with pytest.raises(InputError, match=f"line {at + 1}"):
        read_journal([*lines[:at], json.dumps(tick), *lines[at + 1 :]])


def test_the_journal_of_a_policy_without_limits_is_read_again():
    endless = replace(Policy(team_size=1), overdue_after=None, max_odds=None)
    _, lines = recorded_run(Scenario(minutes=0.2), nobody, endless)
    assert read_journal(lines).policy == endless
