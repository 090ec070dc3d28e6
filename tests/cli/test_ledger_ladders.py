"""evenmatch ladder: create, list, show, change."""

import json
from collections import Counter

import pytest

from cli.command_output import DUELS, elo_by_hand, ratings
from evenmatch import rate, rules, write
from evenmatch.lab.ladder.learning import placement_advice
from evenmatch.lab.sample import season


def test_create_makes_the_file_and_show_tells_every_setting_and_parameter(run, tmp_path):
    table = tmp_path / "divisions.csv"
    table.write_text("name,lowest\nlow,1\nhigh,60\n")
    db = tmp_path / "new.db"
    made = run(
        *("ladder", "create", "arena", "--system", "elo", "--param", "k=20", "--param", "start=1000"),
        *("--title", "Arena 6v6", "--placement", 4, "--active-days", 7.5, "--divisions", table),
        *("--division-margin", 1, "--team-size", 6, "--reset", "full", "--factor", 0.25, "--show", "percentile"),
        *("--inactivity", "rating", "--grace-days", 21.5, "--percentile-decay", 0.5, "--percentile-floor", 20),
        *("--rating-decay", 12.5, "--rating-floor", "none", "--rating-stop", "high", "--stomp-margin", 3),
        *("--db", db),
    )
    assert (made.code, db.exists()) == (0, True)
    assert made.out == f"ladder arena: created in {db}, rated by elo\n"
    assert made.err == f"next: evenmatch import MATCHES --ladder arena --db {db}\n"
    told = json.loads(run("ladder", "show", "arena", "--db", db, "--json").out)
    assert told["settings"] == {
        "title": "Arena 6v6",
        "colour": "",
        "team_size": 6,
        "other_sizes": "warn",
        "team_limit": 500,
        "player_limit": 1000,
        "reset": "full",
        "factor": 0.25,
        "show": "percentile",
        "placement": 4,
        "placement_bound": 5.0,
        "placement_most": 50,
        "active_days": 7.5,
        "divisions": [["low", 1], ["high", 60]],
        "division_margin": 1,
        "inactivity": "rating",
        "grace_days": 21.5,
        "percentile_decay": 0.5,
        "percentile_floor": 20,
        "rating_decay": 12.5,
        "rating_floor": None,
        "rating_stop": "high",
        "stomp_margin": 3,
        "side_counts": "time",
        "switch_window": 60.0,
        "names": "warn",
        "context": [],
        "archived": False,
    }
    assert (told["system"], told["parameters"]["k"], told["parameters"]["start"]) == ("elo", 20, 1000)
    assert (told["matches"], told["players"], told["season"], told["rebuild_due_from"]) == (0, 0, 1, None)
    shown = run("ladder", "show", "arena", "--db", db).out
    for words in ("Arena 6v6", "low from 1, high from 60", "up to date with the ledger", "scale", "400"):
        assert words in shown


def test_a_database_is_shown_as_it_was_typed(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for db in ("ünï 100%.db", "sqlite:///two.db"):
        told = db.removeprefix("sqlite:///")
        assert run("ladder", "create", "duel", "--system", "elo", "--db", db).out.startswith(
            f"ladder duel: created in {told}, "
        )
        assert run("ladder", "list", "--db", db).out.startswith(f"{told}: 1 ladder\n")
        assert run("backup", "copy.db", "--db", db, "--replace").out.startswith(f"copy.db: a copy of {told}, ")


def test_only_create_makes_a_file(run, tmp_path, season_file):
    db = tmp_path / "absent.db"
    for line in (
        *(["ladder", "list"], ["ladder", "show", "x"], ["standings"], ["verify"], ["rebuild"], ["season", "list"]),
        *(["import", season_file], ["record", season_file], ["void", "m"], ["ban", "p"], ["player", "show", "p"]),
        *(["backup", tmp_path / "b.db"], ["export", "--ratings", tmp_path / "r.csv"]),
    ):
        ended = run(*line, "--db", db)
        assert (ended.code, ended.out) == (2, ""), line
        assert f"evenmatch ladder create NAME --system S --db {db}" in ended.err
        assert not db.exists()


def test_list_counts_what_each_ladder_holds(run, league):
    assert run("ladder", "create", "other", "--system", "glicko2").code == 0
    told = json.loads(run("ladder", "list", "--json").out)
    assert [(one["name"], one["system"], one["matches"], one["players"]) for one in told] == [
        ("duel", "elo", 11, 6),
        ("other", "glicko2", 0, 0),
    ]
    lines = run("ladder", "list").out.splitlines()
    assert lines[0] == "league.db: 2 ladders"
    assert lines[2].split() == ["duel", "duel", "elo", "11", "6", "1", "open"]


def test_an_archived_ladder_is_read_takes_nothing_and_is_reopened(run, league, tmp_path):
    assert run("ladder", "archive", "duel").out == "ladder duel: archived\n"
    assert run("ladder", "archive", "duel").out == "ladder duel: is already archived\n"
    assert run("ladder", "list").out.splitlines()[2].split()[-1] == "archived"
    more = tmp_path / "more.csv"
    more.write_text("match_id,played_at,player,team,place\nx1,2026-03-01,ann,1,1\nx1,2026-03-01,bob,2,2\n")
    refused = run("import", more, "--ladder", "duel")
    assert refused.code != 0
    assert "is archived" in refused.err
    assert run("standings", "--ladder", "duel").code == 0
    assert run("ladder", "reopen", "duel").code == 0
    assert run("import", more, "--ladder", "duel").code == 0


def test_the_end_of_a_season_is_seen_before_it_is_made(run, league):
    before = ratings(run)
    seen = json.loads(run("season", "open", "--preview", "--json").out)
    assert {one["player"]: one["before"] for one in seen["moves"]} == pytest.approx(before)
    start = 1500.0
    assert {one["player"]: one["after"] for one in seen["moves"]} == pytest.approx(
        {player: start + (rating - start) / 2 for player, rating in before.items()}
    )
    assert ratings(run) == before
    assert len(json.loads(run("season", "list", "--json").out)["seasons"]) == 1


def test_import_gives_what_elo_by_hand_gives(run, league):
    assert ratings(run) == pytest.approx(elo_by_hand(DUELS), rel=1e-12)


def test_a_parameter_from_the_start_rates_all_anew_and_keeps_the_others(run, league):
    assert run("ladder", "change", "duel", "--param", "start=1500", "--param", "scale=400").code == 0
    seen = json.loads(run("ladder", "change", "duel", "--param", "k=20", "--preview", "--json").out)
    assert seen["preview"] is True
    assert {move["player"]: move["after"] for move in seen["moves"]} == pytest.approx(elo_by_hand(DUELS, k=20))
    assert ratings(run) == pytest.approx(elo_by_hand(DUELS))
    ended = run("ladder", "change", "duel", "--param", "k=20")
    assert ended.code == 0
    assert "ladder 'duel' is rated by elo from the start: 6 of 6 players move" in ended.out
    assert ended.out.endswith("ladder duel: changed\n")
    assert ratings(run) == pytest.approx(elo_by_hand(DUELS, k=20))
    assert run("ladder", "change", "duel", "--param", "start=1000").code == 0
    told = json.loads(run("ladder", "show", "duel", "--json").out)
    assert (told["parameters"]["k"], told["parameters"]["start"]) == (20, 1000)
    assert run("verify").code == 0


def test_a_parameter_from_now_on_leaves_the_ratings_there_are(run, league, tmp_path):
    assert run("ladder", "change", "duel", "--param", "k=8", "--from", "now").code == 0
    assert ratings(run) == pytest.approx(elo_by_hand(DUELS))
    (tmp_path / "one.csv").write_text("match_id,played_at,team,player,place\nx,2026-02-01,1,e,1\nx,2026-02-01,2,b,2\n")
    assert run("import", "one.csv").code == 0
    assert ratings(run) == pytest.approx(elo_by_hand([("e", "b")], k=8, start=elo_by_hand(DUELS)))
    assert run("verify").code == 0


def test_another_system_takes_its_own_defaults_and_gives_what_rate_gives(run, league, season_file):
    ended = run("ladder", "change", "duel", "--system", "glicko2", "--title", "Duel 1v1")
    assert ended.code == 0
    assert "title: duel" not in ended.out
    assert "title: none → Duel 1v1" in ended.out
    told = json.loads(run("ladder", "show", "duel", "--json").out)
    assert (told["system"], told["settings"]["title"]) == ("glicko2", "Duel 1v1")
    rated = json.loads(run("rate", season_file, "--system", "glicko2", "--ladder", "duel", "--json").out)
    assert told["parameters"] == rated["parameters"]
    assert ratings(run) == {row["player"]: row["rating"] for row in rated["standings"]}


def test_settings_change_alone_and_no_rating_moves(run, league):
    before = ratings(run)
    ended = run("ladder", "change", "duel", "--placement", 5, "--team-size", 1, "--preview")
    assert sorted(ended.out.splitlines()) == ["placement: 2 → 5", "team_size: any → 1"]
    assert ended.err == PREVIEW
    assert json.loads(run("ladder", "show", "duel", "--json").out)["settings"]["placement"] == 2
    assert run("ladder", "change", "duel", "--placement", 5, "--team-size", 1).code == 0
    assert run("ladder", "change", "duel", "--team-size", "none").code == 0
    told = json.loads(run("ladder", "show", "duel", "--json").out)["settings"]
    assert (told["placement"], told["team_size"]) == (5, None)
    assert ratings(run) == before


def test_matches_that_the_new_system_cannot_rate_are_named_and_nothing_changes(run, league, tmp_path):
    (tmp_path / "three.csv").write_text(
        "match_id,played_at,team,player,place\nx3,2026-02-01,a,a,1\nx3,2026-02-01,b,b,2\nx3,2026-02-01,c,c,3\n"
    )
    assert run("import", "three.csv").code == 0
    before = ratings(run)
    seen = json.loads(run("ladder", "change", "duel", "--system", "wager", "--skip-bad", "--preview", "--json").out)
    assert seen["left_out"] == 1
    ended = run("ladder", "change", "duel", "--system", "wager", "--skip-bad", "--preview")
    assert "; 1 match becomes unrated, which the new rules cannot rate\n" in ended.out
    for preview in ([], ["--preview"]):
        ended = run("ladder", "change", "duel", "--system", "wager", *preview)
        assert (ended.code, ended.out) == (1, "")
        assert "match 'x3'" in ended.err
        assert "--skip-bad leaves such matches out" in ended.err
    assert ratings(run) == before
    assert run("ladder", "change", "duel", "--system", "wager", "--skip-bad").code == 0
    assert run("verify").code == 0


def test_rules_that_can_rate_none_of_the_matches_are_refused(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "three.csv").write_text(
        "match_id,played_at,team,player,place\nx3,2026-02-01,a,a,1\nx3,2026-02-01,b,b,2\nx3,2026-02-01,c,c,3\n"
    )
    run("ladder", "create", "free", "--system", "elo")
    run("import", "three.csv")
    for preview in ([], ["--preview"]):
        ended = run("ladder", "change", "free", "--system", "wager", "--skip-bad", *preview)
        assert (ended.code, ended.out) == (1, "")
        assert "none of its 1 matches can be rated" in ended.err


PREVIEW = "this is a preview; nothing has changed. To apply it, run the command again without --preview\n"


def test_one_note_says_that_a_preview_changed_nothing(run, league):
    for line in (
        ["void", "d03"],
        ["ladder", "change", "duel", "--param", "k=20"],
        ["ladder", "change", "duel", "--title", "T"],
    ):
        assert run(*line, "--preview").err == PREVIEW


@pytest.mark.parametrize(
    "named",
    [
        ["--placement", 2],
        ["--active-days", 30],
        ["--param", "k=32"],
        ["--param", "k=32", "--from", "now"],
        ["--system", "elo", "--title", ""],
    ],
    ids=lambda named: " ".join(map(str, named)),
)
def test_a_change_to_what_is_so_already_is_said_and_not_recorded(named, run, league):
    before = league.read_bytes()
    for more in ([], ["--preview"], ["--id", "mine"]):
        ended = run("ladder", "change", "duel", *named, *more)
        assert (ended.code, ended.out) == (0, "ladder duel: nothing to change; it already has all of these values\n")
    told = json.loads(run("ladder", "change", "duel", *named, "--json").out)
    assert (told["moves"], told["changes"], told["ladder"]["events"]) == ([], [], 12)
    assert league.read_bytes() == before


def test_a_parameter_that_held_from_now_on_alone_can_be_made_to_hold_from_the_start(run, league):
    assert run("ladder", "change", "duel", "--param", "k=20", "--from", "now").code == 0
    assert "nothing to change" in run("ladder", "change", "duel", "--param", "k=20", "--from", "now").out
    assert "6 of 6 players move" in run("ladder", "change", "duel", "--param", "k=20").out
    assert ratings(run) == pytest.approx(elo_by_hand(DUELS, k=20))


def test_of_what_is_named_only_what_differs_is_told_and_recorded(run, league):
    told = json.loads(run("ladder", "change", "duel", "--placement", 2, "--title", "Duel 1v1", "--json").out)
    assert told["changes"] == [{"name": "title", "from": "", "to": "Duel 1v1"}]
    assert json.loads(run("ladder", "show", "duel", "--json").out)["corrections"][0]["changes"] == told["changes"]


@pytest.mark.parametrize("days", ["inf", "1e12", "36525.5"])
def test_active_days_of_more_than_a_century_are_refused(days, run, league):
    for line in (["ladder", "create", "x", "--system", "elo"], ["ladder", "change", "duel"]):
        ended = run(*line, "--active-days", days)
        assert (ended.code, ended.out) == (2, "")
        assert f"--active-days {days}: expected a number from 0 to 36,525" in ended.err
    assert run("ladder", "change", "duel", "--active-days", 36_525).code == 0


def test_active_days_are_the_same_kind_of_number_wherever_they_are_told(run, league):
    def told():
        of_standings, of_ladder = (
            json.loads(run(*line, "--json").out) for line in (["standings"], ["ladder", "show", "duel"])
        )
        return [repr(of_standings["active_days"]), repr(of_ladder["settings"]["active_days"])]

    assert told() == ["30.0", "30.0"]
    run("ladder", "change", "duel", "--title", "T")
    assert told() == ["30.0", "30.0"]
    run("ladder", "change", "duel", "--active-days", 60)
    assert told() == ["60.0", "60.0"]


def test_show_says_what_each_correction_changed(run, league, tmp_path):
    (tmp_path / "start.csv").write_text("player,rating\nx,1600\ny,1400\n")
    for line in (
        ["void", "d03", "--reason", "a crash"],
        ["ban", "a", "--since", "2026-01-02"],
        ["ban", "b", "--rule", "refund"],
        ["reinstate", "b"],
        ["ladder", "change", "duel", "--placement", 5, "--team-size", 1],
        ["ladder", "change", "duel", "--param", "k=20", "--param", "start=1000", "--from", "now"],
        ["ladder", "change", "duel", "--system", "glicko2"],
        ["player", "rename", "c", "cy"],
        ["player", "merge", "f", "--into", "e", "--yes"],
        ["import", "start.csv", "--ratings"],
        ["season", "open", "--title", "Winter", "--factor", 0.25],
    ):
        assert run(*line).code == 0, line
    shown = run("ladder", "show", "duel").out
    assert "11, and 11 corrections and changes" in shown
    table = shown[shown.index("Corrections and changes (11)") :].splitlines()[2:13]
    at = table[0].index("match-voided")
    assert [" ".join(line[at:].split()) for line in table] == [
        "match-voided d03 a crash",
        "player-banned a, void, since 2026-01-02T00:00:00Z –",
        "player-banned b, refund –",
        "player-reinstated b –",
        "settings-changed placement: 2 → 5; team_size: any → 1 –",
        "rules-changed k: 32 → 20; start: 1500 → 1000, from now on –",
        "rules-changed system: elo → glicko2, from the start –",
        "player-renamed now cy –",
        "player-merged f into e –",
        "ratings-started 2 players –",
        "season-opened Winter, factor 0.25 –",
    ]
    told = json.loads(run("ladder", "show", "duel", "--json").out)
    assert told["corrections"][4]["changes"] == [
        {"name": "placement", "from": 2, "to": 5},
        {"name": "team_size", "from": None, "to": 1},
    ]


def test_the_creation_is_no_correction(run, league):
    assert "11, and 0 corrections and changes" in run("ladder", "show", "duel").out
    told = json.loads(run("ladder", "show", "duel", "--json").out)
    assert (told["corrections"], told["made_at"][:2]) == ([], "20")


def test_show_lists_the_corrections_with_their_reasons(run, league):
    run("void", "d03", "--reason", "a crash")
    run("ban", "a", "--since", "2026-01-02")
    told = json.loads(run("ladder", "show", "duel", "--json").out)["corrections"]
    assert [(one["kind"], one["match_id"], one["player"], one["reason"]) for one in told] == [
        ("match-voided", "d03", None, "a crash"),
        ("player-banned", None, "a", None),
    ]
    assert "a crash" in run("ladder", "show", "duel").out


def counts_of(matches):
    """Completed matches by player."""
    parts = [part for match in matches for team in match.teams for part in team.players]
    return Counter(part.player for part in parts if not part.quit)


def test_advice_names_the_matches_after_which_percentiles_have_steadied(run, tmp_path):
    db, matches = tmp_path / "season.db", tmp_path / "season.csv"
    played = season(3, players=80, matches=900).matches
    write(played, matches)
    assert run("ladder", "create", "arena", "--system", "wager", "--placement", 7, "--db", db).code == 0
    assert run("import", matches, "--ladder", "arena", "--db", db).code == 0
    expected = placement_advice(rate(played, rules("wager"), journal=True), 12)
    told = json.loads(run("ladder", "advise", "arena", "--move", 12, "--db", db, "--json").out)
    assert (told["placement"], told["present"], told["bound"]) == (expected.placement, 7, 12)
    assert [step["completed"] for step in told["steps"]] == [step.completed for step in expected.steps]
    assert told["steps"][3]["mean"] == pytest.approx(expected.steps[3].mean)
    done = {name: count for name, count in counts_of(played.to_matches("arena")).items() if count >= 8}
    assert told["auto"] == expected.auto._asdict()
    assert (told["auto"]["players"], 8 <= told["auto"]["low"] <= told["auto"]["middle"]) == (len(done), True)
    ended = run("ladder", "advise", "arena", "--move", 12, "--db", db)
    assert ended.code == 0
    assert f"after {expected.placement} matches the next one moves a percentile by less than 12" in ended.out
    assert f"placed {expected.auto.placed} of the {len(done)} players with enough matches: half of them" in ended.out
    change = run("ladder", "change", "arena", "--placement", "auto", "--placement-bound", 12, "--db", db)
    assert change.code == 0
    unlimited = run("ladder", "change", "arena", "--placement-most", 100_000, "--active-days", 36_500, "--db", db)
    assert unlimited.code == 0
    listed = json.loads(run("standings", "--ladder", "arena", "--db", db, "--json").out)
    assert (listed["placement"], abs(listed["listed"] - expected.auto.placed) <= 1) == ("auto", True)
    assert "even after" in run("ladder", "advise", "arena", "--move", 0.01, "--db", db).out
    refused = run("ladder", "advise", "arena", "--move", 0, "--db", db)
    assert (refused.code, "expected more than 0, at most 100" in refused.err) == (2, True)


def test_advice_needs_matches(run, league):
    refused = run("ladder", "advise", "duel")
    assert refused.code != 0
    assert "too few matches for advice" in refused.err


def test_decay_is_foreseen_then_done_once(run, league):
    assert run("ladder", "decay", "duel").code != 0  # the ladder's rule is another
    change = ["--inactivity", "rating", "--rating-decay", 10, "--placement", 1]
    assert run("ladder", "change", "duel", *change).code == 0
    before = ratings(run)
    refused = run("ladder", "decay", "duel", "--days", 3)
    assert (refused.code, "--days 3 is only for --preview" in refused.err) == (2, True)
    assert "inactivity lowers no rating" in run("ladder", "decay", "duel").out  # all grace days begin with the rule
    assert "inactivity lowers no rating" in run("ladder", "decay", "duel", "--preview", "--days", 20).out
    told = json.loads(run("ladder", "decay", "duel", "--preview", "--days", 22, "--json").out)
    assert {move["player"]: round(move["after"] - before[move["player"]], 6) for move in told["moves"]} == {
        name: -min(10.0, round(rating - 1500, 6)) for name, rating in before.items() if rating > 1500
    }
    assert ratings(run) == before


# Four matches on a ladder of teams of two: full teams, one player short twice, and two against three of whom one quit
UNEVEN = """\
match_id,played_at,team,player,place,quit
m1,2026-02-01T12:00:00Z,1,a,1,
m1,2026-02-01T12:00:00Z,1,b,1,
m1,2026-02-01T12:00:00Z,2,c,2,
m1,2026-02-01T12:00:00Z,2,d,2,
m2,2026-02-02T12:00:00Z,1,a,1,
m2,2026-02-02T12:00:00Z,2,c,2,
m2,2026-02-02T12:00:00Z,2,d,2,
m3,2026-02-03T12:00:00Z,1,a,1,
m3,2026-02-03T12:00:00Z,1,b,1,
m3,2026-02-03T12:00:00Z,2,d,2,
m4,2026-02-04T12:00:00Z,1,a,1,
m4,2026-02-04T12:00:00Z,1,b,1,
m4,2026-02-04T12:00:00Z,2,c,2,
m4,2026-02-04T12:00:00Z,2,d,2,true
m4,2026-02-04T12:00:00Z,2,e,2,
"""
SIZES = "1 against 2 players; expected teams of 2, the ladder's team_size"


@pytest.mark.parametrize("command", ["import", "record"])
def test_a_ladder_warns_of_teams_of_other_sizes_by_kind(command, run, tmp_path, monkeypatch):
    monkeypatch.setenv("EVENMATCH_DB", str(tmp_path / "sizes.db"))
    (tmp_path / "uneven.csv").write_text(UNEVEN)
    assert run("ladder", "create", "pairs", "--system", "elo", "--team-size", "2").code == 0
    ended = run(command, tmp_path / "uneven.csv", "--json")
    assert ended.code == 0
    assert "warning: 2 matches have teams of other sizes than 2 (1 against 2: 2)\n" in ended.err
    told = json.loads(ended.out)
    if command == "import":
        assert told["warnings"] == ["2 matches have teams of other sizes than 2 (1 against 2: 2)"]
    else:
        assert [receipt["warnings"] for receipt in told["receipts"]] == [[], [SIZES], [SIZES], []]
    assert "warning" not in run(command, tmp_path / "uneven.csv").err, "these matches are not new"


def test_a_ladder_may_refuse_teams_of_other_sizes_or_take_any(run, tmp_path, monkeypatch):
    monkeypatch.setenv("EVENMATCH_DB", str(tmp_path / "sizes.db"))
    (tmp_path / "uneven.csv").write_text(UNEVEN)
    run("ladder", "create", "pairs", "--system", "elo", "--team-size", "2", "--other-sizes", "refuse")
    ended = run("import", tmp_path / "uneven.csv")
    assert (ended.code, ended.out) == (1, "")
    assert [line.strip() for line in ended.err.splitlines() if "match '" in line] == [
        f"line 6, match 'm2': {SIZES} (the ladder has other_sizes=refuse)",
        f"line 9, match 'm3': {SIZES} (the ladder has other_sizes=refuse)",
    ]
    ended = run("record", tmp_path / "uneven.csv")
    assert (ended.code, ended.err.count(f": {SIZES}")) == (1, 2)
    run("ladder", "change", "pairs", "--other-sizes", "any")
    ended = run("import", tmp_path / "uneven.csv")
    assert (ended.code, "other sizes" in ended.err) == (0, False)
    assert ended.out == "ladder pairs: 2 matches added; 2 there already\n"
