"""What goes into a ladder: pipes of any form, one ladder of several, ratings to start from, interruptions."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from cli.command_output import held, rated, ratings
from evenmatch import Match, Service, Team
from evenmatch.accounts.audit_trail import Audit
from evenmatch.recording import imports

HEAD = "match_id,played_at,team,player,place\n"
THREE = HEAD + (
    "n1,2026-02-01T12:00:00Z,home,d,1\nn1,2026-02-01T12:00:00Z,away,zoë,2\n"
    "n2,2026-02-02T12:00:00Z,home,a,1\nn2,2026-02-02T12:00:00Z,away,zoë,1\n"
    "n3,2026-02-03T12:00:00Z,home,e,2\nn3,2026-02-03T12:00:00Z,away,b,1\n"
)


@pytest.mark.parametrize("command", ["import", "record"])
@pytest.mark.parametrize("line", ["hello", "[1,2]", '{"match_id":"m1","pla'])
def test_what_holds_no_json_object_is_told_by_its_line(command, line, run, league, piped, tmp_path):
    piped(f"\n{line}\n")
    ended = run(command, "-")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: standard input: 1 problem; nothing was added\n")
    assert f"line 2: {line!r} is not a JSON object" in ended.err
    assert "(no match would be left without them)" in ended.err
    (tmp_path / "x.jsonl").write_text(f"\n{line}\n")
    ended = run(command, "x.jsonl")
    assert ended.err.startswith("error: x.jsonl: 1 problem; nothing was added\n  line 2: ")
    assert held(run) == (11, 6)


@pytest.mark.parametrize("command", ["import", "record"])
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_pipe_is_told_apart_by_its_contents(command, form, run, league, piped, tmp_path):
    (tmp_path / "three.csv").write_text(THREE, encoding="utf-8")
    run("ladder", "create", "other", "--system", "elo")
    run("import", "three.csv", "--ladder", "other")
    run("export", "--matches", f"x.{form}", "--ladder", "other")
    piped((tmp_path / f"x.{form}").read_bytes())
    ended = run(command, "-", "--ladder", "duel", "--json")
    assert ended.code == 0, ended.err
    assert held(run) == (14, 7)
    assert ratings(run, "other") == rated(run, "three.csv")


def test_a_pipe_that_is_empty_or_closed_is_told_so(run, league, piped, monkeypatch):
    for command in ("import", "record"):
        piped("\n")
        assert "standard input is empty" in run(command, "-").err
    monkeypatch.setattr("sys.stdin", None)
    ended = run("import", "-")
    assert ended.code == 2
    assert "standard input is closed" in ended.err


def test_lines_of_a_pipe_are_told_even_where_the_ledger_refuses_the_match(run, league, piped):
    piped(
        HEAD
        + "n1,2026-02-01,1,a,1\nn1,2026-02-01,2,b,2\nd01,2026-01-01T12:00:00Z,1,b,1\nd01,2026-01-01T12:00:00Z,2,a,2\n"
    )
    ended = run("import", "-")
    assert ended.code == 1
    assert "  line 4, match 'd01': is already on ladder 'duel', with other content" in ended.err


def test_ratings_to_start_from_may_come_through_a_pipe(run, league, piped):
    piped("player,rating\nzoë,1700\nyan,many\n")
    ended = run("import", "-", "--ratings")
    assert ended.code == 1
    assert ended.err.startswith("error: standard input: 1 problem; nothing was added\n  line 3: rating of 'yan'")
    assert "(--skip-bad leaves such rows out)" in ended.err
    piped("player,rating\nzoë,1700\n")
    assert run("import", "-", "--ratings").out == "ladder duel: 1 player starts with a rating from this file\n"


@pytest.mark.parametrize("command", ["import", "record"])
def test_one_ladder_of_several_goes_into_a_ladder_of_another_name(command, run, league, season_file):
    run("ladder", "create", "mixed", "--system", "elo")
    ended = run(command, season_file, "--ladder", "mixed")
    assert ended.code == 2
    assert "has the ladders duel, team, but not 'mixed'; choose one with --from LADDER" in ended.err
    assert ("--pool-ladders" in ended.err) is (command == "import")
    ended = run(command, season_file, "--ladder", "mixed", "--from", "tem")
    assert ended.code == 2
    assert "'tem' (did you mean 'team'?); known: duel, team" in ended.err
    assert run(command, season_file, "--ladder", "mixed", "--from", "team").code == 0
    assert ratings(run, "mixed") == rated(run, season_file, "--ladder", "team")
    assert run(command, season_file, "--ladder", "duel", "--from", "team").code == 0
    assert held(run) == (12, 7)


def test_from_names_a_ladder_of_the_file_even_where_it_holds_one(run, league, tmp_path):
    (tmp_path / "one.csv").write_text(THREE, encoding="utf-8")
    assert run("import", "one.csv", "--from", "duel").code == 2
    assert run("import", "one.csv", "--from", "default").code == 0


def test_ratings_of_one_ladder_of_several_start_another(run, league, tmp_path):
    (tmp_path / "r.csv").write_text(
        "ladder,player,rating\nold,zoë,1700\nteam,zoë,1200\nold,yan,1300\n", encoding="utf-8"
    )
    ended = run("import", "r.csv", "--ratings")
    assert ended.code == 2
    assert "has the ladders old, team, but not 'duel'; choose one with --from LADDER" in ended.err
    assert (
        run("import", "r.csv", "--ratings", "--from", "team").out
        == "ladder duel: 1 player starts with a rating from this file\n"
    )
    assert ratings(run)["zoë"] == 1200


CONTRADICTIONS = [
    (["--from", "team", "--pool-ladders"], "--from imports one ladder of the file"),
    (["--id", "x"], "--id is only for --ratings"),
]


@pytest.mark.parametrize(("options", "said"), CONTRADICTIONS, ids=["from", "id"])
def test_options_that_contradict_each_other_end_with_2(options, said, run, league, season_file):
    ended = run("import", season_file, *options)
    assert ended.code == 2
    assert said in ended.err


def test_ratings_that_the_system_cannot_hold_are_all_named_by_line_and_player(run, league, tmp_path):
    (tmp_path / "start.csv").write_text("player,rating\nzoë,-5\nyan,0\n\nxu,-0.5\nwu,soon\n", encoding="utf-8")
    run("ladder", "create", "cards", "--system", "planeswalker")  # whose points begin at 0
    ended = run("import", "start.csv", "--ratings", "--ladder", "cards")
    assert (ended.code, ended.out) == (1, "")
    lines = ended.err.splitlines()
    assert lines[0] == "error: start.csv: 3 problems; nothing was added"
    assert [line.split(":")[0] for line in lines[1:4]] == ["  line 2", "  line 5", "  line 6"]
    assert "player 'zoë', starting rating -5.0: expected a number from 0" in lines[1]
    assert "player 'xu', starting rating -0.5" in lines[2]
    ended = run("import", "start.csv", "--ratings", "--ladder", "cards", "--skip-bad")
    assert ended.out == "ladder cards: 1 player starts with a rating from this file; 3 bad rows left out\n"


def test_ratings_sent_again_under_the_same_id_change_nothing(run, league, tmp_path):
    (tmp_path / "start.csv").write_text("player,rating\nzoë,1700\nyan,1300\n", encoding="utf-8")
    send = ["import", "start.csv", "--ratings", "--id", "from-the-old-site"]
    assert run(*send).out == "ladder duel: 2 players start with a rating from this file\n"
    (tmp_path / "three.csv").write_text(THREE, encoding="utf-8")
    assert run("import", "three.csv").code == 0
    before = ratings(run)
    again = run(*send)
    assert again.code == 0, again.err
    assert "id from-the-old-site already exists" in again.out
    told = json.loads(run(*send, "--json").out)
    assert (told["players"], told["there_already"]) == (0, 2)
    assert ratings(run) == before
    (tmp_path / "start.csv").write_text("player,rating\nzoë,1700\nyan,1301\n", encoding="utf-8")
    assert run(*send).code == 1


@pytest.fixture
def many(tmp_path):
    """A file of 1,190 matches, each with a place that is none."""
    path = tmp_path / "many.csv"
    rows = [f"m{n},2026-02-01,1,a,0\nm{n},2026-02-01,2,b,2\n" for n in range(1190)]
    path.write_text(HEAD + "".join(rows))
    return path


@pytest.mark.parametrize("command", ["import", "rate"])
def test_many_bad_rows_are_told_by_kind_with_examples_and_json_names_every_match(command, run, league, many):
    """1,190 matches with a place of 0 each, two of which have a time that is none, too."""
    text = many.read_text().replace("m3,2026-02-01,1", "m3,yesterday,1").replace("m9,2026-02-01,1", "m9,2026-02-31,1")
    many.write_text(text)
    line = [command, many, *(["-s", "elo"] if command == "rate" else [])]
    lines = run(*line).err.splitlines()
    nothing = "nothing was rated" if command == "rate" else "nothing was added"
    accepted = "expected a whole number from 1 (the best) upwards"
    assert lines[:5] == [
        f"error: {many}: 1,192 problems; {nothing}",
        f"  1,190 × place is …; {accepted}",
        "      line 2, match 'm0': place is 0",
        "      line 4, match 'm1': place is 0",
        "      line 6, match 'm2': place is 0",
    ]
    assert lines[5].startswith("  2 × played_at is …; expected a timestamp")
    assert lines[6:8] == [
        "      line 8, match 'm3': played_at is 'yesterday'",
        "      line 20, match 'm9': played_at is '2026-02-31'",
    ]
    ten = ", ".join(f"'m{number}'" for number in range(10))
    assert lines[8:] == [
        f"  bad matches: {ten}, and 1,180 more",
        "  (--json lists all of them)",
        "  (no match would be left without them)",
        f"  to see what the file means and how to read it: evenmatch look {many}",
    ]
    document = json.loads(run(*line, "--json").out)
    assert document["bad_matches"] == [f"m{number}" for number in range(1190)]
    assert document["outcome"] == nothing
    first, second = document["problems"]
    assert (first["reason"], first["count"], len(first["matches"])) == (f"place is …; {accepted}", 1190, 1190)
    assert (second["count"], second["matches"]) == (2, ["m3", "m9"])


def test_fifty_refused_matches_are_shown_and_all_with_json(run, league, many):
    many.write_text(many.read_text() + "n1,2026-02-02,1,a,1\nn1,2026-02-02,2,b,2\n")
    ended = run("record", many)
    lines = ended.err.splitlines()
    assert ended.code == 1
    assert lines[49].startswith("refused: line 100, match 'm49': ")
    assert lines[50:] == ["… and 1,140 more refused (--json lists all)"]
    assert len(json.loads(run("record", many, "--json").out)["refused"]) == 1190


def test_an_interrupted_import_says_how_much_is_in_and_goes_on(run, league, tmp_path, monkeypatch):
    rows = [f"n{n},2026-02-01,1,{'abcd'[n % 3]},1\nn{n},2026-02-01,2,d,2\n" for n in range(9)]
    (tmp_path / "more.csv").write_text(HEAD + "".join(rows))
    add, calls = imports.append, []

    def interrupted(*given):
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return add(*given)

    monkeypatch.setattr(imports, "AT_ONCE", 2)
    monkeypatch.setattr(imports, "append", interrupted)
    ended = run("import", "more.csv")
    assert ended == (130, "", "interrupted; 4 matches were added, the same command continues\n")
    assert held(run) == (15, 6)
    assert run("import", "more.csv").out == "ladder duel: 5 matches added; 4 there already\n"
    calls[:] = [1, 1]
    (tmp_path / "last.csv").write_text(HEAD + "z,2026-02-01,1,a,1\nz,2026-02-01,2,d,2\n")
    ended = run("import", "last.csv")
    assert ended == (130, "", "interrupted; nothing was added, the same command continues\n")


def test_an_import_says_how_much_is_in_when_another_process_uses_an_id_of_the_file(run, league, monkeypatch):
    rows = [f"n{n},2026-02-01,1,a,1\nn{n},2026-02-01,2,d,2\n" for n in range(4)]
    (league.parent / "more.csv").write_text(HEAD + "".join(rows))

    def record(_, *, in_context):
        with Service.open("league.db") as other:
            other.record(Match("n3", datetime(2026, 2, 1), (Team.of("b", place=1), Team.of("d", place=2)), "duel"))

    monkeypatch.setattr(imports, "AT_ONCE", 2)
    monkeypatch.setattr(imports, "load_kernels", record)
    ended = run("import", "more.csv")
    assert (ended.code, ended.out) == (1, "")
    assert "more.csv: 1 problem; 2 matches were added before" in ended.err
    assert "line 8, match 'n3': is already on ladder 'duel', with other content" in ended.err
    assert held(run) == (14, 6)


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("record season.csv", "evenmatch.operations.service.Service.record_many"),
        ("standings", "evenmatch.operations.service.Service.view"),
        ("rate season.csv -s elo", "evenmatch.rating.rate"),
        ("ladder list", "evenmatch.operations.service.Service.ladders"),
    ],
)
def test_an_interrupted_command_says_so_and_ends_with_130(line, where, run, league, season_file, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupted)
    assert run(*line.split()) == (130, "", "interrupted\n")


VALUES = [
    ("rate season.csv -s elo --placement -1", "'--placement': '-1'; expected a number from 0 upwards"),
    ("rate season.csv -s elo --active-days nan", "'--active-days': 'nan'; expected a number from 0 upwards"),
    ("rate season.csv -s elo --placement 1.5", "'--placement': '1.5': Input should be a valid integer"),
    ("standings --page 0", "'--page': '0'; expected a number from 1 upwards"),
    ("ladder create x --system elo --factor 2", "--factor 2: expected a number from 0 to 1"),
]


@pytest.mark.parametrize(("line", "said"), VALUES, ids=[line for line, _ in VALUES])
def test_a_value_outside_its_range_is_named(line, said, run, league, season_file):
    ended = run(*line.split())
    assert ended.code == 2
    assert said in " ".join(ended.err.replace("│", " ").split())


LATE = HEAD + "late,2026-01-01T00:30:00Z,0,zoë,1\nlate,2026-01-01T00:30:00Z,1,b,2\n"


def latest(run, player):
    told = json.loads(run("player", "show", player, "--json").out)
    return [match["match_id"] for match in told["ladders"][0]["matches"]]


def test_a_late_match_counts_as_the_newest_and_the_command_says_so_before(run, league, tmp_path):
    (tmp_path / "late.csv").write_text(LATE)
    before = ratings(run)
    ended = run("import", "late.csv")
    assert ended.code == 0
    assert "1 match ended before the newest match of ladder duel (2026-" in ended.err
    assert "counts as if played after it; --at-their-time rates it at the time played" in ended.err
    assert ratings(run)["zoë"] == pytest.approx(1500 + 32 / (1 + 10 ** ((1500 - before["b"]) / 400)))
    assert latest(run, "b")[-1] == "late"


def test_a_late_match_is_inserted_at_its_time_after_a_preview(run, league, tmp_path):
    (tmp_path / "late.csv").write_text(LATE)
    before = ratings(run)
    seen = json.loads(run("import", "late.csv", "--at-their-time", "--preview", "--json").out)
    assert (seen["preview"], seen["added"]) == (True, 0)
    assert ratings(run) == before
    told = run("import", "late.csv", "--at-their-time", "--preview").out
    assert told.startswith("preview: 1 match is inserted at the time played: ")
    ended = run("import", "late.csv", "--at-their-time", "--reason", "it was on paper")
    assert (ended.code, "ladder duel: 1 match is inserted at the time played" in ended.out) == (0, True)
    now = ratings(run)
    assert now["zoë"] == 1516.0  # two newcomers met: half of 32
    moved = {move["player"]: round(move["after"], 6) for move in seen["inserted"]["moves"]}
    assert moved == {name: round(rating, 6) for name, rating in now.items() if rating != before.get(name)}
    with Service.open(str(league)) as service:
        noted = Audit(service.database).page()[0]
    assert (noted.action, noted.body) == ("matches.inserted", {"matches": 1, "reason": "it was on paper"})


def test_late_and_new_matches_of_one_file_both_find_their_place(run, league, tmp_path):
    (tmp_path / "both.csv").write_text(LATE + THREE.removeprefix(HEAD))
    ended = run("import", "both.csv", "--at-their-time")
    assert (ended.code, "before the newest match" in ended.err) == (0, False)
    assert "ladder duel: 3 matches added; 1 match is inserted at the time played" in ended.out
    assert run("verify").out.startswith(f"ladder duel: everything matches ({held(run)[0]} matches")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--preview"], "--preview is only for --at-their-time"),
        (["--reason", "x"], "--reason is only for --at-their-time"),
        (["--ratings", "--at-their-time"], "--ratings imports no matches"),
    ],
)
def test_options_of_late_matches_that_do_not_fit_are_refused(run, league, tmp_path, more, told):
    (tmp_path / "late.csv").write_text(LATE)
    refused = run("import", "late.csv", *more)
    assert (refused.code, told in refused.err) == (2, True)


def test_an_import_of_old_matches_says_that_nobody_is_listed_and_the_command_it_names_lists_them(
    run, season_file, monkeypatch
):
    monkeypatch.chdir(season_file.parent)
    assert run("ladder", "create", "duel", "--system", "elo", "--placement", 2).code == 0
    ended = run("import", season_file, "--ladder", "duel", "--json")
    told, command = ended.err.splitlines()[-1].split(" To list them: evenmatch ")
    assert told == (
        "No player is listed: of 5 players with enough matches, none has completed a match in the last 30 days. "
        "The last match was on 2026-01-11."
    )
    assert json.loads(run("standings", "--json").out)["listed"] == 0
    assert run(*command.split()).code == 0
    assert json.loads(run("standings", "--json").out)["listed"] == 5
    assert "No player is listed" not in run("import", season_file).err


@pytest.mark.parametrize("placement", [1, 5])
def test_an_import_of_new_matches_or_before_anybody_is_placed_does_not_say_so(placement, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = datetime.now(UTC) - timedelta(days=1 if placement == 1 else 1000)
    (tmp_path / "one.csv").write_text(HEAD + f"m1,{ended:%F},home,ann,1\nm1,{ended:%F},away,bob,2\n")
    assert run("ladder", "create", "duel", "--system", "elo", "--placement", placement).code == 0
    assert run("import", "one.csv") == (0, "ladder duel: 1 match added\n", "")


@pytest.mark.parametrize("command", ["import", "record"])
def test_a_file_brings_the_context_columns_that_the_ladder_declares(command, run, league, tmp_path):
    rows = [
        f"c{n},2026-02-{n + 1:02}T12:00:00Z,{side},{name},{place},{('dust', 'mill')[n % 2]}\n"
        for n in range(20)
        for side, name, place in (("x", "a", 1 + n % 2), ("y", "b", 2 - n % 2))
    ]
    (tmp_path / "maps.csv").write_text(HEAD.replace("place\n", "place,map\n") + "".join(rows))
    (tmp_path / "named.csv").write_text(HEAD.replace("place\n", "place,Map Name\n") + "".join(rows))
    (tmp_path / "three.csv").write_text(THREE, encoding="utf-8")
    run("ladder", "create", "arena", "--system", "even", "--context", "map")
    ended = run(command, "maps.csv", "--ladder", "arena")
    assert ended.code == 0, ended.err
    assert "also reading the context columns of ladder arena, map; --context none leaves them out" in ended.err
    told = json.loads(run("rate", "maps.csv", "--system", "even", "--context", "map", "--json").out)
    assert ratings(run, "arena") == {one["player"]: one["rating"] for one in told["standings"]}
    ended = run(command, "three.csv", "--ladder", "arena")
    assert (ended.code, "has no column 'map'" in ended.err) == (1, True)
    assert run(command, "three.csv", "--ladder", "arena", "--context", "none").code == 0
    matches = json.loads(run("ladder", "show", "arena", "--json").out)["matches"]
    run("export", "--matches", "back.csv", "--ladder", "arena")
    head, first, *_ = (tmp_path / "back.csv").read_text(encoding="utf-8").splitlines()
    assert (head.split(",")[-1], first.split(",")[-1]) == ("map", "dust")
    assert run("verify", "--ladder", "arena").code == 0
    wanting = run(command, "named.csv", "--ladder", "arena")
    assert "has no column 'map'; it has 'match_id'" in wanting.err
    assert "'Map Name'" in wanting.err
    assert run(command, "named.csv", "--ladder", "arena", "--columns", "map=Map Name").code == 0
    assert json.loads(run("ladder", "show", "arena", "--json").out)["matches"] == matches
