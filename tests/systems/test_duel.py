"""Systems in two plain methods: their arithmetic, their place beside compiled systems, and their errors."""

from dataclasses import replace
from datetime import timedelta
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from elo_matches import START, duels, duels_table
from evenmatch import DuelSystem, Match, Rater, Team, backtest, explain, from_matches, number, rate, read, rules
from evenmatch.errors import BadParameterError, KernelError, UnknownNameError, UsageError
from evenmatch.history import History
from evenmatch.lab.backtests.tune import tune
from evenmatch.systems import find, loop
from evenmatch.systems.fingerprint import fingerprint
from run_command import run_command

CLUB = Path(__file__).parents[2] / "docs" / "how-to" / "my_elo.py"
SEASON = Path(__file__).parents[2] / "docs" / "examples" / "season.csv"


class PlainElo(DuelSystem):
    """Elo in two lines"""

    k = number(32.0, 0, 200, "most points a match moves", search=(5, 100))

    def expected(self, a, b):
        return 1 / (1 + 10 ** ((b.rating - a.rating) / 400))

    def update(self, a, b, result):
        a.rating += self.k * (result - self.expected(a, b))


def after(teams, places, kind=PlainElo, **values):
    """The ratings of players, given team by team with their ratings before, after one match."""
    names = [[f"{team}{at}" for at in range(len(ratings))] for team, ratings in enumerate(teams)]
    sides = tuple(Team.of(*listed, place=place) for listed, place in zip(names, places, strict=True))
    by = rules(kind, **values)
    history = History.of_match(Match("m", START, sides), 0)
    return loop.replay(by, history, by.starting(np.array([*chain(*teams)], float))).state["rating"].tolist()


# own rating, rival's, places, points gained: by hand from 32 × (result − 1 / (1 + 10^(lead/400)))
GAINS = [
    (1500, 1500, (1, 2), 16.0),
    (1500, 1500, (1, 1), 0.0),
    (1500, 1900, (1, 2), 320 / 11),
    (1500, 1900, (1, 1), 144 / 11),
    (1500, 1900, (2, 1), -32 / 11),
]


@pytest.mark.parametrize(("own", "rival", "places", "gain"), GAINS)
def test_a_duel_moves_both_players_by_the_same_formula(own, rival, places, gain):
    assert after([[own], [rival]], places) == pytest.approx([own + gain, rival - gain])
    assert after([[own], [rival]], places, k=8) == pytest.approx([own + gain / 4, rival - gain / 4])


def test_a_player_of_a_team_moves_by_the_mean_over_the_opponents():
    # 1500 beats 1500 (+16) and 1900 (+320/11); 1900 loses to 1500 (−320/11) in each of two duels
    told = after([[1500], [1500, 1900]], (1, 2))
    assert told == pytest.approx([1500 + (16 + 320 / 11) / 2, 1500 - 16, 1900 - 320 / 11])
    told = after([[1500, 1500], [1900]], (2, 1))
    assert told == pytest.approx([1500 - 32 / 11, 1500 - 32 / 11, 1900 + 32 / 11])


def free_for_all(count):
    rng = np.random.default_rng(4)
    return from_matches(
        Match(
            f"f{at}",
            START + timedelta(days=at),
            tuple(
                Team.of(f"p{player}", place=int(place))
                for player, place in zip(rng.permutation(9)[:4], rng.integers(1, 4, 4), strict=True)
            ),
        )
        for at in range(count)
    )


@pytest.mark.parametrize("table", [duels_table(3, 300, spread=200, draws=0.2), free_for_all(80)], ids=["duels", "many"])
def test_the_formula_of_elo_gives_what_the_compiled_elo_gives(table):
    plain, compiled = rate(table, PlainElo, journal=True), rate(table, "elo", journal=True)
    assert np.abs(compiled.state["rating"] - 1500).max() > 50
    assert plain.state["rating"] == pytest.approx(compiled.state["rating"], abs=1e-8)
    assert plain.expected == pytest.approx(compiled.expected, abs=1e-12)
    assert plain.journal.before == pytest.approx(compiled.journal.before, abs=1e-8)
    assert plain.journal.after == pytest.approx(compiled.journal.after, abs=1e-8)


def test_parts_match_by_match_and_the_whole_are_rated_alike():
    matches = duels(5, 60, spread=200, draws=0.1)
    whole = rate(from_matches(matches), CLUB.as_posix())
    rater = Rater(str(CLUB), "duel")
    for match in matches:
        rater.rate(match)
    for row in whole.standings().to_pylist():
        assert rater.rating(row["player"]) == row["rating"]
        assert row["matches"] > 0


def test_a_match_that_does_not_count_for_a_player_leaves_their_numbers():
    matches = duels(5, 20)
    kept = from_matches(matches[:-1])
    guest = matches[-1].teams[0].players[0]
    teams = (replace(matches[-1].teams[0], players=(replace(guest, keep=False),)), matches[-1].teams[1])
    last = rate(from_matches([*matches[:-1], replace(matches[-1], teams=teams)]), CLUB.as_posix())
    before = {row["player"]: row["rating"] for row in rate(kept, str(CLUB)).standings().to_pylist()}
    now = {row["player"]: row["rating"] for row in last.standings().to_pylist()}
    rival = matches[-1].teams[1].players[0].player
    assert {name for name in now if now[name] != before[name]} == {rival}


def test_a_backtest_and_tuning_take_a_class_and_find_its_parameter():
    table = duels_table(1, 1500, k=60.0, spread=100)
    found = backtest(table, [PlainElo, "elo"], workers=1)
    losses = {(row["system"], row["variant"]): row["log_loss"] for row in found.scores.to_pylist()}
    assert losses["PlainElo", "default"] == pytest.approx(losses["elo", "default"], abs=1e-9)
    result = tune(table, find(PlainElo), 0.0, workers=1, most=12)
    assert result.rules.system.name == "PlainElo"


def test_the_command_line_takes_a_file_with_one_class():
    told = run_command("rate", str(SEASON), "--system", str(CLUB), "--param", "k=20", "--placement", "5")
    assert (told.code, "24 matches" in told.out) == (0, True), told.err
    told = run_command("explain", str(SEASON), "--match", "m17", "--system", str(CLUB))
    assert "lost" in told.out, told.err
    told = run_command("systems", str(CLUB))
    assert "most points a match moves" in told.out
    assert explain(read(SEASON), str(CLUB), "m17").changes(0)[0][0].factors == {}


def test_parameters_are_checked_by_name_and_range():
    with pytest.raises(BadParameterError, match="k=900"):
        rules(PlainElo, k=900)
    with pytest.raises(UnknownNameError, match="did you mean 'k'"):
        rules(PlainElo, kk=9)


def test_the_fingerprint_follows_the_methods():
    class Other(PlainElo):
        def update(self, a, b, result):
            a.rating += 2 * self.k * (result - self.expected(a, b))

    assert fingerprint(find(PlainElo)) == fingerprint(find(PlainElo))
    assert fingerprint(find(Other)) != fingerprint(find(PlainElo))


# a line of a method, and what the error says about it; line 14 is the one that differs
FAULTS = [
    ("a.ratng += 1", "my_elo.py:14: the state has no field 'ratng'; it has rating, matches"),
    ("a.ratng = 1.0", "my_elo.py:14: the state has no field 'ratng'; it has rating, matches"),
    ("a.rating += self.kk", "my_elo.py:14: the system has no parameter 'kk'; it has k"),
    ("a.rating += size", "my_elo.py:14: NameError: name 'size' is not defined"),
    ("a.rating += 1 / (a.rating - b.rating)", "my_elo.py:14: ZeroDivisionError"),
    ("b.rating += self.k", "my_elo.py:13: update changes b; expected changes of a alone"),
]
OWN = """from evenmatch import DuelSystem, number


class MyElo(DuelSystem):
    k = number(32.0, 0, 200, "most points a match moves")
    newcomer = {"rating": 1500.0, "matches": 0}

    def expected(self, a, b):
        return CHANCE

    # the step

    def update(self, a, b, result):
        STEP
"""


@pytest.mark.parametrize(("line", "said"), FAULTS)
def test_an_error_in_a_method_names_file_line_and_field_before_any_match_is_read(line, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my_elo.py").write_text(OWN.replace("CHANCE", "0.5").replace("STEP", line))
    with pytest.raises(KernelError) as raised:
        rules("my_elo.py")
    assert str(raised.value).startswith(said)
    told = run_command("rate", str(SEASON), "--system", "my_elo.py")
    assert (told.code, told.err.startswith(f"error: {said}")) == (2, True), told.err


@pytest.mark.parametrize("chance", ["1.5", "-0.1", "None", "float('nan')"])
def test_an_expected_score_that_is_no_probability_is_refused(chance, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN.replace("CHANCE", chance).replace("STEP", "a.rating += 1"))
    with pytest.raises(KernelError, match="expected a number from 0 to 1"):
        rules(str(file))


def test_an_error_that_only_matches_bring_about_names_the_line_too(tmp_path):
    file = tmp_path / "own.py"
    third_match = "a.rating += 1 / (a.matches - 2); a.matches += 1"
    file.write_text(OWN.replace("CHANCE", "0.5").replace("STEP", third_match))
    by = rules(str(file))
    with pytest.raises(KernelError, match=r"own\.py:14: ZeroDivisionError"):
        rate(duels_table(1, 60), by)


def test_a_class_without_methods_or_rating_says_what_is_missing():
    with pytest.raises(KernelError, match=r"expected\(self, a, b\) is not defined"):
        rules(type("Empty", (DuelSystem,), {}))
    with pytest.raises(UsageError, match=r"newcomer is {'mu': 3}; expected numbers by name, one named rating"):
        rules(type("NoRating", (PlainElo,), {"newcomer": {"mu": 3}}))
