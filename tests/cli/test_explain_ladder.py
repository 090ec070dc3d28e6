"""evenmatch explain on a ladder: as the ledger counts the match now."""

import json

import pytest


@pytest.fixture
def arena(run, tmp_path, monkeypatch):
    """A ladder by wager: duels of unequal players, a draw of three sides, uneven teams with one who quit."""
    monkeypatch.chdir(tmp_path)
    head = "match_id,played_at,team,player,place,team_score,seconds,quit\n"
    rows = [
        "m1,2026-01-01,1,ann,1,7,600,false",
        "m1,2026-01-01,2,bob,2,3,600,false",
        "m2,2026-01-02,red,ann,2,1,600,false",
        "m2,2026-01-02,blue,bob,1,4,600,false",
        "m2,2026-01-02,blue,cat,1,4,200,true",
    ]
    (tmp_path / "arena.csv").write_text(head + "\n".join(rows) + "\n")
    assert run("ladder", "create", "arena", "--system", "wager").code == 0
    assert run("import", "arena.csv").code == 0
    return tmp_path / "arena.csv"


def test_a_match_of_a_ladder_is_told_as_the_same_match_of_a_file(run, arena):
    of_ladder, of_file = run("explain", "--match", "m2"), run("explain", arena, "-m", "m2", "-s", "wager")
    assert (of_ladder.code, of_ladder.err) == (0, "")
    assert of_ladder.out.splitlines()[1:] == of_file.out.splitlines()[1:]
    assert "ann  1.05 → " in of_ladder.out
    assert "(quit)" in of_ladder.out
    told, other = (
        json.loads(run("explain", *more, "--json").out) for more in (["-m", "m2"], [arena, "-m", "m2", "-s", "wager"])
    )
    assert (told["state"], told["reason"], told["ladder"]) == ("rated", None, "arena")
    assert told["teams"] == other["teams"]


def test_a_match_that_is_void_says_so_and_tells_no_changes(run, arena):
    run("void", "m2", "--reason", "wrong score")
    told = run("explain", "-m", "m2", "--ladder", "arena").out
    assert "It changed no rating: the match was voided: wrong score." in told
    assert "→" not in told
    assert "cat  (quit)" in told


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-m m9", "unknown match 'm9' of ladder 'arena'"),
        (
            "-m m1 -s wager",
            "--skip-bad, --columns, --time-format, --zone and --mapping apply to a file",
        ),
        ("-m m1 --ladder duel", "unknown ladder 'duel'"),
        ("arena.csv -m m1", "arena.csv needs a rating system; name one with --system"),
        ("arena.csv -m m1 -s wager --ladder arena", "--ladder is for a database, arena.csv is a file"),
        ("-m m1 --db nowhere.db", "there is no such database"),
    ],
)
def test_what_does_not_go_together_is_refused(run, arena, line, said):
    ended = run("explain", *line.split())
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
