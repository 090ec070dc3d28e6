"""evenmatch void, ban, reinstate, season."""

import json

import pytest

from cli.command_output import DUELS, elo_by_hand, ratings


def ladder_events(run):
    return json.loads(run("ladder", "show", "duel", "--json").out)["events"]


CORRECTIONS = {
    "void": (["void", "d03"], elo_by_hand(DUELS[:2] + DUELS[3:])),
    "ban": (["ban", "a"], elo_by_hand([duel for duel in DUELS if "a" not in duel])),
    "ban since": (
        ["ban", "a", "--since", "2026-01-03T12:00:00Z"],
        elo_by_hand([duel for at, duel in enumerate(DUELS) if "a" not in duel or at < 2]),
    ),
    "refund": (["ban", "a", "--rule", "refund"], elo_by_hand(DUELS, {(at, DUELS[at][1]) for at in range(4)})),
    "refund since": (
        ["ban", "a", "--rule", "refund", "--since", "2026-01-03T12:00:00Z"],
        elo_by_hand(DUELS, {(2, "d"), (3, "e")}),
    ),
}


@pytest.mark.parametrize(("line", "expected"), CORRECTIONS.values(), ids=CORRECTIONS)
def test_a_preview_changes_nothing_and_says_what_then_happens(line, expected, run, league):
    before, at = ratings(run), ladder_events(run)
    seen = json.loads(run(*line, "--preview", "--json").out)
    assert (seen["preview"], ladder_events(run), ratings(run)) == (True, at, before)
    told = run(*line, "--preview")
    assert told.out.startswith("preview: ")
    assert "nothing has changed" in told.err
    done = json.loads(run(*line, "--reason", "why not", "--json").out)
    assert (done.pop("preview"), seen.pop("preview")) == (False, True)
    assert done == seen
    now = ratings(run)
    assert now == pytest.approx(expected, rel=1e-12)
    moved = {name: now.get(name) for name in before if now.get(name) != before[name]}
    assert {move["player"]: move["after"] for move in seen["moves"]} == moved
    sizes = [abs(move["after"] - move["before"]) for move in seen["moves"] if move["after"] is not None]
    assert sorted(sizes, reverse=True) == sizes or None in moved.values()
    assert ladder_events(run) == at + 1
    assert run("verify").code == 0


def test_a_ban_with_an_end_moves_no_rating_and_is_named_where_bans_are(run, league):
    before = ratings(run)
    told = run("ban", "a", "--until", "2099-01-02", "--reason", "insults")
    assert told.out.splitlines() == [
        "player 'a' is banned until 2099-01-02T00:00:00Z, matches count as before: no rating moves",
        "ladder duel: player 'a' is banned until 2099-01-02T00:00:00Z, matches count as before",
    ]
    assert ratings(run) == before
    assert "a, keep, until 2099-01-02T00:00:00Z" in run("ladder", "show", "duel").out
    assert "banned until 2099-01-02 00:00 UTC" in run("player", "show", "a").out
    (shown,) = json.loads(run("player", "show", "a", "--json").out)["ladders"]
    assert (shown["banned"], shown["banned_until"]) == (True, "2099-01-02T00:00:00Z")
    assert run("reinstate", "a").code == 0
    assert ratings(run) == before


def test_the_end_of_a_ban_is_in_the_future(run, league):
    refused = run("ban", "a", "--until", "2001-01-02")
    assert (refused.code, "--until 2001-01-02: expected a span like 90d" in refused.err) == (2, True)
    refused = run("ban", "a", "--until", "7d", "--rule", "void")
    assert "a ban with an end changes no rating" in refused.err
    assert "no such" not in refused.err


def test_the_table_shows_the_twenty_who_move_most(run, league, tmp_path):
    rows = ["match_id,played_at,team,player,place"]
    for at in range(30):
        rows += [f"x{at:02},2026-02-01,1,a,1", f"x{at:02},2026-02-01,2,p{at:02},2"]
    (tmp_path / "more.csv").write_text("\n".join(rows))
    run("import", "more.csv")
    ended = run("void", "x00", "--preview")
    assert "the 20 largest changes are shown" in ended.out
    assert len(ended.out.strip().splitlines()) == 22
    assert len(json.loads(run("void", "x00", "--preview", "--json").out)["moves"]) == 31


def test_a_soft_season_leaves_a_share_of_the_distance_from_the_mean_and_keeps_the_old_standings(run, league):
    before = ratings(run)
    ended = run("season", "open", "--title", "Winter", "--factor", "0.25")
    assert (ended.code, ended.out) == (0, "ladder duel: Winter is open, its season 2\n")
    mean = sum(before.values()) / 6
    expected = {name: mean + 0.25 * (rating - mean) for name, rating in before.items()}
    assert ratings(run) == pytest.approx(expected, rel=1e-12)
    told = json.loads(run("season", "list", "--json").out)["seasons"]
    assert [(one["number"], one["title"], one["closed_at"] is None) for one in told] == [
        (1, "Season 1", False),
        (2, "Winter", True),
    ]
    first = json.loads(run("season", "show", "1", "--json").out)
    assert {row["player"]: row["rating"] for row in first["standings"]} == before
    page = json.loads(run("season", "show", "1", "--page", 2, "--size", 4, "--json").out)
    assert len(page["standings"]) == 2
    assert "Winter" in run("season", "list").out
    assert run("season", "show", "1").out.startswith("duel: Season 1, as it ended on ")
    assert run("void", "d03").code == 0
    again = json.loads(run("season", "show", "1", "--json").out)
    assert {row["player"]: row["rating"] for row in again["standings"]} == before
    assert run("verify").code == 0


def test_seasons_are_told_by_their_number_once_and_pages_have_an_end(run, league):
    run("ladder", "change", "duel", "--title", "Duel 1v1")
    ended = run("season", "open")
    assert (ended.out, ended.err) == (
        "ladder duel: Season 2 is open\n",
        "the final standings of the season before: evenmatch season show 1 --ladder duel\n",
    )
    assert run("season", "open", "--title", "Spring").out == "ladder duel: Spring is open, its season 3\n"
    assert run("season", "show", "1").out.startswith("Duel 1v1: Season 1, as it ended on ")
    ended = run("season", "show", "1", "--page", 9, "--size", 4)
    assert (ended.code, ended.err) == (0, "page 9 is beyond the end: there are 2 pages of 4\n")


def test_where_no_rating_moves_it_says_so_in_one_way(run, league):
    told = "player 'f' is banned, matches are void: no rating moves\n"
    assert run("ban", "f", "--since", "2026-02-01", "--preview").out == f"preview: {told}"
    assert run("void", "d11").code == 0  # all that f played
    assert run("ban", "f").out.splitlines()[0] == told.strip()


def test_a_ban_from_a_time_to_come_says_that_nothing_is_touched_yet(run, league):
    ended = run("ban", "b", "--since", "2099-01-01")
    assert ended.code == 0
    assert "no rating moves" in ended.out
    assert "--since 2099-01-01 is in the future: no match has changed yet" in ended.err
    assert run("ban", "c", "--since", "2026-01-05").err == ""


def test_the_id_of_a_match_given_as_a_player_is_understood(run, league):
    run("void", "d03")
    for match in ("d03", "d04"):
        ended = run("reinstate", match)
        assert (ended.code, ended.out) == (2, "")
        assert f"no player is called '{match}', but a match has this id; to reinstate it: " in ended.err
        assert f"evenmatch reinstate --match {match}\n" in ended.err
    assert "unknown player 'd99'" in run("reinstate", "d99").err


WITH_AN_ID = {
    "void": ["void", "d03", "--reason", "why not"],
    "ban": ["ban", "b", "--rule", "refund", "--since", "2026-01-03"],
    "a parameter": ["ladder", "change", "duel", "--param", "k=20"],
    "a setting": ["ladder", "change", "duel", "--title", "Duel 1v1"],
    "both": ["ladder", "change", "duel", "--param", "k=20", "--title", "Duel 1v1"],
    "season": ["season", "open", "--title", "Winter"],
    "reinstate": ["reinstate", "a"],
    "reinstate a match": ["reinstate", "--match", "d01"],
}


@pytest.mark.parametrize("line", WITH_AN_ID.values(), ids=WITH_AN_ID)
def test_the_same_correction_with_the_same_id_changes_nothing(line, run, league):
    run("ban", "a")
    run("void", "d01")
    assert run(*line, "--id", "mine").code == 0
    at, held = ladder_events(run), ratings(run)
    for more in ([], ["--json"]):
        ended = run(*line, "--id", "mine", *more)
        assert ended.code == 0, ended
        assert "Traceback" not in ended.err
    assert "already" in run(*line, "--id", "mine").out
    assert (ladder_events(run), ratings(run)) == (at, held)


def test_the_same_id_with_other_content_is_a_conflict(run, league):
    assert run("void", "d03", "--id", "mine").code == 0
    for line in (["void", "d04"], ["ban", "b"], ["season", "open"], ["ladder", "change", "duel", "--title", "T"]):
        ended = run(*line, "--id", "mine")
        assert (ended.code, ended.out) == (1, ""), line
        assert "'mine' is already on ladder 'duel', with other content" in ended.err
    assert run("void", "d04", "--id", "").code == 2
