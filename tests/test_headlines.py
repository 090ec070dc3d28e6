"""The sentence about a rating change: it agrees with what the player saw, and reads as it was written by hand."""

import json
import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenmatch import rate, rules, systems
from evenmatch.history import Columns, History
from evenmatch.players.headlines import explain
from evenmatch.rating import changes
from evenmatch.systems import loop, wording
from evenmatch.systems.system import Change
from evenmatch.web.page_request import signed
from random_matches import DUELLISTS, PEOPLE, random_table

OWN_FILE = str(Path(__file__).parents[1] / "docs" / "how-to" / "league_points.py")
VARIANTS = [(name, preset) for name in systems.names() for preset in (None, *systems.find(name).presets)]
MESSAGES = set(wording.messages())
NOW = 10**16  # microseconds, after the season
nan = np.nan


def columns_of(places, sizes, *, quits=(), time=NOW, score=None, team_score=None, seconds=nan, keep=True):
    """One match of teams of these sizes; quits: indices of players."""
    teams, players = len(sizes), sum(sizes)
    team = np.repeat(np.arange(teams), sizes)
    return Columns(
        time=np.full(1, time),
        team_start=np.array([0, teams]),
        place=np.array(places),
        team_score=np.full(teams, nan) if team_score is None else np.array(team_score, float),
        slot_start=np.concatenate(([0], np.cumsum(sizes))),
        player=np.arange(players),
        score=np.array(places, float)[team] if score is None else np.array(score, float),
        seconds=np.full(players, seconds),
        performance=np.full(players, nan),
        quit=np.isin(np.arange(players), list(quits)),
        duration=np.full(1, seconds),
        keep=np.full(players, keep),
    )


# Properties, with players who have played a season of uneven teams, draws, three sides and quitters before.


@cache
def after_a_season(name, preset):
    """The rules, the records of thirty players after a season, and what was learned about their ladder."""
    by = rules(name, preset)
    ratings = rate(random_table("prav", 7, matches=150), by, skip_bad=True)  # its team scores are complete
    order = [ratings.matches.player_names.index(player) for player in PEOPLE]
    return by, ratings.state[order], ratings.ladders


@st.composite
def line_ups(draw, *, teams=None):
    """Places, sizes, players, quitters and scores of a match."""
    count = draw(st.sampled_from([2, 2, 2, 3, 4, 6])) if teams is None else teams
    sizes = draw(st.lists(st.integers(1, 4), min_size=count, max_size=count))
    places = draw(st.lists(st.integers(1, count), min_size=count, max_size=count))
    total = sum(sizes)
    people = draw(st.permutations(range(len(PEOPLE))))[:total]
    quits = draw(st.sets(st.integers(0, total - 1), max_size=2))
    scores = draw(st.lists(st.integers(0, 20), min_size=total, max_size=total))
    own = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    return places, sizes, people, quits, scores, own


def rated(name, preset, line_up):
    """The rules, the changes of the match, and their explanations."""
    places, sizes, people, quits, scores, own = line_up
    by, state, ladders = after_a_season(name, preset)
    history = History(columns_of(places, sizes, quits=quits, score=scores, team_score=own, seconds=600.0))
    result = loop.replay(by, history, state[np.array(people)], ladders, journal=True)
    changed = changes(by, history, result.expected, result.journal, 0, [PEOPLE[player] for player in people])
    return by, changed, explain(by, history, changed, listed)


def listed(text):
    """Stand in for a catalogue that has every message."""
    assert text in MESSAGES
    return text


def check_sentence(sentence, change, places, team, *, left):
    """The words agree with the places, the odds and the change that the page shows."""
    assert re.fullmatch(r"(You|Your team|All \d+ (players|teams)) [^{}]+\.", sentence)
    assert "nan" not in sentence
    assert "  " not in sentence
    assert len(sentence) <= 350
    moved = round(round(change.after, 2) - round(change.before, 2), 2)
    end = r"(?:\.(?= |$)|:|, because| and is now)"
    verbs = re.findall(rf"(?:[Yy]our rating|it) (rose|fell) by ([\d,.]+?){end}", sentence)
    if moved == 0:
        assert verbs == []
        assert re.search("did not change|do not change|did not go down", sentence)
    else:
        assert [(verb, float(points.replace(",", ""))) for verb, points in verbs] == [
            ("rose" if moved > 0 else "fell", abs(moved))
        ]
        shown = {"rose": "+", "fell": "−"}[verbs[0][0]] + verbs[0][1]
        assert signed(change.moved) in (shown, shown + ".00")
    ahead, level = sum(one < places[team] for one in places), places.count(places[team])
    if left:
        assert sentence.startswith("You left early")
    elif len(places) == 2:
        result = "(lost|finished behind)" if ahead else "drew" if level == 2 else "(won|beat)"
        assert re.match(rf"(You|Your team) {result}\b", sentence)
    elif level == len(places):
        assert re.match(rf"All {level} (players|teams) tied\b", sentence)
    else:
        told = re.match(r"(?:You|Your team) (finished|tied for) (\d+)(?:st|nd|rd|th) of (\d+)\b", sentence)
        assert told, sentence
        assert (told[1], int(told[2]), int(told[3])) == (
            "finished" if level == 1 else "tied for",
            1 + ahead,
            len(places),
        )
    check_expectation(sentence, change, len(places))
    check_parts(sentence, moved)


def amount(text):
    return float(text.replace("−", "-").replace(",", ""))


def check_parts(sentence, moved):
    """The parts that a sentence names add up to the change."""
    listed = re.search(r"(?:\(|: )([+−][^()]*)", sentence)
    parts = [amount(part) for part in re.findall(r"[+−][\d,]+\.\d\d", listed[1])] if listed else []
    told = re.findall(r"(added|took off) ([\d,]+\.\d\d)", sentence)
    sums = [amount(part) if verb == "added" else -amount(part) for verb, part in told]
    if told:
        assert re.search(r"\. (This match (added|took off)|None of that is from this match\.) ", sentence)
        if listed:
            assert round(sum(parts), 2) == sums[0]
        assert round(sum(sums), 2) == moved
    else:
        assert not parts or round(sum(parts), 2) == moved
    worth = r"would have (?:fallen|lowered your rating) by (\d+\.\d\d).* so we show it (\d+\.\d\d) higher"
    if whole := re.search(worth, sentence):
        assert round(float(whole[2]) - float(whole[1]), 2) == moved
    if share := re.search(r"(\d+\.\d\d) of that is because we are now more certain", sentence):
        assert 0 < float(share[1]) <= moved


def check_expectation(sentence, change, teams):
    """Favourite, underdog, chance, "better" and "higher" agree with the expected score and with the change."""
    surprise = change.result - change.expected
    if "as the favourite" in sentence:
        assert change.expected > 0.5
    elif re.search(r"(beat|drew with|lost to) the favourites? \(", sentence):
        assert change.expected < 0.5
    if chance := re.search(r"chance of winning was about (\d+)%", sentence):
        assert 0 < int(chance[1]) < 100
        assert abs(int(chance[1]) / 100 - change.expected) <= 0.005 + 1e-9 or int(chance[1]) in (1, 99)
    if re.search("(better|more) than expected|expected to do worse", sentence):
        assert surprise > 0
        assert change.moved >= 0
    if re.search("(worse|less) than expected|expected to do better", sentence):
        assert surprise < 0
        assert change.moved <= 0 or "That alone would have lowered" in sentence
    if "Your average is " in sentence and change.moved:
        told = re.search(r"average is ([\d.]+)\. That is (\w+) the ([\d.]+) .*, so you went (\w+)\.$", sentence)
        assert (told[2], told[4]) == (("above", "up") if change.moved > 0 else ("below", "down"))
        assert (float(told[1]) - float(told[3])) * change.moved > 0
    if counted := re.search(r"This (\w+) counted (\d+) out of 100(?:, for ([a-z ]+) and for)?", sentence):
        deed = {"win": "winning", "draw": "drawing", "loss": "losing", "result": "the result"}[counted[1]]
        assert counted[3] == deed or (counted[3] is None and abs(int(counted[2]) - 100 * change.result) <= 0.5)
    if pace := re.search(r"(faster|slowly) than we .* get you ([\d.]+) of .* we expected ([\d.]+?)\.(?= |$)", sentence):
        assert (float(pace[2]) > float(pace[3])) == (pace[1] == "faster") == (change.moved > 0)
    if size := re.search(r"([+−])[\d.,]+ for (how big the|a smaller) (win|loss)", sentence):
        assert (size[1] == "+") == ((size[3] == "win") == (size[2] == "how big the"))
    if own := re.search(r"You are rated (above|below) .* you (gain|lose) (more|less) than", sentence):
        assert own[2] == ("gain" if change.moved > 0 else "lose")
        assert (own[3] == "less") == ((own[1] == "above") == (own[2] == "gain"))
    assert "not sure of your level" not in sentence or re.search(r"not sure of your level yet, so [^.]*\.$", sentence)
    if re.match(r"[^,.]*, so your rating ", sentence) and teams == 2:
        assert (change.result - 0.5) * change.moved >= 0, sentence


@pytest.mark.parametrize(("name", "preset"), VARIANTS)
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_sentence_agrees_with_the_result_the_odds_and_the_shown_change(name, preset, data):
    line_up = data.draw(line_ups(teams=2 if name in DUELLISTS else None))
    places, _, _, quits, *_ = line_up
    _, changed, told = rated(name, preset, line_up)
    slot = 0
    for team, (team_changes, explanations) in enumerate(zip(changed, told, strict=True)):
        for change, explanation in zip(team_changes, explanations, strict=True):
            check_sentence(explanation.headline, change, places, team, left=slot in quits)
            both = explanation.otherwise or "", explanation.otherwise_of_another or ""
            for to_player, others in ((explanation.headline, explanation.of_another), both):
                assert not re.search(r"\b[Yy]ou", others)
                turned = re.sub(r"\b(they|them)\b", "you", others.replace("They", "You").replace("heir", "our"))
                assert turned.replace("Tour", "Your").replace("tour", "your") == to_player
            assert explanation.otherwise is None or slot not in quits
            assert {**explanation.factors_of_team, **explanation.factors_of_player} == change.factors
            if len(team_changes) == 1:
                assert explanation.factors_of_team == {}
            slot += 1
        for name_of_factor, value in explanations[0].factors_of_team.items():
            assert all(change.factors[name_of_factor] == value for change in team_changes)


ABOUT_OTHERS = {"You": "They", "you": "they", "your": "their"}
PRONOUNS = re.compile(r"\b(You|you|your)\b")
RECALLED = [(name, preset) for name, preset in VARIANTS if name not in ("even", "elommr", "prav", "scorefactor")]


@pytest.mark.parametrize(("name", "preset"), RECALLED)
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(line_up=line_ups(teams=2))
def test_what_another_result_would_have_done_is_what_it_does(name, preset, line_up):
    places, sizes, people, quits, scores, own = line_up
    by, changed, told = rated(name, preset, line_up)
    if by.system.recall(changed[0][0], by.parameters) is None:
        return
    level = places[0] == places[1]
    for team, wins in ((0, True), (0, False), (1, True), (1, False)):
        if not level and wins == (places[team] < places[1 - team]):
            continue
        turned = [2, 2]
        turned[team] = 1 if wins else 3
        unlike = [nan, nan] if level else own[::-1]
        _, really, _ = rated(name, preset, (turned, sizes, people, quits, scores, unlike))
        for index, (explanation, change) in enumerate(zip(told[team], really[team], strict=True)):
            slot = index + (sizes[0] if team else 0)
            if slot in quits or not explanation.otherwise:
                continue
            moved = change.moved
            word = "win" if wins else "loss"
            verb = "cost" if moved < 0 else "earned" if wins else "brought"
            said = re.search(
                rf"\b[Aa] {word} would (?:still )?have (\w+) (?:you )?([\d,.]*\d|nothing|just as much)",
                explanation.otherwise,
            )
            assert said, explanation.otherwise
            if moved == 0:
                assert said.groups() == ("changed", "nothing")
            elif said[2] == "just as much":
                assert (said[1], moved) == ("cost", changed[team][index].moved)
            else:
                assert (said[1], float(said[2].replace(",", ""))) == (verb, abs(moved))


def test_two_sides_of_a_decided_match_have_one_other_result_and_a_draw_has_two():
    by = rules("elo")
    state = by.starting(np.array([1500.0, 1900.0]))
    for places, said in (
        ([2, 1], ["A win would have earned you 29.09.", "A loss would have cost you 29.09."]),
        (
            [1, 1],
            [
                "A win would have earned you 29.09. A loss would have cost you 2.91.",
                "A win would have earned you 2.91. A loss would have cost you 29.09.",
            ],
        ),
    ):
        history = History(columns_of(places, [1, 1]))
        result = loop.replay(by, history, state, journal=True)
        told = explain(by, history, changes(by, history, result.expected, result.journal, 0, ["a", "b"]))
        assert [team[0].otherwise for team in told] == said


def test_a_master_who_fell_below_2400_keeps_the_smaller_k_in_what_would_have_been():
    """FIDE's K stays at 10 once a player has reached 2400; newcomers have 40. Half is at stake between equals."""
    by = rules("elo", "fide")
    state = by.starting(np.array([2390.0, 2390.0]))
    state["top"], state["games"] = [1, 0], [40, 0]
    history = History(columns_of([1, 2], [1, 1]))
    result = loop.replay(by, history, state, journal=True)
    told = explain(by, history, changes(by, history, result.expected, result.journal, 0, ["a", "b"]))
    said = ["A loss would have cost you 5.00.", "A win would have earned you 20.00."]
    assert [team[0].otherwise for team in told] == said


def test_the_others_of_three_would_have_come_first_and_the_first_last():
    """Elo between equals: K 32 times the result minus a half, by the mean over the two rivals."""
    by = rules("elo")
    history = History(columns_of([1, 2, 3], [1, 1, 1]))
    result = loop.replay(by, history, by.newcomers(3), journal=True)
    told = explain(by, history, changes(by, history, result.expected, result.journal, 0, ["a", "b", "c"]))
    assert [team[0].otherwise for team in told] == [
        "Finishing last would have cost you 16.00.",
        "Finishing first would have earned you 16.00.",
        "Finishing first would have earned you 16.00.",
    ]


def test_after_a_tie_of_all_both_ends_are_told():
    """Elo between equals, as above."""
    by = rules("elo")
    history = History(columns_of([1, 1, 1], [1, 1, 1]))
    result = loop.replay(by, history, by.newcomers(3), journal=True)
    told = explain(by, history, changes(by, history, result.expected, result.journal, 0, ["a", "b", "c"]))
    said = "Finishing first alone would have earned you 16.00. Finishing last alone would have cost you 16.00."
    assert [team[0].otherwise for team in told] == [said] * 3


def test_other_results_follow_from_an_uncertain_rating_after_a_draw():
    """Glicko with a deviation of 150 for both, 1500 against 1432: 0.58 is expected, so a win earns 42% of both ends.

    In the formulas of Glickman's paper, d² is 1 / (q² g² E (1 − E)), and the change q / (1/RD² + 1/d²) g (S − E).
    """
    by = rules("glicko", deviation=150.0)
    history = History(columns_of([1, 1], [1, 1]))
    result = loop.replay(by, history, by.starting(np.array([1500.0, 1432.0])), journal=True)
    told = explain(by, history, changes(by, history, result.expected, result.journal, 0, ["a", "b"]))
    q = math.log(10) / 400
    g = 1 / math.sqrt(1 + 3 * (q * 150 / math.pi) ** 2)
    chance = 1 / (1 + 10 ** (-g * 68 / 400))
    step = q * g / (1 / 150**2 + (q * g) ** 2 * chance * (1 - chance))
    fell = f"which is less than expected, so your rating fell by {step * (chance - 0.5):.2f}."
    assert told[0][0].headline.endswith(fell)
    assert told[0][0].otherwise == (
        "We are not sure of your level yet, so a win would have earned you "
        f"{step * (1 - chance):.2f} and a loss would have cost you {step * chance:.2f}."
    )


def test_a_small_change_of_an_uncertain_rating_after_a_tie_of_all_is_told_with_both_ends():
    by = rules("glicko")
    history = History(columns_of([1, 1, 1], [1, 1, 1]))
    result = loop.replay(by, history, by.starting(np.array([1520.0, 1500.0, 1500.0])), journal=True)
    told = explain(by, history, changes(by, history, result.expected, result.journal, 0, ["a", "b", "c"]))
    assert "not sure" not in told[0][0].headline
    assert re.fullmatch(
        r"We are not sure of your level yet, so finishing first alone would have earned you "
        r"\d+\.\d\d and finishing last alone would have cost you \d+\.\d\d\.",
        told[0][0].otherwise,
    )


def test_a_loss_that_would_have_cost_as_much_as_the_win_says_so():
    """TrueSkill with far more luck than skill: the deviation grows by tau, and the result moves next to nothing."""
    by = rules("trueskill", deviation=0.01, beta=400.0, tau=0.02)
    history = History(columns_of([1, 2], [1, 1]))
    result = loop.replay(by, history, by.newcomers(2), journal=True)
    told = explain(by, history, changes(by, history, result.expected, result.journal, 0, ["a", "b"]))
    assert told[0][0].headline.startswith("You won, but this match told us almost nothing new about you.")
    assert told[0][0].otherwise == "A loss would have cost just as much."


def test_a_player_at_the_floor_reads_that_no_rating_is_lower():
    by = rules("trophies")
    history = History(columns_of([1, 2], [1, 1]))
    result = loop.replay(by, history, by.newcomers(2), journal=True)
    told = explain(by, history, changes(by, history, result.expected, result.journal, 0, ["a", "b"]))
    assert told[0][0].otherwise == "A loss would have changed nothing, because 0 is the lowest rating there is."


def test_a_system_of_your_own_is_explained_and_may_add_a_reason():
    by = rules(OWN_FILE)
    history = History(columns_of([1, 2], [1, 1]))
    result = loop.replay(by, history, by.newcomers(2), journal=True)
    told = explain(by, history, changes(by, history, result.expected, result.journal, 0, ["a", "b"]))
    assert [team[0].headline for team in told] == [
        "You beat an evenly matched opponent, so your rating rose by 3.00.",
        "You lost, which brings no points, so your rating did not change.",
    ]


GERMAN = {
    "You finished {place} of {teams}, better than expected": "Du wurdest {place} von {teams}, besser als erwartet",
    "{number}nd": "{number}.",
    "your rating rose by {points}": "stieg deine Wertung um {points}",
    "{outcome}, so {effect}.": "{outcome}. Deshalb {effect}.",
    "Finishing first would have earned you {points}.": "Der erste Platz hätte {points} gebracht.",
}


def test_a_catalogue_may_change_the_order_of_words_and_the_ordinals():
    """Elo: second of three with 1500 against 1600 twice; 0.36 is expected, K is 32, and first place brings 16 more."""
    by = rules("elo")
    history = History(columns_of([1, 2, 3], [1, 1, 1]))
    result = loop.replay(by, history, by.starting(np.array([1600.0, 1500.0, 1600.0])), journal=True)
    changed = changes(by, history, result.expected, result.journal, 0, ["a", "b", "c"])
    told = explain(by, history, changed, lambda text: GERMAN.get(text, text))[1][0]
    assert told.headline == "Du wurdest 2. von 3, besser als erwartet. Deshalb stieg deine Wertung um 4.48."
    assert told.otherwise == "Der erste Platz hätte 20.48 gebracht."


def test_a_catalogue_lists_a_message_for_each_person_and_size_with_only_values_in_braces():
    assert {
        "You beat the favourite (your chance of winning was about {chance}%)",
        "You beat the favourites (your chance of winning was about {chance}%)",
        "Their team beat the favourite (their team's chance of winning was about {chance}%)",
        "A loss would have cost you {points}.",
        "{number}rd",
    } <= MESSAGES
    named = {name for text in MESSAGES for name in re.findall(r"\{(.*?)\}", text)}
    assert not named & {"You", "you", "them", "Your", "your", "Side", "side", "its", "was", "favourite", "players"}


# Sentences written by hand, see headlines.json. The player is in the first team.
GOLDEN = json.loads((Path(__file__).parent / "headlines.json").read_text())


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case['system']}: {case['sentence']}")
def test_a_sentence_reads_as_it_was_written_by_hand(case):
    by, places, options = rules(case["system"]), case["places"], case.get("options", {})
    by = replace(by, system=replace(by.system, recall=lambda change, parameters: None))
    quits = [0] if options.get("quit") else []
    mates = case.get("mates", [])  # ratings of the player's team-mates
    sizes = [1 + len(mates), *[1] * (len(places) - 1)]
    match = History(columns_of(places, sizes, quits=quits, keep=options.get("keep", True)))
    own, rivals = places[0], len(places) - 1
    result = (sum(one > own for one in places) + 0.5 * (places.count(own) - 1)) / rivals
    blank = {one.name: one.labels[0] if one.labels else False if one.flag else one.neutral for one in by.system.factors}
    factors = blank | {key: value for key, value in options.items() if key in blank}
    change = Change("ann", 0, float(case["before"]), float(case["after"]), case["expected"], result, factors)
    team = [change, *(change._replace(before=rating, after=rating) for rating in mates)]
    teams = [team, *([change._replace(team=team)] for team in range(1, len(places)))]
    assert explain(by, match, teams)[0][0].headline == case["sentence"]


def test_every_system_has_golden_sentences():
    assert {case["system"] for case in GOLDEN} == set(systems.names())
