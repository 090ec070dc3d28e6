"""The reference systems against packages that others trust; where one of those is wrong, mpmath proves it here."""

import functools
import importlib
import importlib.util
import math
import random
from pathlib import Path

import glicko2 as glicko2_package
import mpmath
import openskill.models
import pytest
import trueskill as trueskill_package
from scipy.special import ndtr, ndtri

from evenmatch import from_matches, rules
from evenmatch.systems import glicko2, loop
from fast import Fast, as_match
from slow.model import SlowMatch, SlowPlayer, SlowTeam

LENGTH = 600.0
VARIANTS = {
    "plackett_luce": openskill.models.PlackettLuce,
    "bradley_terry_full": openskill.models.BradleyTerryFull,
    "thurstone_mosteller_full": openskill.models.ThurstoneMostellerFull,
}


def package(system, matches, state, **parameters):
    """Mean, deviation and the team's expected score of each player, as the package has them."""
    by = rules(system, **parameters)
    table = from_matches(as_match(match, number) for number, match in enumerate(matches))
    records, names, history = by.newcomers(len(table.player)), table.player_names, table.history
    for at in range(len(names)):
        for field, value in state.get(names[at], {}).items():
            records[field][at] = value
    result = loop.replay(by, history, records)
    expected = dict(zip(history.columns.player, result.expected[history.slot_team], strict=True))
    return {
        names[at]: (float(record["mean"]), float(record["deviation"]), float(expected[at]))
        for at, record in enumerate(result.state)
    }


def twin(system, matches, state, **parameters):
    """The same of the slow twin, which tells shown ratings only."""
    replay = importlib.import_module(f"slow.{system}").replay
    means = replay(matches, state=state, display=0.0, **parameters)
    lower = replay(matches, state=state, display=1.0, **parameters)
    return {
        mean.player: (mean.after, mean.after - low.after, mean.expected) for mean, low in zip(means, lower, strict=True)
    }


@pytest.fixture(params=[package, twin])
def rated(request):
    """Each test that asks for it runs twice: for the package and for its twin."""
    return request.param


def batch(seed, count, *, sides=(2, 2), size=(1, 1), spread=8.0, shortest=None):
    """Matches of players who play once, of unequal means and deviations, with draws; and those players' states."""
    rng = random.Random(seed)
    matches, state = [], {}
    for number in range(count):
        teams = []
        many = rng.randint(*sides)
        for side in range(many):
            players = []
            for seat in range(rng.randint(*size)):
                name = f"{number}.{side}.{seat}"
                state[name] = {"mean": rng.gauss(25, spread), "deviation": 10 ** rng.uniform(-0.5, 1)}
                seconds = None
                if shortest is not None:
                    seconds = rng.choice([None, shortest, LENGTH, rng.uniform(shortest, LENGTH), 1.5 * LENGTH])
                players.append(SlowPlayer(name, seconds=seconds))
            # Places with gaps and ties: two of two tie in a third of all matches.
            teams.append(SlowTeam(rng.randint(1, many + 1), None, players))
        matches.append(SlowMatch(str(number), float(number), None if shortest is None else LENGTH, teams))
    return matches, state


def names_of(match):
    return [[player.name for player in team.players] for team in match.teams]


def share(player):
    return 1.0 if player.seconds is None else min(1.0, max(0.0001, player.seconds / LENGTH))


def assert_same(told, known, rel):
    """Means and deviations, the mean relative to the deviation where that is larger."""
    assert told.keys() == known.keys()
    for name, (mean, deviation) in known.items():
        assert all(math.isfinite(value) for value in told[name]), name
        assert told[name][0] == pytest.approx(mean, rel=rel, abs=rel * deviation), name
        assert told[name][1] == pytest.approx(deviation, rel=rel), name


# --- TrueSkill


def density(x):
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def environment(**parameters):
    """trueskill 0.4.5 with the normal distribution of scipy, which is exact where its own is not."""
    return trueskill_package.TrueSkill(backend=(ndtr, density, ndtri), **parameters)


def by_trueskill(env, matches, state, *, weighted=False, advantage=0.0, min_delta=1e-9):
    known = {}
    for match in matches:
        groups = [tuple(env.create_rating(*state[name].values()) for name in team) for team in names_of(match)]
        # An advantage is as if the first player of the team listed first had so much more skill for this match.
        first = groups[0][0]
        groups[0] = (env.create_rating(first.mu + advantage, first.sigma), *groups[0][1:])
        weights = [[share(p) if weighted else 1 for p in team.players] for team in match.teams]
        after = env.rate(groups, [team.place for team in match.teams], weights, min_delta)
        for team, ratings in zip(names_of(match), after, strict=True):
            known |= {name: (float(r.mu), float(r.sigma)) for name, r in zip(team, ratings, strict=True)}
        name = names_of(match)[0][0]
        known[name] = (known[name][0] - advantage, known[name][1])
    return known


# What a batch is made of, and parameters of both TrueSkills: (ours, theirs)
TRUESKILL = {
    "duels": ({"count": 1500}, {}, {}),
    "duels often drawn": ({"count": 500}, {"draw": 0.4}, {"draw_probability": 0.4}),
    "duels on another scale": (
        {"count": 500, "spread": 3.0},
        {"beta": 2.5, "tau": 0.5, "draw": 0.03},
        {"beta": 2.5, "tau": 0.5, "draw_probability": 0.03},
    ),
    "uneven teams": ({"count": 500, "size": (1, 5)}, {}, {}),
    "free-for-alls": ({"count": 120, "sides": (3, 8)}, {}, {}),
    "three to five uneven teams": ({"count": 100, "sides": (3, 5), "size": (1, 3)}, {}, {}),
}


@pytest.mark.parametrize("made_of", TRUESKILL)
def test_trueskill_agrees_with_the_package_trueskill(rated, made_of):
    matches, state = batch(made_of, **TRUESKILL[made_of][0])
    ours, theirs = TRUESKILL[made_of][1:]

    told = rated("trueskill", matches, state, **ours)

    assert_same(told, by_trueskill(environment(**theirs), matches, state), rel=1e-9)


@pytest.mark.parametrize(("sides", "shortest"), [((2, 2), 0.0), ((3, 4), 60.0)])
def test_trueskill_agrees_with_the_package_trueskill_on_partial_play(rated, sides, shortest):
    matches, state = batch("partial", 120, sides=sides, size=(1, 4), shortest=shortest)

    told = rated("trueskill", matches, state)
    unweighted = rated("trueskill", matches, state, partial_play=False)

    assert_same(told, by_trueskill(environment(), matches, state, weighted=True), rel=1e-8)
    assert_same(unweighted, by_trueskill(environment(), matches, state), rel=1e-9)


@pytest.mark.parametrize("sides", [(2, 2), (3, 4)])
def test_an_advantage_in_trueskill_is_skill_that_the_first_team_has_for_the_match(rated, sides):
    matches, state = batch("home", 100, sides=sides, size=(1, 3))

    told = rated("trueskill", matches, state, advantage=4.0)

    assert_same(told, by_trueskill(environment(), matches, state, advantage=4.0), rel=1e-9)


@pytest.mark.parametrize("advantage", [0.0, -3.0])
def test_trueskill_expects_what_the_normal_lead_and_the_draw_margin_give(rated, advantage):
    matches, state = batch("odds", 300, size=(1, 4))
    env = trueskill_package.TrueSkill(backend="mpmath")

    told = rated("trueskill", matches, state, advantage=advantage)

    for match in matches:
        one, other = names_of(match)
        eps = trueskill_package.calc_draw_margin(env.draw_probability, len(one + other), env)
        c = math.sqrt(sum(state[name]["deviation"] ** 2 + env.tau**2 + env.beta**2 for name in one + other))
        lead = advantage + sum(state[name]["mean"] for name in one) - sum(state[name]["mean"] for name in other)
        expected = (mpmath.ncdf((lead - eps) / c) + mpmath.ncdf((lead + eps) / c)) / 2
        assert told[one[0]][2] == pytest.approx(float(expected), rel=1e-9, abs=1e-15)
        assert told[other[0]][2] == pytest.approx(float(1 - expected), rel=1e-9, abs=1e-15)


def duel(places, one, other):
    """A against B: two means and deviations."""
    teams = [SlowTeam(place, None, [SlowPlayer(name)]) for name, place in zip("AB", places, strict=True)]
    state = {
        name: {"mean": float(mean), "deviation": float(deviation)}
        for name, (mean, deviation) in (("A", one), ("B", other))
    }
    return [SlowMatch("1", 0.0, None, teams)], state


def exact_moments(t, e, drawn):
    """v and w of a standard normal cut by a win (above e − t) or a draw (−e − t to e − t), to thirty digits or so."""
    with mpmath.workdps(60):
        t, e = mpmath.mpf(t), mpmath.mpf(e)
        if not drawn:
            v = mpmath.npdf(t - e) / mpmath.ncdf(t - e)
            return v, v * (v + t - e)
        if t > 0:  # the tail below, where ncdf has all its digits, is the same
            v, w = exact_moments(-t, e, drawn)
            return -v, w
        mass = mpmath.ncdf(t + e) - mpmath.ncdf(t - e)
        v = (mpmath.npdf(t + e) - mpmath.npdf(t - e)) / mass
        return v, v**2 + ((e - t) * mpmath.npdf(e - t) + (e + t) * mpmath.npdf(e + t)) / mass


def exact_duel(places, one, other):
    """TrueSkill's closed form for the player listed first, by mpmath: the judge."""
    with mpmath.workdps(60):
        tau, beta = mpmath.mpf(25 / 300), mpmath.mpf(25 / 6)
        variance = mpmath.mpf(one[1]) ** 2 + tau**2
        c = mpmath.sqrt(variance + mpmath.mpf(other[1]) ** 2 + tau**2 + 2 * beta**2)
        eps = mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf(0.1)) * mpmath.sqrt(2) * beta
        sign = 1 if places[0] <= places[1] else -1
        v, w = exact_moments(sign * (mpmath.mpf(one[0]) - other[0]) / c, eps / c, places[0] == places[1])
        return float(one[0] + sign * variance / c * v), float(mpmath.sqrt(variance * (1 - variance / c**2 * w)))


# places, mean and deviation of the first and the second: from an even duel to what nobody has ever seen
DUELS = [
    ((1, 2), (25, 25 / 3), (30, 25 / 3)),
    ((2, 1), (25, 3), (30, 1)),
    ((1, 1), (25, 3), (30, 1)),
    ((1, 1), (45, 3), (5, 6)),
    ((1, 2), (0, 2), (100, 1)),
    ((1, 2), (0, 1), (300, 1)),
    ((1, 2), (300, 1), (0, 1)),
    ((1, 1), (0, 1), (300, 1)),
    ((2, 1), (2000, 8), (0, 8)),
]


@pytest.mark.parametrize(("places", "one", "other"), DUELS)
def test_trueskill_is_exact_however_unlikely_the_result(rated, places, one, other):
    matches, state = duel(places, one, other)

    mean, deviation, _ = rated("trueskill", matches, state)["A"]

    assert (mean, deviation) == pytest.approx(exact_duel(places, one, other), rel=1e-9)


def test_trueskill_0_4_5s_own_normal_distribution_is_off_in_the_seventh_digit(rated):
    places, one, other = DUELS[0]
    matches, state = duel(places, one, other)
    exact = exact_duel(places, one, other)[0]

    theirs = by_trueskill(trueskill_package.TrueSkill(), matches, state)["A"][0]

    assert abs(theirs - exact) > 1e-7
    assert abs(rated("trueskill", matches, state)["A"][0] - exact) < 1e-10


@pytest.mark.parametrize(("places", "one", "other"), [DUELS[5], DUELS[6], DUELS[7]])
def test_trueskill_0_4_5_gives_up_on_a_lead_of_300_whoever_wins(places, one, other):
    matches, state = duel(places, one, other)

    with pytest.raises((FloatingPointError, ZeroDivisionError)):
        by_trueskill(trueskill_package.TrueSkill(backend="scipy"), matches, state)


def test_trueskill_0_4_5s_ten_rounds_and_its_early_end_are_enough_even_for_long_free_for_alls(rated):
    matches, state = batch("long", 30, sides=(16, 24))

    told = rated("trueskill", matches, state)

    assert_same(told, by_trueskill(environment(), matches, state, min_delta=1e-9), rel=1e-9)
    assert_same(told, by_trueskill(environment(), matches, state, min_delta=trueskill_package.DELTA), rel=1e-8)


# --- Weng-Lin


def exact_win(x, t):
    return tuple(float(value) for value in exact_moments(x, t, drawn=False))


def exact_draw(x, t):
    return tuple(float(value) for value in exact_moments(x, t, drawn=True))


@functools.cache
def thurstone_mosteller_with_exact_moments():
    """openskill's own Thurstone-Mosteller from its Python source, with v and w by mpmath in the place of its own.

    What is installed is the same source compiled, in which nothing can be replaced.
    """
    path = Path(openskill.models.__file__).parent / "weng_lin" / "thurstone_mosteller_full.py"
    spec = importlib.util.spec_from_file_location("thurstone_mosteller_from_source", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.v, module.w = lambda x, t: exact_win(x, t)[0], lambda x, t: exact_win(x, t)[1]
    module.vt, module.wt = lambda x, t: exact_draw(x, t)[0], lambda x, t: exact_draw(x, t)[1]
    return module.ThurstoneMostellerFull


def by_openskill(model, matches, state, weights=None, advantage=0.0):
    """weights: {player: weight} as openskill's rate() takes them."""
    # Documented as a way to leave weights as they are, but the compiled constructor refuses None; the attribute does not.
    model.weight_bounds = None
    known = {}
    for match in matches:
        teams = [[model.rating(*state[name].values()) for name in team] for team in names_of(match)]
        teams[0][0].mu += advantage
        given = weights and [[weights[name] for name in team] for team in names_of(match)]
        after = model.rate(teams, ranks=[float(team.place) for team in match.teams], weights=given)
        for team, ratings in zip(names_of(match), after, strict=True):
            known |= {name: (rating.mu, rating.sigma) for name, rating in zip(team, ratings, strict=True)}
        name = names_of(match)[0][0]
        known[name] = (known[name][0] - advantage, known[name][1])
    return known


# What a batch is made of, and parameters
WENGLIN = {
    "duels": ({"count": 800}, {}),
    "duels on another scale": ({"count": 300, "spread": 3.0}, {"beta": 2.5, "tau": 0.5, "kappa": 0.01}),
    "deviations that never rise": ({"count": 300, "size": (1, 2)}, {"tau": 1.0, "limit_sigma": True}),
    "uneven teams": ({"count": 300, "size": (1, 5)}, {}),
    "free-for-alls": ({"count": 100, "sides": (3, 8)}, {}),
    "three to five uneven teams": ({"count": 100, "sides": (3, 5), "size": (1, 3)}, {}),
}


@pytest.mark.parametrize("made_of", WENGLIN)
@pytest.mark.parametrize("variant", ["plackett_luce", "bradley_terry_full"])
def test_wenglin_agrees_with_the_package_openskill(rated, variant, made_of):
    matches, state = batch(made_of, **WENGLIN[made_of][0])
    parameters = WENGLIN[made_of][1]

    told = rated("wenglin", matches, state, variant=variant, **parameters)

    assert_same(told, by_openskill(VARIANTS[variant](**parameters), matches, state), rel=1e-11)


@pytest.mark.parametrize("made_of", WENGLIN)
def test_thurstone_mosteller_agrees_with_the_package_openskill_given_exact_moments(rated, made_of):
    matches, state = batch(made_of, **WENGLIN[made_of][0])
    parameters = WENGLIN[made_of][1]

    told = rated("wenglin", matches, state, variant="thurstone_mosteller_full", **parameters)

    assert_same(told, by_openskill(thurstone_mosteller_with_exact_moments()(**parameters), matches, state), rel=1e-11)


@pytest.mark.parametrize("size", [(1, 1), (1, 4)])
@pytest.mark.parametrize("sides", [(2, 2), (3, 5)])
def test_thurstone_mosteller_agrees_with_the_package_openskill_among_near_equals(rated, sides, size):
    # Where openskill's shortcuts are not taken: no lead of more than three deviations of it.
    matches, state = batch("near", 200, sides=sides, size=size, spread=0.5)
    for name, belief in state.items():
        belief["mean"] /= 1 + sum(len(team) for team in names_of(matches[int(name.split(".")[0])]))

    told = rated("wenglin", matches, state, variant="thurstone_mosteller_full")

    assert_same(told, by_openskill(VARIANTS["thurstone_mosteller_full"](), matches, state), rel=1e-9)
