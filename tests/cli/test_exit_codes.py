"""Exit codes: 0 done, 1 the contents of a file, 2 a wrong command, option, name or value."""

import pytest

from evenmatch.cli import main

# The arguments (SEASON is a good file), and what is said
WRONG = [
    ("frobnicate", "No such command"),
    ("rate", "Missing"),
    ("rate SEASON", "--system"),
    ("rate SEASON -s wager --frobnicate", "No such option"),
    ("rate SEASON -s wager extra", "extra"),
    ("rate SEASON -s wagr", "unknown system 'wagr' (did you mean 'wager'?)"),
    ("rate SEASON -s wager --preset nope", "unknown preset of wager 'nope'"),
    ("rate SEASON -s wager --param stak=1", "did you mean 'stake'?"),
    ("rate SEASON -s wager --param stake", "expected NAME=VALUE"),
    ("rate SEASON -s wager --param stake=", "stake"),
    ("rate SEASON -s wager --param stake=lots", "stake"),
    ("rate SEASON -s wager --param stake=nan", "stake"),
    ("rate SEASON -s wager --param stake=-1", "stake"),
    ("rate SEASON -s wager --ladder nope", "unknown ladder 'nope'; known: duel, team"),
    ("rate SEASON -s wager --as-of tomorrow", "--as-of tomorrow"),
    ("rate SEASON -s wager --as-of 2026-13-01", "--as-of 2026-13-01"),
    ("rate SEASON -s wager --as-of nan", "--as-of nan"),
    ("rate SEASON -s wager --as-of 1767614400000000", "--as-of 1767614400000000"),
    ("rate SEASON -s wager --as-of 2000-01-01", "before the first match"),
    ("rate SEASON -s wager --placement -1", "--placement"),
    ("rate SEASON -s wager --placement 1.5", "--placement"),
    ("rate SEASON -s wager --active-days -1", "--active-days"),
    ("rate SEASON -s wager --active-days soon", "--active-days"),
    ("rate SEASON -s wager --active-days nan", "--active-days"),
    ("rate SEASON -s wager --divisions NOWHERE.csv", "No such file"),
    ("rate SEASON -s wager --divisions FOLDER", "directory"),
    ("rate SEASON -s wager --out x.txt", "suffix '.txt'"),
    ("rate SEASON -s wager --journal FOLDER", "suffix"),
    ("rate NOWHERE.csv -s wager", "No such file"),
    ("rate FOLDER -s wager", "there are no files"),
    ("rate SEASON.txt -s wager", "expected one of .csv, .parquet, .jsonl"),
    ("systems wagr", "unknown system 'wagr'"),
    ("explain SEASON -s wager", "--match"),
    ("explain SEASON -s wager --match nope", "has no match with this id"),
    ("explain SEASON -s nope --match d01", "unknown system"),
    ("explain NOWHERE.csv -s wager --match d01", "No such file"),
    ("odds SEASON -s wager --ladder duel", "--teams"),
    ("odds SEASON -s wager --teams a|vs|b", "choose one with --ladder, or add --pool-ladders"),
    ("odds SEASON -s wager --ladder duel --teams a", "expected"),
    ("odds SEASON -s wager --ladder duel --teams a,b", "expected"),
    ("odds SEASON -s wager --ladder duel --teams a|vs|", "expected"),
    ("odds SEASON -s wager --ladder duel --teams a,,b|vs|c", "expected"),
    ("odds SEASON -s wager --ladder duel --teams a|vs|a", "more than once"),
    ("odds SEASON -s wager --ladder duel --teams a,b,a|vs|c", "more than once"),
    ("odds SEASON -s wager --ladder duel --teams a|vs|b|vs|c", "wager rates matches of 2"),
    ("odds SEASON -s wager --ladder nope --teams a|vs|b", "unknown ladder"),
    ("odds SEASON -s wager --ladder duel --teams a|vs|b --assume seconds=9", "expected --stakes with it"),
    (
        "odds SEASON -s wager --ladder duel --teams a|vs|b --stakes --assume 9",
        "expected NAME=VALUE, for example seconds=900",
    ),
    ("odds SEASON -s wager --ladder duel --teams a|vs|b --stakes --assume second=9", "did you mean 'seconds'"),
    (
        "odds SEASON -s wager --ladder duel --teams a|vs|b --stakes --assume quit_after=9",
        "expected a number from 0 to 1",
    ),
    ("odds SEASON -s wager --ladder duel --as-of never --teams a|vs|b", "--as-of never"),
    ("odds SEASON -s wager --ladder duel --teams a\nb|vs|c", "--teams"),
]


@pytest.mark.parametrize("as_json", [False, True], ids=["words", "json"])
@pytest.mark.parametrize(("line", "said"), WRONG, ids=[line for line, _ in WRONG])
def test_a_wrong_command_option_name_or_value_ends_with_2_and_prints_nothing(
    line, said, as_json, run, season_file, tmp_path
):
    (tmp_path / "folder").mkdir()
    (tmp_path / "season.txt").write_bytes(season_file.read_bytes())
    names = {
        "SEASON": season_file,
        "SEASON.txt": tmp_path / "season.txt",
        "NOWHERE.csv": tmp_path / "nowhere.csv",
        "FOLDER": tmp_path / "folder",
        "x.txt": tmp_path / "x.txt",
    }
    arguments = [names.get(word, word.replace("|", " ")) for word in line.split(" ")]
    ended = run(*arguments, *(["--json"] if as_json and len(arguments) > 1 else []))
    assert ended.code == 2, ended
    assert ended.out == ""
    assert said in " ".join(ended.err.replace("│", " ").split())
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("contents", ["", "a,b\n1,2\n", "match_id;played_at;team;player;place\n", "PAR1", '{"a": 1}\n'])
@pytest.mark.parametrize("command", [["rate"], ["explain", "-m", "x"], ["odds", "--teams", "a vs b"]])
def test_a_file_with_the_wrong_contents_ends_with_1_and_prints_nothing(command, contents, run, tmp_path):
    (tmp_path / "x.csv").write_text(contents)
    ended = run(command[0], tmp_path / "x.csv", "-s", "wager", *command[1:])
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: ")
    assert str(tmp_path / "x.csv") in ended.err


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["rate", "--help"], ["odds", "-h"], ["systems"]])
def test_what_only_asks_ends_with_0(arguments, run):
    ended = run(*arguments)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out


def test_a_bug_is_not_taken_for_an_error_of_the_user(monkeypatch, season_file):
    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("evenmatch.rating.rate", broken)
    monkeypatch.setattr("sys.argv", ["evenmatch", "rate", str(season_file), "-s", "wager"])
    with pytest.raises(ZeroDivisionError):
        main()
