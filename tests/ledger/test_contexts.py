"""A ladder with context columns: what the system learns by map and mode is kept, corrected, verified and forgotten."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from evenmatch import Rater, Team, from_matches, rate, read, rules
from evenmatch.corrections.corrections import Ban, Reinstate, Unvoid, Void
from evenmatch.corrections.ladder_history import read_history
from evenmatch.errors import BadParameterError, BadRowsError, EvenmatchWarning, InputError, UnknownNameError
from evenmatch.ladders.export import Files, export
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.ladders.settings import Settings
from evenmatch.ledger import event_rows, rating_rows
from evenmatch.match import Match
from evenmatch.matchmaking import LineUps
from evenmatch.players.odds import StakesQuery
from evenmatch.queues.state import LadderOdds
from evenmatch.recording import imports
from evenmatch.stake_assumptions import StakeAssumptions
from ledger.sample_matches import after, everybody

NAMES = ("ann", "bob", "cat", "dan", "eve", "joe", "kim")
COLUMNS = ("map", "mode")


def recorded(count=60):
    """Matches on two maps, of which one reverses who is stronger; some lack a length or both, some have a patch."""
    rng = np.random.default_rng(3)
    matches = []
    for number in range(count):
        size, rivals = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        chosen = rng.permutation(len(NAMES))[: size + rivals]
        drawn, on_mill = [NAMES[index] for index in chosen], rng.random() < 0.5
        lead = (0.5 - on_mill) * (chosen[:size].mean() - chosen[size:].mean())
        own, theirs = (3, 1) if rng.random() < 1 / (1 + np.exp(-lead)) else (0, 2)
        teams = (
            Team.of(*drawn[:size], place=1 if own > theirs else 2, score=own),
            Team.of(*drawn[size:], place=2 if own > theirs else 1, score=theirs),
        )
        teams = tuple(replace(team, players=tuple(map(seeded, team.players))) for team in teams)
        context = {"map": "mill" if on_mill else "dust"}
        context |= {"mode": ["best of 3", "bo5", ""][number % 3]} if number % 5 else {}
        context = {} if number % 11 == 7 else context | ({"patch": f"v{number}"} if number % 7 == 0 else {})
        matches.append(Match(f"m{number}", after(number), teams, "default", context=context))
    return matches


def seeded(appearance):
    """With a seed, which is the place in NAMES; joe has none."""
    return replace(appearance, entry=None if appearance.player == "joe" else NAMES.index(appearance.player) + 0.1)


def made(service, name="default"):
    service.create_ladder(name, "even", rules("even"), Settings(context=COLUMNS))
    return service


@pytest.fixture
def played(service):
    made(service)
    for match in recorded():
        service.record(match)
    return service


def test_a_ladder_without_columns_learns_where_newcomers_start(service):
    matches = recorded()
    service.create_ladder("default", "even", rules("even"))
    for match in matches[:20]:
        service.record(match)
    service.import_matches("default", from_matches([replace(match, context={}) for match in matches[20:]]))
    table = from_matches([replace(match, context={}) for match in matches])
    seen = {name: standing.rating for name, standing in everybody(service, "default").items()}
    assert seen == dict(zip(table.player_names, rate(table, "even").state["rating"].tolist(), strict=True))
    entry = {"new": 1.0}
    teams = (["new"], ["joe"])
    rater = Rater.after(rate(table, "even"))
    now = datetime.fromtimestamp(service.clock() / 1e6, UTC)
    query = StakesQuery(StakeAssumptions(seconds=600.0), None)
    told = LadderQueries(service).prospects("default", teams, query, entry=entry)
    assert told.odds == rater.odds(teams, now, entry=entry) != rater.odds(teams, now)
    assert told.stakes == rater.stakes(teams, query.assumptions, at=now, entry=entry)
    assert service.verify("default").is_equal


def known(service, ladder="default"):
    """All that the context columns have taught, with the names of players."""
    with service.database.read() as store:
        head = store.head(ladder)
        plan = event_rows.read_plan(store, head, head.planned)
        contexts = rating_rows.read_whole_roster(store, head, plan).contexts
        names = dict(store.all("SELECT player, name FROM player"))
    values = {value: contexts.values[row].tobytes() for value, row in contexts.rows.items()}
    pairs = zip(contexts.named_pairs(), contexts.offsets, strict=True)
    return values, {(names[player], *value): record.tobytes() for (player, *value), record in pairs}


def shown(service, ladder="default"):
    return {name: standing.rating for name, standing in everybody(service, ladder).items()}


def rated(matches):
    """What the library makes of a table of the same matches: ratings, and the records of values and of players."""
    declared = [replace(match, context={name: match.context.get(name, "") for name in COLUMNS}) for match in matches]
    ratings = rate(from_matches(declared), rules("even"))
    table = ratings.matches
    names, c = table.player_names, table.history.columns
    state = dict(zip(names, ratings.state["rating"].tolist(), strict=True))
    values = {
        (column.name, value): ratings.ladders[record].tobytes()
        for column in table.context
        for value, record in column.records.items()
    }
    of = {record: value for value, record in ((v, r) for col in table.context for v, r in col.records.items())}
    slots = zip(
        np.repeat(c.player, len(COLUMNS)).tolist(),
        list(COLUMNS) * len(c.player),
        c.context.reshape(-1, len(COLUMNS))[table.history.slot_match].ravel().tolist(),
        c.offset.tolist(),
        strict=True,
    )
    offsets = {
        (names[player], column, of[value]): ratings.offsets[offset].tobytes() for player, column, value, offset in slots
    }
    return state, (values, offsets)


def assert_as_rated(service, matches, ladder="default"):
    state, contexts = rated(matches)
    assert shown(service, ladder) == state
    assert known(service, ladder) == contexts
    assert service.verify(ladder).is_equal


def test_one_by_one_as_a_batch_and_as_an_import_a_ladder_learns_what_a_table_teaches(played):
    matches = recorded()
    assert_as_rated(played, matches)
    made(played, "batch").record_many("batch", [replace(match, ladder="batch") for match in matches])
    made(played, "imported").import_matches("imported", from_matches(matches[:25]))
    played.import_matches("imported", from_matches(matches[25:]))
    played.rebuild("default", whole=True)
    for ladder in ("default", "batch", "imported"):
        assert_as_rated(played, matches, ladder)


def test_maps_count(played):
    without = rate(from_matches([replace(match, context={}) for match in recorded()]), rules("even"))
    state = dict(zip(without.matches.player_names, without.state["rating"].tolist(), strict=True))
    assert shown(played) != state
    played.change_settings("default", {"context": []})
    assert shown(played) == state
    assert played.verify("default").is_equal
    played.change_settings("default", {"context": list(COLUMNS)})
    assert_as_rated(played, recorded())


def test_another_system_ignores_context_and_the_first_one_remembers_it(played):
    before = known(played)
    played.change_rules("default", "elo", rules("elo"))
    elo = rate(from_matches(recorded()), rules("elo"))
    assert shown(played) == dict(zip(elo.matches.player_names, elo.state["rating"].tolist(), strict=True))
    assert played.verify("default").is_equal
    played.change_settings("default", {"context": ["mode"]})
    played.change_settings("default", {"context": list(COLUMNS)})
    played.change_rules("default", "even", rules("even"))
    assert known(played) == before
    assert_as_rated(played, recorded())


def test_corrections_take_back_what_a_match_taught_about_a_map(played):
    before = known(played)
    played.correct("default", Void("m7"))
    played.correct("default", Void("m30"))
    assert known(played) != before
    assert_as_rated(played, [match for match in recorded() if match.id not in ("m7", "m30")])
    played.correct("default", Unvoid("m30"))
    played.correct("default", Unvoid("m7"))
    assert known(played) == before
    played.correct("default", Ban("kim"))
    assert_as_rated(played, [match for match in recorded() if "kim" not in str(match)])
    played.correct("default", Reinstate("kim"))
    assert known(played) == before


def test_a_corrected_map_counts_as_if_it_had_always_been_right(played):
    matches = recorded()
    wrong = matches[20]
    right = replace(wrong, id="m20-right", context={**wrong.context, "map": "castle"})
    played.correct("default", Void("m20"))
    insertion, _ = played.insertion("default", [right])
    preview = played.preview("default", insertion)
    effect = played.correct("default", insertion)
    assert [move._replace(player="") for move in preview.moves] == [move._replace(player="") for move in effect.moves]
    assert_as_rated(played, [*matches[:20], right, *matches[21:]])


def test_a_merged_player_has_met_the_maps_of_both(service):
    made(service)
    matches = recorded()
    twin = {"kim": "kim2"}
    for match in matches:
        late = int(match.id[1:]) > 30
        names = [[twin.get(p.player, p.player) if late else p.player for p in team.players] for team in match.teams]
        teams = tuple(
            Team.of(*own, place=team.place, score=team.score) for own, team in zip(names, match.teams, strict=True)
        )
        service.record(replace(match, teams=teams))
    service.merge("kim2", "kim")
    assert_as_rated(service, matches)


@pytest.mark.parametrize("reset", ["full", "soft", "none"])
def test_a_season_keeps_what_is_known_about_maps_and_a_full_reset_forgets_the_players(played, reset):
    values, players = known(played)
    played.open_season("default", reset=reset)
    assert known(played) == (values, {} if reset == "full" else players)
    assert played.verify("default").is_equal
    played.record(replace(recorded()[0], id="next", played_at=after(100)))
    assert played.verify("default").is_equal
    after_one = known(played)
    played.correct("default", Void("next"))
    played.correct("default", Unvoid("next"))
    assert known(played) == after_one
    played.rebuild("default", whole=True)
    assert known(played) == after_one


def test_verify_finds_an_altered_context_and_altered_records(played):
    with played.database.write() as store:
        store.run("UPDATE player_offset SET record = (SELECT MAX(record) FROM player_offset) WHERE context = 'map'")
    differences = played.verify("default").differences
    assert differences == ("what was learned by context columns is not what a replay gives",)
    played.rebuild("default", whole=True)
    assert_as_rated(played, recorded())
    with played.database.write() as store:
        store.run("UPDATE event SET context = ? WHERE id = 'm3'", '{"map":"castle"}')
    (damage,) = played.verify("default").damage
    assert "match 'm3' at position 5 was altered" in damage


def test_the_same_id_with_another_map_is_a_conflict(played):
    match = recorded()[0]
    assert played.record(match).position == 2
    (outcome,) = played.record_many("default", [replace(match, context={**match.context, "map": "castle"})])
    assert "with other content" in str(outcome)


LINE_UP = [["ann", "new"], ["bob", "kim", "eve"]]
PLACES = [{"map": "dust", "mode": "duel"}, {"map": "mill"}, {"map": "unheard of"}, {}]


def library(matches):
    """A rater after the same matches, with the columns in the order in which the ladder declares them."""
    declared = [replace(match, context={name: match.context.get(name, "") for name in COLUMNS}) for match in matches]
    return Rater.after(rate(from_matches(declared), rules("even")), "default")


def test_odds_and_stakes_are_those_of_the_place(played):
    rater, at = library(recorded()), after(200)
    played.clock.now = int(at.timestamp() * 1e6)
    query = StakesQuery(StakeAssumptions(seconds=600), None)
    seen = set()
    for context in PLACES:
        answer = LadderQueries(played).prospects("default", LINE_UP, query, context)
        assert answer.odds == rater.odds(LINE_UP, at, context)
        assert answer.stakes == rater.stakes(LINE_UP, StakeAssumptions(seconds=600), at=at, context=context)
        seen.add(answer.odds.expected)
    assert len(seen) == len(PLACES)
    assert LadderQueries(played).prospects("default", LINE_UP).odds == rater.odds(LINE_UP, at)


def test_stakes_are_what_the_match_on_that_map_then_brings(played):
    at, sides = after(200), (["ann", "bob"], ["kim", "joe"])
    played.clock.now = int(at.timestamp() * 1e6)
    assumed = StakeAssumptions(win_score=3, loss_score=1)
    for number, context in enumerate([PLACES[0], {"map": "mill", "mode": ""}, {"map": "unheard of", "mode": "ctf"}]):
        asked = LadderQueries(played).prospects("default", sides, StakesQuery(assumed, None), context).stakes
        teams = tuple(Team.of(*side, place=1 + index, score=3.0 - 2 * index) for index, side in enumerate(sides))
        receipt = played.record(Match(f"then{number}", at, teams, "default", context=context))
        after_it = [line.change.after for team in receipt.teams for line in team]
        expected = [one.after.win for one in asked.players[:2]] + [one.after.loss for one in asked.players[2:]]
        assert after_it == expected


def test_only_declared_columns_can_be_asked_for(played):
    with pytest.raises(UnknownNameError, match=r"context column 'patch'.*map.*mode"):
        LadderQueries(played).prospects("default", LINE_UP, None, {"patch": "1.7"})


def test_queues_predict_a_match_on_each_map_as_the_odds_do(played):
    at = after(200)
    played.clock.now = int(at.timestamp() * 1e6)
    with played.database.read() as store:
        ids = {name: player for player, name in store.all("SELECT player, name FROM player")}
    line = ["kim", "bob", "ann", "joe", "eve", "cat", "dan", "bob"]
    predicted = LadderOdds(played.database, "default", list)
    predicted.begin_tick(played.clock.now)
    line_ups = LineUps(2, np.array([0, 2, 4, 6, 8]), np.array([ids[name] for name in line]), np.empty(0))
    for context in (*PLACES, {"map": "dust", "patch": "1"}):
        known = {name: value for name, value in context.items() if name != "patch"}
        odds = [
            LadderQueries(played).prospects("default", [line[at : at + 2], line[at + 2 : at + 4]], None, known).odds
            for at in (0, 4)
        ]
        assert predicted(line_ups, context).tolist() == [one.expected[0] for one in odds]
    assert predicted(line_ups).tolist() == predicted(line_ups, {"patch": "v1"}).tolist()  # which is not declared


def test_context_is_exported_and_read_back_and_rated_as_the_ladder_was(played, tmp_path):
    path = tmp_path / "matches.csv"
    export(played.database, "default", Files(matches=path), 0)
    matches = {match.id: match for match in recorded()}
    exported = {match.id: match.context for match in read(path, context=[*COLUMNS, "patch"]).to_matches("default")}
    for match_id, context in exported.items():
        assert {k: v for k, v in context.items() if v} == {k: v for k, v in matches[match_id].context.items() if v}
    with pytest.warns(EvenmatchWarning, match="unknown column 'patch' not read"):
        ratings = rate(read(path, context=COLUMNS), rules("even"))
    state = dict(zip(ratings.matches.player_names, ratings.state["rating"].tolist(), strict=True))
    assert shown(played) == state
    _, profile = LadderQueries(played).match("default", "m1")
    assert profile.context == {name: value for name, value in matches["m1"].context.items() if value}


def test_matches_without_context_have_the_digests_they_always_had(service):
    service.create_ladder("default", "elo", rules("elo"))
    service.record(Match("m", after(1), (Team.of("a", place=1), Team.of("b", place=2)), "default"))
    with service.database.read() as store:
        ((digest, context),) = store.all("SELECT digest, context FROM event WHERE id = 'm'")
    assert context is None
    assert bytes(digest).hex() == "9f4f14b78a7bb95d271939408202bae1"  # before there were contexts


@pytest.mark.parametrize(
    "context",
    [{"player": "x"}, {"a b": "x"}, {"map": "x" * 65}, {"map": "a\nb"}, dict.fromkeys("abcde", "x")],
)
def test_a_match_with_a_context_that_cannot_be_stored_is_refused(context):
    with pytest.raises(InputError, match="expected"):
        Match("m", after(1), (Team.of("a", place=1), Team.of("b", place=2)), "default", context=context)


def contexts_of(tmp_path, *maps, column="map"):
    """A table of matches that are an hour apart, each on one of these maps."""
    path = tmp_path / "played.csv"
    path.write_text(
        f"match_id,played_at,team,player,place,{column}\n"
        + "".join(
            f"m{number},{after(number).isoformat()},{team},{team}{number % 3},{place},{name}\n"
            for number, name in enumerate(maps)
            for place, team in enumerate("ab", 1)
        )
    )
    return read(path, context=[column])


@pytest.mark.parametrize("name", ["x" * 65, "du\tst", "du\u200bst"], ids=["long", "tab", "invisible"])
def test_an_import_of_values_that_cannot_be_stored_adds_all_others_or_nothing(service, tmp_path, monkeypatch, name):
    monkeypatch.setattr(imports, "AT_ONCE", 2)  # matches per transaction
    made(service)
    table = contexts_of(tmp_path, "mill", "dust", "dust", name, "mill", name)
    with pytest.raises(BadRowsError, match="2 problems") as refused:
        service.check_import("default", table)
    assert [problem.match_id for problem in refused.value.problems] == ["m3", "m5"]
    assert all("context column 'map' is " in problem.reason for problem in refused.value.problems)
    assert [problem.line for problem in refused.value.problems] == [8, 12]
    with pytest.raises(BadRowsError, match="2 problems"):
        service.import_matches("default", table)
    assert service.ladder("default").matches == 0
    assert service.import_matches("default", table, skip_bad=True).added == 4


def test_an_import_with_a_column_that_cannot_be_stored_adds_nothing(service, tmp_path):
    made(service)
    table = contexts_of(tmp_path, "mill", "dust", column="my map")
    for refuses in (service.check_import, service.import_matches):
        with pytest.raises(InputError, match="context column 'my map': expected up to 32 letters"):
            refuses("default", table, skip_bad=True)
    assert service.ladder("default").matches == 0


@pytest.mark.parametrize("columns", [["player"], ["a b"], ["map", "map"], list("abcde"), ["é"]])
def test_a_ladder_declares_at_most_four_names_without_a_meaning_of_their_own(columns):
    with pytest.raises(BadParameterError, match="context="):
        Settings(context=tuple(columns))


def test_the_history_of_a_ladder_has_its_columns_for_other_rules_to_be_tried_on(played):
    history = read_history(played.database, "default")
    assert [column.name for column in history.matches.context] == list(COLUMNS)
    ratings = rate(history.matches, history.rules)
    state = dict(zip(ratings.matches.player_names, ratings.state["rating"].tolist(), strict=True))
    assert shown(played) == state
    played.change_settings("default", {"context": ["weather", "map"]})
    weathered = read_history(played.database, "default")
    assert set(weathered.matches.context[0].records) == {""}
    assert set(weathered.matches.context[1].records) == {"", "dust", "mill"}


def test_a_profile_says_on_which_maps_a_player_is_better(service):
    """Ann wins on dust, loses on mill and plays only twice on castle, where nothing is said."""
    made(service)
    for number in range(26):
        place = ("dust", "mill")[number % 2] if number < 24 else "castle"
        sides = ("ann", "bob") if place == "dust" else ("bob", "ann")
        teams = tuple(Team.of(name, place=1 + index) for index, name in enumerate(sides))
        service.record(Match(f"m{number}", after(number), teams, "default", context={"map": place, "mode": "duel"}))
    skills = LadderQueries(service).profile("default", "ann").context
    assert list(skills) == ["map"]  # there is one mode
    dust, mill = skills["map"]
    assert (dust.value, dust.matches, mill.value, mill.matches) == ("dust", 12, "mill", 12)
    assert dust.low < dust.points < dust.high
    assert dust.points > 0 > mill.points
    bob_dust, bob_mill = sorted(LadderQueries(service).profile("default", "bob").context["map"])
    line = [["ann"], ["bob"]]
    lead = {
        skill.value: LadderQueries(service).prospects("default", line, None, {"map": skill.value}).odds.expected[0]
        for skill in (dust, mill)
    }
    gap = np.log(lead["dust"] / (1 - lead["dust"])) - np.log(lead["mill"] / (1 - lead["mill"]))
    points = dust.points - bob_dust.points - mill.points + bob_mill.points
    assert gap * 400 / np.log(10) == pytest.approx(points, rel=0.3)  # 400 points are odds of 10 to 1
    service.correct("default", Void("m0"))
    service.correct("default", Void("m2"))
    service.correct("default", Void("m4"))
    assert LadderQueries(service).profile("default", "ann").context == {}
    service.change_rules("default", "elo", rules("elo"))
    assert LadderQueries(service).profile("default", "ann").context == {}
