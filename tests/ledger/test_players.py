"""Players: one identity under every name; rename, merge, start from elsewhere, erase."""

import json
import sys

import pytest

from evenmatch import Rater, from_matches, read, rules
from evenmatch.corrections.corrections import Ban, Reinstate, Unvoid, Void
from evenmatch.errors import ConflictError, InputError, UnknownNameError
from evenmatch.ledger import player_rows
from evenmatch.ledger.text import LONGEST, fold
from ledger.sample_matches import duel, dump, everybody, ratings, team_match

pytestmark = pytest.mark.both_databases


def test_a_former_name_still_reaches_a_renamed_player(service, ladder):
    first = service.record(duel(1, "ann", "bob"))
    service.rename("ann", "zoe")
    assert everybody(service).keys() == {"zoe", "bob"}
    assert service.player("ann") == service.player("zoe")
    told = service.record(duel(2, "ann", "bob"))
    assert everybody(service)["zoe"].matches == 2
    assert service.record(duel(2, "ann", "bob")) == told
    again = service.record(duel(1, "ann", "bob"))
    assert (again.position, again.teams[0][0].change.after) == (first.position, 1516.0)
    service.rename("zoe", "ann")  # and back
    assert everybody(service).keys() == {"ann", "bob"}
    assert service.verify("default").is_equal


def test_a_name_that_is_taken_or_empty_is_no_new_name(service, ladder):
    service.record(duel(1, "ann", "bob"))
    service.rename("ann", "zoe")
    rows = dump(service)
    for name in ("bob", "", " ", "a\0"):
        with pytest.raises((ConflictError, InputError)):
            service.rename("zoe", name)
    with pytest.raises(ConflictError):
        service.rename("bob", "ann")  # a former name is taken, too
    with pytest.raises(UnknownNameError):
        service.rename("nobody", "somebody")
    assert dump(service) == rows


def test_merged_players_are_one_who_played_all_matches_of_both_on_every_ladder(service, ladder):
    service.create_ladder("other", "elo", rules("elo"))
    told = [duel(1, "smurf", "bob"), duel(2, "ann", "cat"), duel(3, "bob", "ann"), duel(4, "smurf", "cat")]
    for one in told:
        service.record(one)
    service.record(duel(1, "dan", "smurf", ladder="other"))
    assert service.merge("smurf", "ann") == ["default", "other"]
    rater = Rater(rules("elo"))
    for one in [duel(1, "ann", "bob"), *told[1:3], duel(4, "ann", "cat")]:
        rater.rate(one)
    assert ratings(service) == {name: rater.rating(name) for name in ("ann", "bob", "cat")}
    assert ratings(service, "other") == {"dan": 1516.0, "ann": 1484.0}
    service.record(duel(5, "smurf", "dan"))
    assert everybody(service)["ann"].matches == 5
    service.correct("default", Ban("smurf"))  # so of ann
    assert ratings(service) == {}
    service.correct("default", Reinstate("ann"))
    assert all(service.verify(name).is_equal for name in ("default", "other"))


def test_players_who_met_are_not_merged_on_any_ladder(service, ladder):
    service.create_ladder("other", "elo", rules("elo"))
    for one in (duel(1, "a", "x"), duel(2, "b", "x"), duel(1, "a", "b", ladder="other")):
        service.record(one)
    rows = dump(service)
    with pytest.raises(ConflictError, match="both played in match 'm1' of ladder 'other'"):
        service.merge("a", "b")
    assert dump(service) == rows


def test_players_begin_at_ratings_from_elsewhere_and_go_on_from_there(service, ladder):
    assert service.start_ratings("default", {"ann": 1700.0, "bob": 1500.0}) == 2
    assert ratings(service) == {"ann": 1700.0, "bob": 1500.0}
    service.record(duel(1, "ann", "cat"))
    gain = 32 / (1 + 10 ** (200 / 400))
    assert ratings(service)["ann"] == pytest.approx(1700 + gain, rel=1e-12)
    service.correct("default", Void("m1"))
    assert ratings(service)["ann"] == 1700.0
    assert service.verify("default").is_equal


def test_a_starting_rating_of_minus_zero_is_recorded_as_zero(service, ladder):
    service.start_ratings("default", {"ann": -0.0, "bob": 1500.0}, "start")
    assert service.start_ratings("default", {"ann": 0.0, "bob": 1500.0}, "start") == 0  # the same ratings
    assert str(ratings(service)["ann"]) == "0.0"
    assert service.verify("default").is_equal


def test_starting_ratings_are_all_refused_if_one_is_impossible_or_its_player_has_played(service, ladder):
    service.record(duel(1, "ann", "bob"))
    service.rename("ann", "zoe")
    rows = dump(service)
    for told in ({"cat": 1600.0, "zoe": 1.0}, {"ann": 1600.0}, {"cat": float("nan")}, {"cat": 1e300}, {}):
        with pytest.raises(InputError):
            service.start_ratings("default", told)
    assert dump(service) == rows


def test_starting_ratings_survive_a_soft_season_and_a_season_sat_out(service, ladder, clock):
    service.start_ratings("default", {"zed": 1900.0})
    service.record(duel(1, "ann", "bob"))  # the mean of who played is 1500
    clock.move(days=1)
    service.open_season("default", reset="soft", factor=0.5)
    assert ratings(service) == {"zed": 1700.0, "ann": 1508.0, "bob": 1492.0}
    clock.move(days=1)
    service.record(duel(300, "cat", "dan"))
    service.open_season("default", reset="soft", factor=0.5)  # nobody but cat and dan played
    assert ratings(service) == {"zed": 1600.0, "ann": 1504.0, "bob": 1496.0, "cat": 1508.0, "dan": 1492.0}
    assert service.verify("default").is_equal


SECRET = "Zyx Wvut"


@pytest.fixture
def labelled(tmp_path):
    """Matches whose teams are labelled by their players, as in many files of free-for-alls."""
    file = tmp_path / "matches.csv"
    rows = [
        f"x{at},2026-01-05,default,{name},{name},{at + place}"
        for at in range(2)
        for place, name in enumerate((SECRET, "bob"), 1)
    ]
    file.write_text("match_id,played_at,ladder,team,player,place\n" + "\n".join(rows) + "\n")
    return read(file)


def test_an_erased_player_leaves_no_trace_of_any_name(service, ladder, labelled):
    service.record(duel(1, "ann", SECRET))
    service.import_matches("default", labelled)
    service.record(duel(3, f"{SECRET} alt", "cat"))
    service.merge(f"{SECRET} alt", SECRET)
    service.rename(SECRET, f"new {SECRET}")
    service.correct("default", Ban(SECRET, reason=f"{SECRET} cheats"))
    service.correct("default", Reinstate(SECRET))
    before, rated = everybody(service), ratings(service)
    pseudonym = service.erase(SECRET)
    assert SECRET in repr(before)
    for table, rows in dump(service).items():
        assert not [row for row in rows if "Zyx" in row], table
    assert ratings(service) == {pseudonym if "Zyx" in name else name: rating for name, rating in rated.items()}
    with pytest.raises(UnknownNameError):
        service.player(SECRET)
    assert service.search("Zyx") == []
    assert service.verify("default").is_equal


def test_a_reason_about_others_that_names_an_erased_player_goes_too(service, ladder):
    service.record(duel(1, "ann", SECRET))
    service.correct("default", Void("m1", f"{SECRET} lost connection"))
    service.erase(SECRET)
    assert not [row for rows in dump(service).values() for row in rows if "Zyx" in row]


def test_a_report_sent_again_after_an_erasure_does_not_tell_whose_name_it_was(service, ladder):
    service.record(duel(1, "ann", SECRET))
    service.record(duel(2, f"{SECRET} alt", "bob"))
    service.merge(f"{SECRET} alt", SECRET)
    pseudonym = service.erase(SECRET)
    rows = dump(service)
    answers = []
    for name in (SECRET, "somebody else", pseudonym, "bob"):
        with pytest.raises(ConflictError, match="with a player who has been erased since") as same:
            service.record(duel(1, "ann", name))
        with pytest.raises(ConflictError) as merged:
            service.record(duel(2, name, "cat"))
        answers.append((str(same.value), str(merged.value)))
    assert len(set(answers)) == 1  # whatever was sent
    assert pseudonym not in str(answers)
    assert dump(service) == rows
    other, kept = service.record_many("default", [duel(1, "ann", SECRET), duel(3, "ann", "bob")])
    assert isinstance(other, ConflictError)
    assert kept.position > 2


def test_an_erased_players_matches_can_be_imported_again_without_bringing_the_name_back(service, ladder):
    service.record(duel(1, "ann", SECRET))
    service.erase(SECRET)
    service.import_matches("default", from_matches([duel(1, "ann", SECRET)]))
    assert "Zyx" not in json.dumps(dump(service))
    service.record(duel(2, "ann", SECRET))  # somebody of that name, who begins anew
    assert everybody(service)[SECRET].matches == 1
    assert [name for name, _ in service.named(service.view("default").snapshot.page(1, 9))] == ["ann"]


def test_a_player_is_found_by_a_part_of_the_name_whatever_its_case_and_signs(service, ladder):
    service.record(team_match(1, (1, "Ann_100%"), (2, "joanne"), (3, "ANNa"), (4, "b\\ob")))
    assert service.search("ann") == ["ANNa", "Ann_100%", "joanne"]
    assert service.search("_") == ["Ann_100%"]
    assert service.search("%") == ["Ann_100%"]
    assert service.search("\\") == ["b\\ob"]


FOUND_BY = [  # name, text that finds it
    ("Иван", "иВА"),
    ("Quân Echo", "quan echo"),
    ("Qua\u0302n Echo", "quân e"),  # the mark as a character of its own
    ("Zoe", "zoë"),
    ("Łukasz Żółć", "zolc"),
    ("İSTANBUL", "istanbul"),
    ("Straße", "STRASSE"),
    ("Αλέξης", "αλεξησ"),
    ("한국", "한"),
    ("\u0308", "\u0308"),
]


@pytest.mark.parametrize(("name", "text"), FOUND_BY)
def test_a_search_ignores_case_and_diacritics(service, ladder, name, text):
    service.record(team_match(1, (1, name), (2, "bob")))
    assert service.search(text) == [name]
    for few in (True, False):
        assert names_found(service, text, few=few) == [name]


def names_found(service, text, **how):
    """The names that a search on the ladder finds."""
    ladder = service.view("default").head.ladder
    with service.database.read() as store:
        return [name for name, _ in player_rows.search(store, text, 9, ladder, **how)]


def test_a_folded_name_of_any_characters_fits_into_an_index():
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    assert max(len(fold(character).encode()) for character in characters) * LONGEST < 2704


@pytest.mark.parametrize("name", ["elo", "void", "a", "Season 1"])
def test_a_name_that_the_ledger_uses_too_can_be_erased_without_harm(service, ladder, name):
    for number, pair in enumerate([("ann", name), ("bob", "ann"), (name, "bob"), ("eve", "bob")], 1):
        service.record(duel(number, *pair))
    service.correct("default", Ban("eve", "refund", reason=f"a note on {name}: a referee saw it"))
    service.correct("default", Void("m2", f"{name} was not there"))
    before = ratings(service)
    service.erase(name)
    assert service.ladder("default").system == "elo"
    assert {one: rating for one, rating in ratings(service).items() if not one.startswith("erased-")} == {
        one: rating for one, rating in before.items() if one != name
    }
    assert [one.title for one in service.seasons("default")] == ["Season 1"]
    service.rebuild("default", whole=True)
    assert service.verify("default").is_equal
    assert ratings(service)["bob"] == before["bob"]
    reasons = [row for row in dump(service)["event"] if "referee" in row or "was not there" in row]
    assert len(reasons) == 2
    assert "a note on" in "".join(reasons)  # of another player: nothing to do with who was erased


def test_a_merge_carries_along_whoever_was_merged_before(service, ladder):
    """Also on a ladder where only they were, and where nothing of theirs counts at the moment."""
    service.create_ladder("other", "elo", rules("elo"))
    service.record(duel(1, "first", "bob", ladder="other"))
    service.correct("other", Void("m1"))
    service.record(duel(1, "second", "cat"))
    assert service.merge("first", "second") == ["other"]
    service.record(duel(2, "third", "cat"))
    assert service.merge("second", "third") == ["default", "other"]
    service.correct("other", Unvoid("m1"))
    assert ratings(service, "other") == {"third": 1516.0, "bob": 1484.0}
    assert all(service.verify(name).is_equal for name in ("default", "other"))


def test_a_merge_is_no_way_out_of_a_ban_nor_into_an_erased_player(service, ladder):
    service.create_ladder("other", "elo", rules("elo"))
    service.record(duel(1, "cheat", "bob"))
    service.record(duel(2, "clean", "bob"))
    service.correct("other", Ban("cheat"))  # before they ever played there
    for pair in (("cheat", "clean"), ("clean", "cheat")):
        with pytest.raises(ConflictError, match="banned from ladder 'other'"):
            service.merge(*pair)
    service.correct("other", Reinstate("cheat"))
    gone = service.erase("clean")
    for pair in (("cheat", gone), (gone, "cheat")):
        with pytest.raises(ConflictError, match="erased"):
            service.merge(*pair)


def test_a_player_of_an_earlier_season_gets_no_new_starting_rating(service, ladder):
    service.record(duel(1, "ann", "bob"))
    service.open_season("default", reset="full")
    with pytest.raises(InputError, match="'ann' has played"):
        service.start_ratings("default", {"ann": 2500.0, "zed": 1700.0})
    assert service.start_ratings("default", {"zed": 1700.0}) == 1
    assert "zed" in ratings(service)
    assert ratings(service).get("ann", 1500.0) == 1500.0


def test_similar_names_are_looked_for_among_a_bounded_number(service, ladder):
    service.create_ladder("other", "elo", rules("elo"))
    names = [f"player {number}" for number in range(100, 100 + 2 * player_rows.NEAR)]
    others = [duel(at, *names[2 * at : 2 * at + 2], ladder="other") for at in range(player_rows.NEAR)]
    service.import_matches("other", from_matches(others))
    service.record(duel(1, *names[:2]))
    service.record(duel(2, *names[-2:]))
    with service.database.read() as store:
        here = store.head("default").ladder
        assert player_rows.similar(store, "player 4999", here) == ["player 499"]
        assert player_rows.similar(store, "player 4999") == ["player 499"]
        assert set(player_rows.similar(store, "player_x", here)) == {"player 100", "player 101"}
        assert player_rows.similar(store, "zoe", here) == []
        assert player_rows.similar(store, "", here) == []
