"""Behaviours: each does what it says at dose 1, and nothing at dose 0."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from evenmatch import rules
from evenmatch.errors import UnknownNameError, UsageError
from evenmatch.lab import behaviours
from evenmatch.lab.behaviours import Behaviour
from evenmatch.lab.seasons.games import GAMES
from evenmatch.lab.seasons.season import Season, SeasonSettings

FOLDER = Path(behaviours.__file__).parent
OWN_FILE = str(Path(__file__).parents[2] / "docs" / "how-to" / "celebrator.py")
PLACES = [(name, game) for name in behaviours.names() for game in behaviours.find(name).games]


@cache
def run(name, game, dose=1.0, seed=1, players=160, matches=1200, system="elo", **rule):
    """A season in which one player in eight behaves so, and the behaviour."""
    settings = SeasonSettings(game=game, players=players, matches=matches, seed=seed, culprits=0.125, **rule)
    behaviour = behaviours.find(name)(dose)
    return Season(settings, rules(system), [behaviour]).run(), behaviour


def same(a, b):
    """Whether two seasons are equal in every bit."""
    columns = zip(a.history.columns, b.history.columns, strict=True)
    fields = ("expected", "truth", "before", "after", "waits", "declined", "gone_at")
    pairs = [*columns, *((getattr(a, name), getattr(b, name)) for name in fields)]
    pairs += [pair for x, y in zip(a.snapshots, b.snapshots, strict=True) for pair in zip(x[1:], y[1:], strict=True)]
    return all(x.tobytes() == y.tobytes() for x, y in pairs) and (a.unmatched, a.rounds) == (b.unmatched, b.rounds)


def watched(name, game, look, dose=1.0, **kwargs):
    """A season, and what `look` sees of the behaviour's own slots before each round of matches."""
    seen = []

    class Watched(behaviours.find(name)):
        def prepare(self, season, play, mine):
            seen.append(look(season, play, mine))
            super().prepare(season, play, mine)

    settings = {"players": 160, "matches": 1200} | kwargs
    settings = SeasonSettings(game=game, seed=1, culprits=0.125, **settings)
    return Season(settings, rules("elo"), [Watched(dose)]).run(), np.concatenate(seen)


class Slots:
    """The slots of a season: whose they are, and how the matches ended."""

    def __init__(self, record):
        h, c = record.history, record.history.columns
        self.mine = record.crew[c.player] >= 0
        self.account, self.quit, self.score, self.performance = c.player, c.quit, c.score, c.performance
        self.further = c.player >= record.settings.players
        self.match, self.team = h.slot_match, h.slot_team
        self.won = c.place[self.team] == 1
        self.seconds = c.seconds / c.duration[self.match]
        self.sizes = np.diff(c.slot_start)


def pair_of_seasons(name, game, **kwargs):
    """The slots of the season at dose 1 and at dose 0."""
    return Slots(run(name, game, **kwargs)[0]), Slots(run(name, game, dose=0.0, **kwargs)[0])


def test_every_file_of_the_folder_is_a_behaviour_of_that_name():
    files = {file.stem for file in FOLDER.glob("*.py")} - {"__init__"}
    assert set(behaviours.names()) == files
    assert len(files) >= 17
    assert behaviours.names()[0] == "honest"
    for name in files:
        found = behaviours.find(name)
        assert found.name == name
        assert set(found.games) <= set(GAMES)
        assert all(0 < dose <= 1 for dose in found.doses)
        assert name == "honest" or (found.title, found.does) != (Behaviour.title, Behaviour.does)
        assert name == "honest" or "Cost: " in found.__doc__


def test_an_unknown_name_and_a_file_without_a_behaviour_are_refused(tmp_path):
    with pytest.raises(UnknownNameError, match="rage_quiter"):
        behaviours.find("rage_quiter")
    with pytest.raises(UsageError, match=r"nosuch\.py: No such file.*behaviour"):
        behaviours.find(str(tmp_path / "nosuch.py"))
    for number, text in enumerate(("x = 1", "BEHAVIOUR = 3", "BEHAVIOUR = int")):
        file = tmp_path / f"own{number}.py"
        file.write_text(text)
        with pytest.raises(UsageError, match="defines no BEHAVIOUR"):
            behaviours.find(str(file))


@pytest.mark.parametrize(("name", "game"), PLACES)
def test_at_dose_0_a_season_is_the_honest_season_bit_for_bit(name, game):
    size = {"players": 80, "matches": 250}
    assert same(run(name, game, dose=0.0, **size)[0], run("honest", game, **size)[0])


@pytest.mark.parametrize("name", behaviours.names())
def test_a_seed_is_a_season(name):
    game = behaviours.find(name).games[0]
    size = {"players": 80, "matches": 250}
    first = run(name, game, dose=0.5, **size)[0]
    assert same(run.__wrapped__(name, game, dose=0.5, **size)[0], first)
    assert not same(run(name, game, dose=0.5, seed=2, **size)[0], first)


@pytest.mark.parametrize("game", ["team", "duel", "brawl"])
def test_rage_quitters_leave_matches_that_are_going_badly(game):
    bad, good = pair_of_seasons("rage_quitter", game)
    quitters = bad.mine & bad.quit
    assert bad.quit[bad.mine].mean() > good.quit[good.mine].mean() + 0.2
    assert bad.won[quitters].mean() < 0.15
    assert bad.quit[~bad.mine].mean() < 0.06


def test_early_quitters_leave_after_an_eighth_of_the_match():
    bad, _ = pair_of_seasons("early_quitter", "team")
    assert bad.quit[bad.mine].all()
    assert np.median(bad.seconds[bad.mine]) == pytest.approx(0.125, abs=0.01)
    seconds = run("early_quitter", "team")[0].history.columns.seconds[bad.mine]
    assert seconds.max() < 0.25 * GAMES["team"].duration
    half, _ = run("early_quitter", "team", dose=0.5)
    slots = Slots(half)
    assert slots.quit[slots.mine].mean() == pytest.approx(0.5, abs=0.05)


def test_win_switchers_end_in_the_winning_team():
    bad, good = pair_of_seasons("win_switcher", "team")
    assert (good.sizes == 4).all()
    assert (bad.sizes != 4).sum() > 200
    assert bad.won[bad.mine].mean() > good.won[good.mine].mean() + 0.2
    switched = bad.mine & (bad.seconds <= 0.26) & ~bad.quit
    assert switched.sum() > 100
    assert bad.won[switched].mean() > 0.8


def test_stackers_play_in_a_team_with_their_friends_or_not_at_all():
    record, behaviour = run("stacker", "team")
    slots = Slots(record)
    is_friend_of = np.append(behaviour.friend_of, np.full(len(record.person) - len(behaviour.friend_of), -1))
    host = np.full(len(slots.sizes), -2)
    host[slots.team[slots.mine]] = slots.account[slots.mine]
    with_friend = np.bincount(slots.team, is_friend_of[slots.account] == host[slots.team], len(host)) > 0
    alone = np.bincount(slots.team, slots.mine, len(host)) == 1
    assert with_friend[slots.team[slots.mine]][alone[slots.team[slots.mine]]].all()
    skill = record.state.skill
    friends = behaviour.friend_of >= 0
    assert skill[: len(friends)][friends].mean() > np.mean(skill[: len(friends)]) + 0.4


def test_sandbaggers_lose_half_of_their_matches_on_purpose_and_then_climb():
    size = {"players": 320, "matches": 4800}
    bad, good = pair_of_seasons("sandbagger", "duel", **size)
    record, _ = run("sandbagger", "duel", **size)
    played = np.zeros(len(record.person), np.int64)
    thrown = np.zeros(len(bad.account), np.bool_)
    for slot, account in enumerate(bad.account.tolist()):
        thrown[slot] = bad.mine[slot] and played[account] % 10 < 5
        played[account] += 1
    early = bad.match < 0.6 * len(record.history)
    late = bad.match > 0.7 * len(record.history)
    alone = thrown & ~thrown.reshape(-1, 2)[:, ::-1].ravel()
    assert (alone & early).sum() > 50
    assert bad.won[alone & early].mean() < 0.03
    assert bad.won[bad.mine & late].mean() > good.won[good.mine].mean() + 0.1


def test_smurfs_are_strong_and_play_on_fresh_accounts_after_a_quarter_of_the_season():
    record, behaviour = run("smurf", "team")
    slots = Slots(record)
    persons = np.unique(record.person[record.crew == 0])
    assert len(persons) == 10
    assert record.state.skill[persons].mean() > 0.4
    later = slots.match >= 0.3 * len(record.history)
    assert not slots.further[~later & (slots.match < 0.2 * len(record.history))].any()
    assert slots.further[slots.mine & later].all()
    assert slots.won[slots.further].mean() > 0.52
    assert 15 <= behaviour.judged(record).sum() <= 20  # two accounts each, unless one had too few matches


def test_account_splitters_play_half_of_their_matches_on_each_account():
    record, _ = run("alt_splitter", "team")
    slots = Slots(record)
    assert slots.further[slots.mine].mean() == pytest.approx(0.5, abs=0.04)
    assert len(np.unique(slots.account[slots.further])) == 20
    bad, good = pair_of_seasons("alt_splitter", "team")
    assert bad.mine.sum() == pytest.approx(good.mine.sum(), rel=0.05)


def test_a_further_account_is_judged_once_it_is_placed():
    record, behaviour = run("alt_splitter", "team", dose=0.25, matches=2000)
    judged = behaviour.judged(record)
    further = np.arange(len(record.person)) >= record.settings.players
    assert (judged == (record.crew == 0) & (~further | (record.state.played >= 10))).all()
    assert 0 < (judged & further).sum() < (further & (record.crew == 0)).sum()


def test_idle_hoarders_stop_near_their_best_rank():
    record, behaviour = run("idle_hoarder", "team", matches=2000)
    bad, good = pair_of_seasons("idle_hoarder", "team", matches=2000)
    matches, players = len(record.history), record.settings.players
    late = [(slots.mine & (slots.match > 0.75 * matches)).sum() for slots in (bad, good)]
    assert late[0] < 0.75 * late[1]
    last = np.full(len(record.person), -1)
    np.maximum.at(last, bad.account, bad.match)
    idle = np.flatnonzero((record.crew == 0) & (record.state.played >= 5) & (last < 0.9 * matches))
    assert len(idle) >= 4
    shown = np.sort(record.state.rating[:players])
    percentile = 100.0 * shown.searchsorted(record.state.rating[idle]) / players
    assert np.median(percentile - behaviour.best[idle]) > -5


def test_stat_padders_score_more_and_win_less():
    bad, good = pair_of_seasons("stat_padder", "team", matches=2400)
    assert bad.score[bad.mine].mean() > 1.2 * good.score[good.mine].mean()
    assert bad.performance[bad.mine].mean() > good.performance[good.mine].mean() + 0.2
    assert bad.won[bad.mine].mean() < good.won[good.mine].mean()


@pytest.mark.parametrize("game", ["team", "duel"])
def test_margin_padders_win_by_more(game):
    def margins(dose):
        record, _ = run("margin_padder", game, dose=dose)
        c = record.history.columns
        slots = Slots(record)
        lead = c.team_score - c.team_score.reshape(-1, 2)[:, ::-1].ravel()
        return lead[slots.team[slots.mine & slots.won]].mean()

    assert margins(1.0) > 1.1 * margins(0.0)


def test_queue_dodgers_decline_every_match_in_which_the_rival_is_the_favourite():
    record, dodger = watched("queue_dodger", "team", lambda season, play, mine: play.chance[mine])
    assert record.declined[record.crew == 0].sum() > 200
    assert record.declined[record.crew != 0].sum() == 0
    assert dodger.min() >= 0.5
    honest, chance = watched("queue_dodger", "team", lambda season, play, mine: play.chance[mine], dose=0.0)
    assert honest.declined.sum() == 0
    assert (chance < 0.5).mean() > 0.3


def test_booster_crews_leave_at_the_end_of_matches_that_are_being_won():
    record, behaviour = run("booster_crew", "team")
    slots = Slots(record)
    left = slots.further & slots.quit
    assert left.sum() > 60
    late = left & (slots.seconds > 0.8)
    assert late.sum() > 0.8 * left.sum()  # the others had to leave
    assert slots.won[late].mean() > 0.9
    boosted = np.isin(slots.account, behaviour.boosted)
    assert len(behaviour.boosted) == 5
    assert slots.quit[boosted].mean() < 0.1
    assert np.flatnonzero(behaviour.judged(record)).tolist() == sorted(behaviour.boosted.tolist())
    # They play in the team of the boosted player, and never without.
    friend = behaviour.friend[slots.account]
    team = np.full((len(record.history), len(record.person)), -1)
    team[slots.match, slots.account] = slots.team
    assert (team[slots.match, friend] == slots.team)[slots.further].mean() > 0.99


def test_opposing_crews_give_their_friend_wins_at_an_hour_of_their_own():
    record, behaviour = run("opposing_crew", "duel")
    slots = Slots(record)
    assert slots.further.sum() > 60
    # A friend may have to leave before half-time.
    assert slots.quit[slots.further].mean() > 0.95
    assert slots.won[slots.further].mean() < 0.05
    rival = slots.account.reshape(-1, 2)[:, ::-1].ravel()
    assert (rival == behaviour.friend[slots.account])[slots.further].all()


def test_opposing_crews_leave_only_the_team_against_their_friend():
    record, behaviour = run("opposing_crew", "team")
    bad = Slots(record)
    team = np.full((len(record.history), len(record.person)), -1)
    team[bad.match, bad.account] = bad.team
    friend = team[bad.match, behaviour.friend[bad.account]]
    against = bad.further & (friend >= 0) & (friend != bad.team)
    assert against.sum() > 20
    assert bad.quit[against].all()
    assert bad.quit[bad.further & ~against].mean() < 0.1


def test_win_traders_meet_often_and_win_in_turn():
    record, behaviour = run("win_trader", "duel")
    slots = Slots(record)
    rival = slots.account.reshape(-1, 2)[:, ::-1].ravel()
    trades = slots.mine & (behaviour.partner[slots.account] == rival)
    assert trades.sum() > 100
    for first, second in behaviour.pairs.tolist():
        wins = slots.won[trades & (slots.account == first)]
        assert len(wins) == (trades & (slots.account == second)).sum()
        assert (wins[1:] == wins[:-1]).sum() <= 2  # a winner had to leave
    honest = Slots(run("win_trader", "duel", dose=0.0)[0])
    usual = behaviour.partner[honest.account] == honest.account.reshape(-1, 2)[:, ::-1].ravel()
    assert usual.sum() < trades.sum() / 5


def distance(season, play, mine):
    """How far each own slot is from its rival in a duel, in percentiles."""
    percentile = season.percentile[play.account]
    return np.abs(percentile - percentile.reshape(-1, 2)[:, ::-1].ravel())[mine]


def test_filter_abusers_meet_only_their_neighbours():
    size = {"players": 240, "matches": 2000}
    abusers, narrow = watched("filter_abuser", "duel", distance, **size)
    _, wide = watched("filter_abuser", "duel", distance, dose=0.0, **size)
    assert np.percentile(narrow, 90) < 0.7 * np.percentile(wide, 90)
    assert len(narrow) < len(wide)
    assert abusers.state.skill[np.flatnonzero(abusers.crew == 0)].mean() > 0.4


@pytest.mark.parametrize("game", ["duel", "team"])
def test_upset_attackers_lose_to_everybody_but_the_best_player(game):
    record, behaviour = run("upset_attacker", game)
    slots = Slots(record)
    assert slots.further.sum() > 10
    skilled = record.state.skill[slots.account[slots.further]]
    assert skilled.mean() > 0.3
    wins = slots.further & slots.won
    assert wins.sum() >= 2
    friends = np.flatnonzero(behaviour.judged(record))
    assert len(friends) == 5  # of ten: the others attack
    assert (friends < record.settings.players).all()
    assert not np.isin(record.person[slots.account[slots.further]], friends).any()
    # Those whom they beat were at the top when it happened.
    in_match = np.zeros((len(record.history), 2))
    shown = np.where(slots.further, -np.inf, record.before)
    np.maximum.at(in_match, (slots.match, slots.team % 2), shown)
    beaten = in_match[slots.match, 1 - slots.team % 2][wins]
    assert np.median(beaten) > np.percentile(record.state.rating[: record.settings.players], 85)


def test_several_behaviours_share_the_culprits():
    settings = SeasonSettings(game="team", players=160, matches=400, culprits=0.125)
    crew = [behaviours.find(name)(1.0) for name in ("rage_quitter", "smurf", "honest")]
    record = Season(settings, rules("elo"), crew).run()
    judged = np.stack([behaviour.judged(record) for behaviour in crew])
    assert [behaviour.index for behaviour in crew] == [0, 1, 2]
    assert (judged.sum(0) <= 1).all()
    assert judged.sum(1)[0] == 7
    assert (record.person[judged[1]] < 160).all()


def test_a_players_own_behaviour_of_ten_lines_is_used():
    lines = [line for line in Path(OWN_FILE).read_text().splitlines() if line.strip()]
    assert len(lines) <= 10
    bad, good = pair_of_seasons(OWN_FILE, "team")
    assert bad.quit[bad.mine].mean() > good.quit[good.mine].mean() + 0.05
    assert bad.won[bad.mine & bad.quit].mean() > 0.8
    assert same(run(OWN_FILE, "team", dose=0.0)[0], run("honest", "team")[0])


def test_where_the_longest_team_counts_nobody_is_listed_in_the_team_they_switched_to():
    usual, ruled = Slots(run("win_switcher", "team")[0]), Slots(run("win_switcher", "team", longest_team=True)[0])
    assert (usual.sizes != 4).sum() > 100
    assert (ruled.sizes == 4).all()
    stayed = ruled.mine & ~ruled.quit
    assert (ruled.seconds[stayed] > 0.99).all()
    assert ruled.won[stayed].mean() < 0.6 < usual.won[usual.mine & ~usual.quit].mean()


def test_where_leaving_saves_no_time_those_who_leave_are_reported_to_the_end():
    usual, ruled = Slots(run("rage_quitter", "team")[0]), Slots(run("rage_quitter", "team", full_time=True)[0])
    assert usual.seconds[usual.quit].mean() < 0.9
    assert ruled.quit.sum() > 100
    assert (ruled.seconds == 1.0).all()


def test_without_parties_stackers_are_apart_from_their_friends():
    """Each of three friends is in the stacker's team in all matches of a party, and in few of chance."""
    shares = []
    for rule in ({}, {"solo_queue": True}):
        record, behaviour = run("stacker", "team", **rule)
        slots = Slots(record)
        friend = np.append(behaviour.friend_of, np.full(record.settings.players, -1))[slots.account]
        mine = np.flatnonzero(slots.mine)
        beside = [(friend[slots.team == slots.team[at]] == slots.account[at]).any() for at in mine]
        shares.append(np.mean(beside))
    assert shares[0] > 0.9
    assert shares[1] < 0.5


def test_without_quiet_hours_win_traders_seldom_meet():
    met = []
    for rule in ({}, {"busy_hours": True}):
        record, behaviour = run("win_trader", "duel", **rule)
        account = Slots(record).account.reshape(-1, 2)
        met.append((behaviour.partner[account[:, 0]] == account[:, 1]).sum())
    assert met[0] > 100
    assert met[1] < met[0] / 5, met


def test_a_second_account_counts_once_it_is_listed():
    few, many = (run("alt_splitter", "team", placement=matches) for matches in (10, 35))
    assert same(few[0], many[0])
    listed, later = (behaviour.judged(record) for record, behaviour in (few, many))
    further = np.arange(len(listed)) >= 160
    assert (later & further).sum() < (listed & further).sum()
    assert (many[0].state.played[later & further] >= 35).all()
    assert (listed & ~further).sum() == (later & ~further).sum() == 20
