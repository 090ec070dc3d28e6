"""The laws that every rating system obeys: those of the package, found by name, and a user's own file."""

import re
import subprocess
import sys
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenmatch import rules, systems
from evenmatch.errors import BadParameterError, InputError, UnknownNameError
from evenmatch.history import Columns, History, renumbered
from evenmatch.options import Choice, Flag, Number, Numbers, options_of
from evenmatch.players.headlines import explain
from evenmatch.rating import changes
from evenmatch.systems import forecasts, loop
from evenmatch.systems.system import Change, Rules, build, timeless

OWN_FILE = Path(__file__).parents[2] / "docs" / "how-to" / "league_points.py"
ALL = [*systems.names(), str(OWN_FILE)]
VARIANTS = [(name, preset) for name in ALL for preset in (None, *systems.find(name).presets)]
DAY = 86_400_000_000
ROWS = 10_000

every_system = pytest.mark.parametrize("name", ALL, ids=lambda name: Path(name).stem)
every_variant = pytest.mark.parametrize(
    ("name", "preset"), VARIANTS, ids=lambda part: Path(part).stem if part else "default"
)
RULES_OF_TIME = {"scorefactor": {"inactivity_rot": True}, "elommr": {"drift": 7.5}}  # which no preset turns on
in_time = pytest.mark.parametrize(
    ("name", "preset", "values"),
    [(*variant, {}) for variant in VARIANTS] + [(name, None, values) for name, values in RULES_OF_TIME.items()],
    ids=lambda part: Path(part).stem if isinstance(part, str) else "-".join(part or ["default"]),
)
fuzz = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def random_history(seed, teams, rows=ROWS):
    """A fuzzed history of about so many rows: uneven teams, ties, quitters, idle years, dead heats in time, refunds."""
    rng = np.random.default_rng(seed)
    people = int(rng.choice([12, 60, 4000]))
    most = 4 if people > 12 else 2
    sides = np.full(rows, teams) if teams else rng.integers(2, 4 if people == 12 else 7, rows)
    team_start = np.concatenate(([0], np.cumsum(sides)))
    sizes = np.where(rng.random(team_start[-1]) < 0.5, 1, rng.integers(1, most + 1, team_start[-1]))
    slot_start = np.concatenate(([0], np.cumsum(sizes)))
    matches = int(np.searchsorted(slot_start[team_start], rows))
    team_start = team_start[: matches + 1]
    sides, slot_start = sides[:matches], slot_start[: team_start[-1] + 1]
    players = np.diff(slot_start[team_start])
    player = np.concatenate([rng.choice(people, count, replace=False) for count in players])
    gaps = rng.choice([0, 1, 60_000_000, DAY, 400 * DAY], matches, p=[0.1, 0.2, 0.4, 0.28, 0.02])
    places = np.where(np.repeat(rng.random(matches) < 0.1, sides), 1, rng.integers(1, 5, team_start[-1]))
    slots = len(player)
    seconds = np.where(rng.random(slots) < 0.7, 900.0, rng.choice([0.0, 60.0, 119, 120, 450.5, 1200], slots))
    timed = np.repeat(rng.random(matches) < 0.8, players)
    seconds = np.where(timed, seconds, np.nan)
    return History(
        Columns(
            time=np.cumsum(gaps),
            team_start=team_start,
            place=places,
            team_score=rng.choice([0.0, 0.0, 1.0, 7.0, 250.0], team_start[-1]),
            slot_start=slot_start,
            player=player,
            score=rng.choice([-1e3, -1.0, 0.0, 0.0, 3.0, 1e6], slots),
            seconds=seconds,
            performance=np.where(rng.random(slots) < 0.5, np.nan, rng.uniform(-1, 1, slots)),
            quit=rng.random(slots) < 0.1,
            duration=np.fmax.reduceat(seconds, slot_start[team_start[:-1]]),
            keep=np.full(slots, True),
            pool=np.zeros(matches),
            ladder=rng.integers(1, 4, matches),
        )
    ), people


def in_context(history, seed):
    """The same history with two context columns, of three values and of five, which are lengths; players have seeds."""
    rng = np.random.default_rng(seed)
    values = rng.integers([0, 3], [3, 8], (len(history), 2))
    seeds = np.where(rng.random(history.players) < 0.3, np.nan, rng.integers(1, 33, history.players))
    history, first = History(history.columns._replace(entry=seeds[history.columns.player])), history.ladders + 1
    return history.with_context(first + values, {first + value: f"best of {value}" for value in range(3, 8)})


def replayed(by, history, state, journal=False):
    return loop.replay(by, history, state, journal=journal)


def same(a, b):
    """Equal bit for bit."""
    return a.tobytes() == b.tobytes()


@every_variant
@fuzz
@given(seed=seeds)
def test_everything_stays_finite_and_expectations_are_probabilities(name, preset, seed):
    by = rules(name, preset)
    history, people = random_history(seed, by.system.teams)
    assert not list(by.system.refusals(history.columns, by.parameters))
    result = replayed(by, history, by.newcomers(people), journal=True)
    for field in by.system.state.names:
        assert np.isfinite(result.state[field]).all(), field
    assert np.isfinite(result.expected).all()
    assert ((result.expected >= 0) & (result.expected <= 1)).all()
    per_match = np.add.reduceat(result.expected, history.columns.team_start[:-1])
    assert per_match == pytest.approx(np.diff(history.columns.team_start) / 2)


@every_system
@fuzz
@given(seed=seeds, cuts=st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_split_replaying_the_parts_in_turn_equals_replaying_the_whole(name, seed, cuts):
    by = rules(name)
    history, people = random_history(seed, by.system.teams)
    history = in_context(history, seed)
    whole = replayed(by, history, by.newcomers(people))
    ends = sorted(int(cut * len(history)) for cut in cuts)
    state, ladders, expected = by.newcomers(people), by.ladders(history.ladders), []
    offsets = by.offsets(history.offsets)
    for start, stop in zip([0, *ends], [*ends, len(history)], strict=True):
        part = loop.replay(by, history.take(slice(start, stop)), state, ladders, offsets)
        state, ladders, offsets = part.state, part.ladders, part.offsets
        expected.append(part.expected)
    assert same(state, whole.state)
    assert same(ladders, whole.ladders)
    assert same(offsets, whole.offsets)
    assert same(np.concatenate(expected), whole.expected)


@every_system
@fuzz
@given(seed=seeds)
def test_locality_nobody_outside_a_match_is_touched_and_numbers_of_players_do_not_matter(name, seed):
    by = rules(name)
    history, people = random_history(seed, by.system.teams, rows=2000)
    history = in_context(history, seed)
    ladders, offsets = by.ladders(history.ladders), by.offsets(history.offsets)
    first = loop.replay(by, history.take(slice(0, len(history) // 2)), by.newcomers(people), ladders, offsets)
    before = first.state
    last = history.take(slice(len(history) // 2, len(history) // 2 + 1))
    rated = loop.replay(by, last, before, first.ladders, first.offsets)
    after = rated.state
    outside = np.setdiff1d(np.arange(people), last.columns.player)
    assert same(after[outside], before[outside])
    elsewhere = np.setdiff1d(np.arange(1, history.ladders + 1), [*last.columns.ladder, *last.columns.context])
    assert same(rated.ladders[elsewhere], first.ladders[elsewhere])
    untouched = np.setdiff1d(np.arange(history.offsets), last.columns.offset)
    assert same(rated.offsets[untouched], first.offsets[untouched])

    other = np.random.default_rng(seed).permutation(people)
    renamed = History(history.columns._replace(player=other[history.columns.player]))
    whole = replayed(by, history, by.newcomers(people)).state
    assert same(replayed(by, renamed, by.newcomers(people)).state[other], whole)


@every_system
@fuzz
@given(seed=seeds)
def test_containment_rows_can_be_gathered_replayed_and_scattered(name, seed):
    by = rules(name)
    history, people = random_history(seed, by.system.teams, rows=2000)
    history = in_context(history, seed)
    before = replayed(by, history, by.newcomers(people))
    match = history.take(slice(len(history) - 1, None))
    whole = loop.replay(by, match, before.state, before.ladders, before.offsets)
    rows, local = np.unique(match.columns.player, return_inverse=True)
    under, offset = np.unique(match.columns.offset, return_inverse=True)
    columns, former = renumbered(match.columns)
    alone = History(columns._replace(player=local, offset=offset))
    chosen = [0, *former]
    gathered = loop.replay(by, alone, before.state[rows], before.ladders[chosen], before.offsets[under])
    assert same(gathered.state, whole.state[rows])
    assert same(gathered.ladders, whole.ladders[chosen])
    assert same(gathered.offsets, whole.offsets[under])


@fuzz
@given(seed=seeds)
def test_a_refunded_match_changes_nothing_that_is_known_about_contexts(seed):
    by = rules("even")
    history, people = random_history(seed, None, rows=2000)
    history = in_context(history, seed)
    before = replayed(by, history, by.newcomers(people))
    match = history.take(slice(len(history) - 1, None))
    refunded = History(match.columns._replace(keep=np.zeros(len(match.columns.player), bool)))
    after = loop.replay(by, refunded, before.state, before.ladders, before.offsets)
    assert same(after.ladders, before.ladders)
    assert same(after.offsets, before.offsets)
    one = match.columns.keep.copy()
    one[1:] = False
    after = loop.replay(by, History(match.columns._replace(keep=one)), before.state, before.ladders, before.offsets)
    moved = np.flatnonzero(after.offsets != before.offsets)
    assert set(moved) == set(match.columns.offset[:2])


@fuzz
@given(seed=seeds)
def test_other_numbers_for_context_values_change_no_rating(seed):
    by = rules("even")
    history, people = random_history(seed, None, rows=2000)
    named = in_context(history, seed)
    context, first = named.columns.context.reshape(len(history), 2), history.ladders + 1
    other = np.concatenate((np.arange(first), first + np.random.default_rng(seed).permutation(8)))
    lengths = {other[first + value]: f"best of {value}" for value in range(3, 8)}
    renamed = named.with_context(other[context], {int(record): name for record, name in lengths.items()})
    whole, again = (replayed(by, one, by.newcomers(people)) for one in (named, renamed))
    assert same(again.state, whole.state)
    assert same(again.expected, whole.expected)
    plain = replayed(by, history, by.newcomers(people))
    assert not same(plain.state, whole.state)


# Systems that give the first-listed team of a match of two a role: it attacks, or the ladder learns its advantage.
FIRST_SIDE = {("trophies", None), *(("even", preset) for preset in (None, *systems.find("even").presets))}
# Parameters under which the first-listed team counts as stronger, and under which matches are rated from a part of the
# comparisons.
LISTED = {"advantage": 5.0, "rivals": 3, "sweeps": 1}
as_listed = pytest.mark.parametrize(
    ("name", "preset", "values"),
    [(*variant, {}) for variant in VARIANTS]
    + [
        (name, None, {parameter: value})
        for name in ALL
        for parameter, value in LISTED.items()
        if parameter in options_of(systems.find(name).parameters)
    ],
    ids=lambda part: Path(part).stem if isinstance(part, str) else "-".join(part or ["default"]),
)
EXACT = {"wager", "planeswalker", "trophies", "league_points"}  # points and cents, whose sums have no rounding


def keeps_first(name, preset, values, teams):
    """Whether the first-listed team of a match of this many teams must stay the first for nothing to change."""
    return "advantage" in values or (teams == 2 and (name, preset) in FIRST_SIDE)


def relisted(history, rng, keeps_first):
    """The matches with their teams listed in another order, and the players of each team; the order of teams and slots.

    keeps_first  (teams): whether the first team of a match of this many stays the first
    """
    c = history.columns
    teams = np.diff(c.team_start)
    match_of, key = np.repeat(np.arange(len(teams)), teams), rng.random(len(c.place))
    key[c.team_start[:-1][[keeps_first(count) for count in teams.tolist()]]] = -1
    order = np.lexsort((key, match_of))
    sizes = np.diff(c.slot_start)
    slots = np.lexsort((rng.random(len(c.player)), np.argsort(order)[np.repeat(np.arange(len(sizes)), sizes)]))
    by_team = {name: getattr(c, name)[order] for name in ("place", "team_score")}
    by_slot = {name: getattr(c, name)[slots] for name in ("player", "score", "seconds", "performance", "quit", "keep")}
    slot_start = np.concatenate(([0], np.cumsum(sizes[order])))
    return History(c._replace(slot_start=slot_start, **by_team, **by_slot)), order, slots


def assert_near(told, known):
    """Equal up to rounding: sums in another order differed by 2e-12 at most."""
    for field in known.dtype.names:
        np.testing.assert_allclose(told[field], known[field], rtol=1e-10, atol=1e-10, err_msg=field)


@as_listed
@fuzz
@given(seed=seeds)
def test_the_order_in_which_a_match_lists_its_teams_and_players_changes_nothing(name, preset, values, seed):
    by, rng = rules(name, preset, **values), np.random.default_rng(seed)
    history, people = random_history(seed, by.system.teams, rows=1000)
    other, order, slots = relisted(history, rng, partial(keeps_first, name, preset, values))
    middle = len(history) // 2
    start = replayed(by, history.take(slice(middle)), by.newcomers(people))
    for at in range(middle, middle + 25):
        match, again = (listed.take(slice(at, at + 1)) for listed in (history, other))
        plain, mixed = (loop.replay(by, listed, start.state, start.ladders, journal=True) for listed in (match, again))
        teams = slice(*history.columns.team_start[at : at + 2])
        players = slice(*history.columns.slot_start[[teams.start, teams.stop]])
        if name in EXACT:
            assert same(mixed.state, plain.state)
        assert_near(mixed.state, plain.state)
        assert_near(mixed.ladders, plain.ladders)
        assert_near(mixed.journal.factors, plain.journal.factors[slots[players] - players.start])
        assert mixed.expected == pytest.approx(plain.expected[order[teams] - teams.start], rel=1e-9, abs=1e-9)


@as_listed
@fuzz
@given(seed=seeds)
def test_teams_of_equals_at_the_same_place_come_out_equal(name, preset, values, seed):
    by, rng = rules(name, preset, **values), np.random.default_rng(seed)
    history, people = random_history(seed, by.system.teams, rows=500)
    rated = replayed(by, history, by.newcomers(people))
    last = history.take(slice(len(history) - 1, None)).columns
    teams = 1 if by.system.teams == 2 else len(last.place)
    sizes = np.diff(last.slot_start)[:teams]
    twins = np.repeat(np.arange(teams), 2)  # each team meets another one like it
    slots = np.concatenate([np.arange(last.slot_start[team], last.slot_start[team + 1]) for team in twins])
    c = last._replace(
        team_start=np.array([0, 2 * teams]),
        slot_start=np.concatenate(([0], np.cumsum(np.repeat(sizes, 2)))),
        player=np.arange(len(slots)),
        **{column: getattr(last, column)[twins] for column in ("place", "team_score")},
        **{column: getattr(last, column)[slots] for column in ("score", "seconds", "performance", "quit", "keep")},
    )
    match, order, moved = relisted(History(c), rng, lambda _: False)
    if keeps_first(name, preset, values, 2 * teams):
        return
    for start in (rated.state[last.player[slots]], by.newcomers(len(slots))):
        result = loop.replay(by, match, start, rated.ladders, journal=True)
        number_of = np.argsort(slots, kind="stable")
        assert_near(result.state[number_of[0::2]], result.state[number_of[1::2]])
        factors = result.journal.factors[np.argsort(moved)][number_of]
        assert_near(factors[0::2], factors[1::2])
        twin_scores = result.expected[np.argsort(order)]
        assert twin_scores[0::2] == pytest.approx(twin_scores[1::2], rel=1e-9, abs=1e-9)


def test_a_match_that_changes_nobody_teaches_nothing_about_the_ladder():
    by = rules("even")
    history, people = random_history(3, None, rows=400)
    rated = replayed(by, history, by.newcomers(people))
    kept = History(history.columns._replace(keep=np.zeros(len(history.columns.player))))
    again = loop.replay(by, kept, rated.state, rated.ladders)
    assert same(again.ladders, rated.ladders)
    assert same(again.state, rated.state)
    assert not same(loop.replay(by, history, rated.state, rated.ladders).ladders, rated.ladders)


@every_system
@fuzz
@given(seed=seeds)
def test_the_same_history_gives_the_same_bits_with_and_without_a_journal(name, seed):
    by = rules(name)
    history, people = random_history(seed, by.system.teams)
    start = by.newcomers(people)
    plain, told = replayed(by, history, start), replayed(by, history, start, journal=True)
    assert same(start, by.newcomers(people))  # the state that went in is as it was
    assert same(plain.state, told.state)
    assert same(plain.expected, told.expected)


@every_system
@fuzz
@given(seed=seeds)
def test_forecasts_change_nothing_and_are_where_the_expected_scores_come_from(name, seed):
    by = rules(name)
    history, people = random_history(seed, by.system.teams, rows=2000)
    listed = []
    start = by.newcomers(people)
    told = loop.replay(by, history, start, watch=lambda first, stop, forecasts: listed.append(forecasts.copy()))
    plain = replayed(by, history, start)
    assert same(plain.state, told.state)
    assert same(plain.ladders, told.ladders)
    assert same(plain.expected, told.expected)
    win, draw = np.concatenate(listed).T
    first = history.columns.team_start[:-1]
    teams = np.diff(history.columns.team_start)
    pairs = np.cumsum(teams * (teams - 1) // 2)
    chosen = np.flatnonzero(teams == 2)
    row = pairs[chosen] - 1
    assert plain.expected[first[chosen]] == pytest.approx(win[row] + draw[row] / 2, abs=1e-12)


@every_system
@fuzz
@given(seed=seeds)
def test_the_journal_is_a_chain_from_newcomer_to_the_final_rating(name, seed):
    by = rules(name)
    history, people = random_history(seed, by.system.teams)
    result = replayed(by, history, by.newcomers(people), journal=True)
    order = np.argsort(history.columns.player, kind="stable")
    player = history.columns.player[order]
    before, after = result.journal.before[order], result.journal.after[order]
    first = np.diff(player, prepend=-1) != 0
    last = np.append(first[1:], True)
    assert (before[first] == by.newcomers(1)["rating"]).all()
    assert (before[~first] == after[:-1][~first[1:]]).all()
    assert (after[last] == result.state["rating"][player[last]]).all()


@every_system
@fuzz
@given(seed=seeds)
def test_a_slot_without_keep_is_put_back_and_changes_nothing_for_the_others(name, seed):
    by = rules(name)
    history, people = random_history(seed, by.system.teams, rows=500)
    state = replayed(by, history, by.newcomers(people)).state
    match = history.take(slice(len(history) - 1, None))
    slots = np.arange(len(match.columns.player))
    refunded = slots == seed % len(slots)
    kept = History(match.columns._replace(keep=~refunded))
    plain, put_back = replayed(by, match, state), replayed(by, kept, state, journal=True)
    player = match.columns.player
    assert same(put_back.state[player[refunded]], state[player[refunded]])
    assert same(put_back.state[player[~refunded]], plain.state[player[~refunded]])
    assert (put_back.journal.after[refunded] == put_back.journal.before[refunded]).all()


@every_system
@fuzz
@given(seed=seeds)
def test_pair_gives_both_sides_of_the_same_odds(name, seed):
    by = rules(name)
    history, people = random_history(seed, by.system.teams, rows=1000)
    state = replayed(by, history, by.newcomers(people)).state
    rng = np.random.default_rng(seed)
    line_up = rng.choice(people, int(rng.integers(2, 6)), replace=False).tolist()
    a, b = line_up[:1], line_up[1:]
    now = int(history.columns.time[-1]) + 50 * DAY
    win, draw = forecasts.odds(by, state, a, b, False, now)
    loss, drawn = forecasts.odds(by, state, b, a, False, now)
    assert 0 <= win <= 1
    assert 0 <= draw <= 1 - win
    assert drawn == pytest.approx(draw)
    assert loss == pytest.approx(1 - win - draw)
    at_home, level = forecasts.odds(by, state, a, b, True, now)
    assert 0 <= at_home <= 1
    assert 0 <= level <= 1 - at_home


def drawn(system, rng):
    """The system with random parameters, or None where they do not go together."""
    values = {}
    for parameter, option in options_of(system.parameters).items():
        match option:
            case Number(decimals=None):
                values[parameter] = float(rng.uniform(option.low, option.high))
            case Number():
                values[parameter] = round(float(rng.uniform(option.low, min(option.high, 1e4))), option.decimals)
            case Choice():
                values[parameter] = str(rng.choice(option.choices))
            case Flag():
                values[parameter] = bool(rng.integers(2))
            case Numbers():
                values[parameter] = option.default
    try:
        return Rules(system, build(system.name, system.parameters, values), None)
    except BadParameterError:
        return None


def asked(by, rng, count):
    """Unequal ratings to start from: a newcomer's, near to it, far above, and with many decimals."""
    first = float(by.newcomers(1)["rating"][0])
    above = rng.choice([0.0, 0.005, 0.015, 1.0, 250.5, 3000.0], count) + rng.choice([0.0, 1.0], count) * rng.random(
        count
    )
    return first + above


@every_variant
@fuzz
@given(seed=seeds)
def test_starting_at_a_newcomers_rating_makes_a_newcomer(name, preset, seed):
    rng, given = np.random.default_rng(seed), rules(name, preset)
    for by in (given, *filter(None, (drawn(given.system, rng) for _ in range(20)))):
        newcomers = by.newcomers(2)
        begun = by.system.start_at(float(newcomers["rating"][0]), by.parameters)
        assert same(np.array(begun, by.system.state), newcomers[0])
        assert same(by.starting(newcomers["rating"]), newcomers)


@every_variant
@fuzz
@given(seed=seeds)
def test_a_starting_rating_is_shown_and_is_the_same_alone_and_among_many(name, preset, seed):
    by, rng = rules(name, preset), np.random.default_rng(seed)
    ratings = asked(by, rng, 40)
    state = by.starting(ratings)
    shown = ratings
    if by.system.name == "wager":  # whole cents
        cent = Decimal("0.01")
        shown = [float(Decimal(repr(rating)).quantize(cent, ROUND_HALF_UP)) for rating in ratings.tolist()]
    assert state["rating"].tolist() == list(shown)
    for row, rating in enumerate(ratings.tolist()):
        assert same(state[row], np.array(by.system.start_at(rating, by.parameters), by.system.state))
    for field in ("games", "last_played", "deviation", "volatility"):
        if field in state.dtype.names:
            assert (state[field] == by.newcomers(1)[field]).all(), field


@every_variant
def test_a_starting_rating_out_of_range_is_refused_with_its_value(name, preset):
    by = rules(name, preset)
    assert len(by.starting(np.empty(0))) == 0
    fine = by.newcomers(1)["rating"][0]
    for wrong in (float("nan"), float("inf"), -float("inf"), 1e13, -1e13, 1e300):
        with pytest.raises(InputError) as error:
            by.system.start_at(wrong, by.parameters)
        assert f"starting rating {wrong!r}: expected a number from " in str(error.value)
        with pytest.raises(InputError, match="starting rating"):
            by.starting(np.array([fine, wrong]))


@every_variant
@pytest.mark.parametrize("gap", [0.5, 30.0, 3000.0])
def test_of_two_who_start_apart_the_higher_one_is_expected_to_win_more(name, preset, gap):
    by = rules(name, preset)
    start = by.newcomers(1)["rating"][0]
    state = by.starting(np.array([start, start + gap]))
    # Either is listed first in turn: with trophies an attacker has less than half against an equal.
    (low, drawn_by_low), (high, drawn_by_high) = (
        forecasts.odds(by, state, [own], [1 - own], True, 50 * DAY) for own in range(2)
    )
    assert high + drawn_by_high / 2 > low + drawn_by_low / 2
    played, _ = random_history(1, by.system.teams, rows=20)
    match = played.take(slice(0, 1))
    size = len(match.columns.player)
    match = History(match.columns._replace(player=np.arange(size)))
    after = replayed(by, match, by.starting(start + gap * (np.arange(size) % 2))).state
    assert np.isfinite(after["rating"]).all()


def played_and_started(by, seed):
    """A state of players whose last matches were at many times, some newcomers, and some who only started."""
    history, people = random_history(seed, by.system.teams, rows=1000)
    state = by.starting(asked(by, np.random.default_rng(seed), people + 5))
    state[people : people + 2] = by.newcomers(2)
    return replayed(by, history, state).state, history, people


@in_time
@fuzz
@given(seed=seeds)
def test_as_of_a_time_is_a_copy_in_which_only_who_has_played_until_then_differs(name, preset, values, seed):
    by = rules(name, preset, **values)
    state, history, people = played_and_started(by, seed)
    kept = state.copy()
    for now in (*np.quantile(history.columns.time, [0, 0.5, 1]).astype(np.int64).tolist(), 500_000 * DAY):
        seen = by.system.as_of(state, now, by.parameters)
        assert same(state, kept)
        assert not np.shares_memory(seen, state)
        assert seen.dtype == state.dtype
        assert same(seen[people:], state[people:])
        if by.system.as_of is timeless:
            assert same(seen, state)
            continue
        assert same(seen["last_played"], state["last_played"])
        assert same(seen["games"], state["games"])
        still = (state["games"] == 0) | (state["last_played"] >= now)
        assert same(seen[still], state[still])
    assert same(by.system.as_of(state, -DAY, by.parameters), state)
    assert len(by.system.as_of(state[:0], 0, by.parameters)) == 0


@in_time
@fuzz
@given(seed=seeds)
def test_as_of_agrees_with_the_odds_of_a_match_at_that_time_and_changes_nothing_twice(name, preset, values, seed):
    by, rng = rules(name, preset, **values), np.random.default_rng(seed)
    state, history, people = played_and_started(by, seed)
    now = int(history.columns.time[-1]) + int(rng.choice([0, 1, 29, 45, 400])) * DAY + int(rng.integers(DAY))
    seen = by.system.as_of(state, now, by.parameters)
    if "last_played" in state.dtype.names:
        seen["last_played"] = now
    assert same(by.system.as_of(seen, now, by.parameters), seen)
    for _ in range(10):
        line_up = rng.choice(people + 5, int(rng.integers(2, 6)), replace=False).tolist()
        split = int(rng.integers(1, len(line_up)))
        teams = (line_up[:split], line_up[split:], bool(rng.integers(2)), now)
        assert forecasts.odds(by, seen, *teams) == pytest.approx(
            forecasts.odds(by, state, *teams), rel=1e-12, abs=1e-15
        )


@pytest.mark.parametrize("name", ["glicko", "glicko2"])
def test_the_deviation_as_of_a_match_is_what_the_journal_has_before_it_bit_for_bit(name):
    by = rules(name)
    state, history, _ = played_and_started(by, 8)
    now = int(history.columns.time[-1]) + 77 * DAY
    seen = by.system.as_of(state, now, by.parameters)
    assert (seen["deviation"] > state["deviation"])[state["games"] > 0].any()
    for at in range(len(history) - 60, len(history)):
        one = history.take(slice(at, at + 1))
        one = History(one.columns._replace(time=np.array([now])))
        told = replayed(by, one, state, journal=True).journal.factors
        assert same(told["deviation_before"], seen["deviation"][one.columns.player])


@every_variant
def test_every_change_is_explained_in_words_and_factors(name, preset):
    by = rules(name, preset)
    history, people = random_history(3, by.system.teams, rows=600)
    result = replayed(by, history, by.newcomers(people), journal=True)
    names = [f"p{number}" for number in range(people)]
    for match in range(len(history)):
        teams = changes(by, history, result.expected, result.journal, match, names)
        for team, told in zip(teams, explain(by, history.take(slice(match, match + 1)), teams), strict=True):
            for change, explanation in zip(team, told, strict=True):
                assert isinstance(change, Change)
                assert list(change.factors) == [factor.name for factor in by.system.factors]
                assert explanation.headline.startswith(("You", "All"))
                assert explanation.of_another.startswith(("They", "Their", "All"))
                assert not re.search(r"[{}\n]|nan|inf\b", explanation.headline + (explanation.otherwise or ""))


@every_system
def test_a_systems_words_and_declarations_are_complete(name):
    system = systems.find(name)
    assert system.state.names[0] == "rating"
    assert system.title
    assert system.needs
    assert system.source
    assert all(factor.meaning for factor in system.factors)
    for parameter, option in options_of(system.parameters).items():
        assert option.meaning, parameter
        assert option.accepts, parameter
        assert option.read(option.default) == option.default, parameter
        for value in option.search or ():
            option.read(value)  # raises where tuning would look beyond what is accepted
    for preset in system.presets:
        assert rules(name, preset).values() != rules(name).values()


@every_system
def test_wrong_names_and_values_say_what_is_accepted(name):
    with pytest.raises(UnknownNameError, match=r"preset.*'nosuch'"):
        rules(name, "nosuch")
    with pytest.raises(UnknownNameError, match=r"'nosuch'.*known: "):
        rules(name, nosuch=1)
    for parameter, option in options_of(systems.find(name).parameters).items():
        for wrong in ("", "much", float("nan"), float("inf"), -1e12, [[]], b"1"):
            with pytest.raises(BadParameterError) as error:
                rules(name, **{parameter: wrong})
            assert f"{parameter}=" in str(error.value)
            assert option.accepts in str(error.value)


@every_system
def test_rating_stays_the_same_when_the_state_is_larger_than_the_history(name):
    by = rules(name)
    history, people = random_history(5, by.system.teams, rows=300)
    small = replayed(by, history, by.newcomers(people)).state
    large = replayed(by, history, by.newcomers(people + 100)).state
    assert same(large[:people], small)
    assert same(large[people:], by.newcomers(100))


def test_progress_counts_up_to_the_number_of_matches():
    by = rules("battlepoints")
    history, people = random_history(5, None, rows=30_000)
    seen = []
    stepped = loop.replay(by, history, by.newcomers(people), progress=seen.append)
    assert seen == sorted(seen)
    assert len(seen) > 1
    assert seen[-1] == len(history)
    assert same(stepped.state, replayed(by, history, by.newcomers(people)).state)


def test_another_process_finds_the_compiled_kernels_of_the_package_and_of_a_users_file(tmp_path):
    own = tmp_path / "mine.py"
    own.write_text(OWN_FILE.read_text())
    program = f"""
from evenmatch import rules, from_matches, rate, Match, Team
from evenmatch.systems import forecasts, loop
from datetime import datetime
for name in ("battlepoints", {str(own)!r}):
    by = rules(name)
    rate(from_matches([Match("m", datetime(2026, 1, 1), (Team.of("a", place=1), Team.of("b", place=2)))]), by)
    run = loop.engine(by.system).replay
    print(sum(run.stats.cache_hits.values()), sum(run.stats.cache_misses.values()))
"""
    run = [sys.executable, "-c", program]
    outputs = [subprocess.run(run, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)]
    assert outputs[1] == ["1", "0", "1", "0"]


def moved_to(by, state, ratings):
    return by.system.move(state, ratings, by.parameters)


# A system in which only differences of ratings count: all players moved by as much are rated as before, as much lower.
DIFFERENCES = ["elo", "glicko", "glicko2", "trueskill", "wenglin", "prav", "elommr"]
LOWEST = {"wager": 1, "trophies": 0, "battlepoints": 700, "scorefactor": 100, "planeswalker": 0, "league_points": 0}
MOVES = np.array([-0.01, -1.0, -37.5, -400.0, 0.0, 12.25])


@every_variant
@fuzz
@given(seed=seeds)
def test_a_moved_record_shows_the_rating_asked_for_or_the_lowest_and_stays_a_record_of_the_system(name, preset, seed):
    by, rng = rules(name, preset), np.random.default_rng(seed)
    state, _, _ = played_and_started(by, seed)
    kept = state.copy()
    wanted = state["rating"] + rng.choice(MOVES, len(state))
    moved = moved_to(by, state, wanted)
    assert same(state, kept)
    assert not np.shares_memory(moved, state)
    assert moved.dtype == state.dtype
    step = 0.005 if by.system.name == "wager" else 1.0 if getattr(by.parameters, "truncate", False) else 0.0
    lowest = LOWEST.get(by.system.name)
    for own, asked_for, shown in zip(state["rating"], wanted, moved["rating"], strict=True):
        by.system.start_at(float(shown), by.parameters)  # the system can hold it
        if lowest is None or asked_for >= lowest:
            assert abs(shown - asked_for) <= step + 1e-9 * abs(own)
        else:
            assert shown == lowest
    for field in ("games", "last_played", "deviation", "volatility", "outcome", "variance", "weight", "score", "top"):
        if field in state.dtype.names:
            assert same(moved[field], state[field]), field
    assert len(moved_to(by, state[:0], wanted[:0])) == 0


@every_variant
@fuzz
@given(seed=seeds)
def test_nothing_is_lower_than_the_lowest_that_a_system_can_hold(name, preset, seed):
    by = rules(name, preset)
    state, _, _ = played_and_started(by, seed)
    moved = moved_to(by, state, np.full(len(state), -1e11))
    for shown in np.unique(moved["rating"]).tolist():
        by.system.start_at(shown, by.parameters)
    again = moved_to(by, moved, moved["rating"])
    assert same(again["rating"], moved["rating"])


@pytest.mark.parametrize("name", DIFFERENCES)
@pytest.mark.parametrize("change", [-150.0, -0.75])
def test_moving_everybody_equally_is_not_undone_by_the_next_matches(name, change):
    by = rules(name)
    change = change / 100 if name in ("trueskill", "wenglin") else change
    state, history, _ = played_and_started(by, 5)
    moved = moved_to(by, state, state["rating"] + change)
    sizes = np.diff(history.columns.slot_start)
    starts = history.columns.team_start[:-1]
    even = np.maximum.reduceat(sizes, starts) == np.minimum.reduceat(sizes, starts)  # some systems add members up
    whole = np.full(len(history.columns.seconds), np.nan)  # all played all of the match
    later = History(history.columns._replace(time=history.columns.time + history.columns.time[-1], seconds=whole))
    later = later.take(np.flatnonzero(even)[:50])
    plain, lower = (replayed(by, later, start).state["rating"] for start in (state, moved))
    assert (np.abs(plain - state["rating"]) > 1e-6).sum() > 10  # matches that count
    assert lower == pytest.approx(plain + change, abs=1e-6)


def test_wager_is_moved_to_the_cent_that_a_player_would_start_at():
    by = rules("wager")
    ratings = np.concatenate([np.arange(100, 3000) / 100, np.arange(200, 400) / 100 - 0.05, [10.605, 2.675, 1.005]])
    moved = moved_to(by, by.starting(np.full(len(ratings), 40.0)), ratings)
    assert moved["rating"].tolist() == [
        max(1.0, by.system.start_at(max(one, 1.0), by.parameters)[0]) for one in ratings
    ]
