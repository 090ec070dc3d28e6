"""Files in other forms than ours: what is guessed from them, and that they hold the same matches."""

import csv
import io
import random
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenmatch import from_frame, from_wide, rate, read
from evenmatch.errors import BadRowsError, EvenmatchWarning, InputError, UsageError
from evenmatch.tables.guess import guess
from evenmatch.tables.look import look, reading_options, similar
from evenmatch.tables.mapping import FileMapping, format_columns, parse_columns, read_duration, read_outcome
from evenmatch.tables.reading import guess_dialect, mapped, read_raw
from tables.tidy_rows import table_values
from tables.trial_file import write_trial

pytestmark = pytest.mark.filterwarnings("ignore:.* not read:evenmatch.errors.EvenmatchWarning")

DUELS = [  # id, time in UTC, winner, loser, whether it was a draw
    ("d1", datetime(2026, 1, 5, 18, 10, tzinfo=UTC), "ann", "bob", False),
    ("d2", datetime(2026, 7, 13, 18, 40, tzinfo=UTC), "Zoë", "ann", False),
    ("d3", datetime(2026, 7, 14, 19, 0, tzinfo=UTC), "bob", "Zoë", True),
]


def understood(path, **options):
    """The guess for a file, and the matches read with it."""
    raw = read_raw(path)
    found = guess(raw.rows, raw.source.dialect, **options)
    return found, mapped(raw, found.mapping)


def written(folder, rows, *, delimiter=",", encoding="utf-8", name="x.csv"):
    """A CSV file of these rows, the first of which has the names of the columns."""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    path = folder / name
    path.write_bytes(text.getvalue().encode(encoding))
    return path


def sides_of(table):
    """(id, microseconds, {place: players}) of each match."""
    return [
        (match_id, time, sorted((place, sorted(player for player, *_ in players)) for _, place, _, players in teams))
        for match_id, time, _, _, teams in table_values(table)
    ]


EXPECTED = [
    (name, int(time.timestamp()) * 10**6, sorted([(1, [winner]), (1 if is_draw else 2, [loser])]))
    for name, time, winner, loser, is_draw in DUELS
]


# A time format, as written by strftime, and whether `look` can tell it from the dates of DUELS.
FORMATS = [
    "%d.%m.%Y %H:%M",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %I:%M %p",
    "%Y/%m/%d %H:%M:%S",
    "%d.%m.%y, %H:%M",
    "%d %b %Y %H:%M",
]
FORMATS += ["%Y-%m-%d %H:%M", "%m-%d-%Y %H:%M", "%B %d, %Y %I:%M %p"]


@pytest.mark.parametrize("pattern", FORMATS)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
def test_a_time_format_is_found_in_the_column_and_read_in_its_zone(pattern, zone, tmp_path):
    rows = [("Game", "Date", "Winner", "Loser", "Draw")]
    rows += [(i, when.astimezone(ZoneInfo(zone)).strftime(pattern), a, b, str(d)) for i, when, a, b, d in DUELS]
    _, table = understood(written(tmp_path, rows), zone=zone)
    assert sides_of(table) == EXPECTED


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiter_and_encoding_are_found(encoding, delimiter, tmp_path):
    rows = [("Spiel", "Datum", "Sieger", "Verlierer", "Unentschieden")]
    rows += [(i, f"{when:%d.%m.%Y %H:%M}", a, b, "yes" if d else "") for i, when, a, b, d in DUELS]
    path = written(tmp_path, rows, delimiter=delimiter, encoding=encoding)
    found, table = understood(path)
    assert sides_of(table) == EXPECTED
    assert found.mapping.delimiter == delimiter


# The columns of a wide file, and its rows for DUELS.
SHAPES = {
    "winner and loser": (("id", "time", "winner", "loser", "draw"), lambda a, b, d: (a, b, str(d).lower())),
    "white and black": (("id", "date", "White", "Black", "Result"), lambda a, b, d: (a, b, "½-½" if d else "1-0")),
    "black wins": (("id", "date", "White", "Black", "Result"), lambda a, b, d: (b, a, "1/2-1/2" if d else "0-1")),
    "goals": (("id", "date", "Heim", "Gast", "Ergebnis"), lambda a, b, d: (b, a, "2:2" if d else "1:3")),
    "two scores": (("id", "date", "player1", "player2", "score1", "score2"), lambda a, b, d: (a, b, 7, 7 if d else 4)),
    "named winner": (("id", "date", "player1", "player2", "winner"), lambda a, b, d: (b, a, "draw" if d else a)),
    "one cell": (("id", "date", "teams", "result"), lambda a, b, d: (f"{b} vs {a}", "draw" if d else "loss")),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_row_per_match_is_read_with_its_winner(shape, tmp_path):
    heads, cells = SHAPES[shape]
    rows = [heads, *((i, when.isoformat(), *cells(a, b, d)) for i, when, a, b, d in DUELS)]
    found, table = understood(written(tmp_path, rows))
    assert sides_of(table) == EXPECTED
    assert found.unread == ()


@pytest.mark.parametrize(
    ("heads", "cells"),
    [
        (("winner", "loser", "score"), ("ann", "bob", "1-3")),  # the higher score is the winner's
        (("winner", "loser", "winner score", "loser score"), ("ann", "bob", "3", "1")),
        (("home", "away", "result"), ("bob", "ann", "1:3")),
        (("player1", "player2", "score1", "score2"), ("bob", "ann", "1", "3")),
    ],
)
def test_scores_go_to_their_sides(heads, cells, tmp_path):
    _, table = understood(written(tmp_path, [("date", *heads), ("2026-01-01", *cells)]))
    ((_, _, _, _, teams),) = table_values(table)
    assert {players[0][0]: (place, score) for _, place, score, players in teams} == {"ann": (1, 3), "bob": (2, 1)}


def test_both_teams_in_one_cell_are_divided(tmp_path):
    rows = [
        ("Datum", "Paarung", "Ergebnis"),
        ("13.01.2026", "ann;bob vs cid;dan", "1:2"),
        ("14.01.2026", "a;b vs c;d", "1:1"),
    ]
    _, table = understood(written(tmp_path, rows))
    assert [sides for _, _, sides in sides_of(table)] == [
        [(1, ["cid", "dan"]), (2, ["ann", "bob"])],
        [(1, ["a", "b"]), (1, ["c", "d"])],
    ]


# A word of a result, and the places of its player and of the other side.
WORDS = [("W", (1, 2)), ("lost", (2, 1)), ("S", (1, 2)), ("N", (2, 1)), ("U", (1, 1)), ("½", (1, 1)), ("0.5", (1, 1))]
WORDS += [
    ("1", (1, 2)),
    ("0", (2, 1)),
    ("1-0", (1, 2)),
    ("½-½", (1, 1)),
    ("16 – 14", (1, 2)),
    ("2:3", (2, 1)),
    (" Won ", (1, 2)),
]


@pytest.mark.parametrize(("word", "places"), WORDS)
def test_words_of_results(word, places):
    assert read_outcome(word, {})[:2] == places


def test_a_goal_is_a_score_but_a_chess_result_is_none():
    assert read_outcome("3-1", {})[2:] == (3, 1)
    assert str(read_outcome("1-0", {})[2]) == "nan"


@pytest.mark.parametrize(
    ("text", "unit", "decimal", "seconds"),
    [
        ("31:20", 60, ".", 1880),
        ("1:02:03", 1, ".", 3723),
        ("31,5", 60, ",", 1890),
        ("1.234,5", 1, ",", 1234.5),
        ("7", 1, ".", 7),
    ],
)
def test_durations_are_clocks_or_numbers_of_a_unit(text, unit, decimal, seconds):
    assert read_duration(text, unit, decimal) == seconds


def test_dates_that_the_whole_column_does_not_decide_are_asked_for(tmp_path):
    rows = [("time", "winner", "loser"), ("05/01/2026", "ann", "bob"), ("06/01/2026", "bob", "ann")]
    path = written(tmp_path, rows)
    with pytest.raises(
        UsageError, match=r"'05/01/2026' may name the day first or the month first.*--time-format '%d/%m/%Y'"
    ):
        read(path, columns={"played_at": "time"})
    month_first = read(path, columns={"played_at": "time"}, time_format="%m/%d/%Y")
    assert [time for _, time, _ in sides_of(month_first)] == [
        1777593600_000000,
        1780272000_000000,
    ]  # date -u -d 2026-05-01 +%s


def test_one_late_day_decides_the_whole_column(tmp_path):
    rows = [
        ("time", "winner", "loser"),
        *((f"0{day}/01/2026", "ann", "bob") for day in range(1, 10)),
        ("13/01/2026", "bob", "ann"),
    ]
    found, table = understood(written(tmp_path, rows))
    assert found.mapping.time_format == "%d/%m/%Y"
    assert sides_of(table)[-1][1] == 1768262400_000000  # date -u -d 2026-01-13 +%s


def test_a_day_that_does_not_exist_is_no_other_day(tmp_path):
    rows = [("time", "winner", "loser"), ("31.01.2026", "ann", "bob"), ("31.02.2026", "bob", "ann")]
    with pytest.raises(
        BadRowsError, match=r"line 3.*played_at is '31\.02\.2026'; expected a time such as '21\.11\.2026'"
    ):
        understood(written(tmp_path, rows))


def test_contradicting_results_are_no_match(tmp_path):
    rows = [("match", "date", "side", "player", "result")]
    rows += [("m1", "2026-01-01", side, player, "W") for side, player in (("a", "ann"), ("b", "bob"))]
    rows += [("m2", "2026-01-02", side, player, word) for side, player, word in (("a", "ann", "D"), ("b", "bob", "L"))]
    with pytest.raises(BadRowsError) as caught:
        understood(written(tmp_path, rows))
    assert [(one.line, one.reason.partition(";")[0]) for one in caught.value.problems] == [
        (2, "every result of the match is a win"),
        (4, "the match has a draw beside a win or a loss"),
    ]


def test_a_broken_row_of_a_wide_file_is_named_by_its_line(tmp_path):
    rows = [("time", "winner", "loser", "result"), ("2026-01-01", "ann", "bob", "W"), ("2026-01-02", "ann", "", "W")]
    rows += [("2026-01-03", "ann", "bob", "maybe"), ("x", "ann", "bob", "W")]
    with pytest.raises(BadRowsError) as caught:
        understood(written(tmp_path, rows))
    assert [(one.line, one.reason.partition(";")[0]) for one in caught.value.problems] == [
        (3, "player is empty"),
        (4, "result is 'maybe'"),
        (5, "played_at is 'x'"),
    ]


def test_what_is_known_about_newcomers_is_read_by_row_and_never_from_a_row_per_match(tmp_path):
    rows = [("Player", "Date", "Team", "Place", "entry", "Match ID"), ("ann", "2026-01-05", "a", "1", "1834,5", "m1")]
    _, table = understood(written(tmp_path, [*rows, ("bob", "2026-01-05", "b", "2", "", "m1")], delimiter=";"))
    assert str(table.history.columns.entry.tolist()) == "[1834.5, nan]"
    rows = [("date", "winner", "loser", "entry"), ("2026-01-05", "ann", "bob", "7")]
    found, table = understood(written(tmp_path, rows, name="wide.csv"))
    assert "entry" not in found.mapping.columns
    assert not len(table.history.columns.entry)


def test_columns_that_are_not_understood_are_named(tmp_path):
    rows = [("time", "winner", "loser", "Map", "Server"), ("2026-01-01", "ann", "bob", "Dorf", "3")]
    with pytest.warns(EvenmatchWarning, match="columns 'Map', 'Server' not read"):
        read(written(tmp_path, rows), columns={"played_at": "time"})


def test_a_mapping_is_the_same_after_it_was_saved(tmp_path):
    mapping = FileMapping(
        {"player": "Nick, long", "played_at": "Day+Time"}, delimiter=";", decimal=",", units={"seconds": "minutes"}
    )
    mapping.save(tmp_path / "m.json")
    assert FileMapping.load(tmp_path / "m.json") == mapping


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "expected texts named columns"),
        ('{"columns": {"plyer": "x"}}', "unknown column 'plyer' .did you mean 'player'"),
        ('{"columns": {"player": 3}}', r"'columns' is .*3.*; expected texts"),
        ('{"columns": {}, "zone": "Mars"}', "unknown zone 'Mars'"),
        ('{"columns": {}, "words": {"x": "lucky"}}', "'lucky' in a mapping: expected one of win, loss, draw"),
        ("{", "is not JSON"),
    ],
)
def test_a_mapping_that_says_nothing_sensible_is_refused(text, said, tmp_path):
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        FileMapping.load(path)


@given(
    st.dictionaries(
        st.sampled_from(["player", "team", "score"]),
        st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1),
    )
)
def test_columns_are_parsed_as_they_are_formatted(columns):
    assert parse_columns(format_columns(columns)) == columns


@pytest.mark.parametrize("text", ["player", "player=", "=x", "player=a,player=b"])
def test_columns_without_two_names_are_refused(text):
    with pytest.raises(UsageError):
        FileMapping(parse_columns(text))


def test_names_that_look_the_same_are_found():
    names = ["ann", "Ann ", "bob", "a\N{ZERO WIDTH SPACE}nn", "\N{FULLWIDTH LATIN SMALL LETTER B}ob", "cid"]
    assert list(similar(names)) == [
        ("ann", "Ann ", "a\N{ZERO WIDTH SPACE}nn"),
        ("bob", "\N{FULLWIDTH LATIN SMALL LETTER B}ob"),
    ]


def test_utf_8_with_a_broken_row_is_not_taken_for_windows_1252():
    assert guess_dialect("a,b\nZoë,1\n".encode() + b"J\xf6rg,2\n").encoding == "utf-8-sig"
    assert guess_dialect(b"a,b\nJ\xf6rg,2\n").encoding == "cp1252"


@pytest.mark.parametrize("words", ["SNU", "WLD"])
def test_the_trial_file_is_explained_and_read(words, tmp_path):
    path = tmp_path / "spiele.csv"
    whole = write_trial(path, words=words)
    raw = read_raw(path)
    found = look(raw, guess(raw.rows, raw.source.dialect, zone="Europe/Berlin"))
    assert found.guess.unread == ("Map",)
    assert found.guess.mapping.units == {"duration": "minutes"}
    assert len(found.matches) == len(whole) == 2976
    expected = [
        (
            name,
            int(when.timestamp()) * 10**6,
            sorted((1 if winner in (side, None) else 2, sorted(own)) for side, own in teams.items()),
        )
        for name, when, winner, teams in whole
    ]
    assert sides_of(found.matches) == expected
    kinds = {problem.reason.partition(" is ")[0].partition("; ")[0] for problem in found.problems}
    assert len(found.problems) == 24
    assert {"9 columns", "7 columns", "played_at", "player", "result", "score", "duration", "team"} <= kinds


def test_a_wide_frame_is_read_by_the_names_of_its_columns():
    frame = pl.DataFrame(
        {"Sieger": ["ann"], "Verlierer": ["bob"], "am": [datetime(2026, 7, 13, 20, 40)], "tied": [True]}
    )
    table = from_wide(
        frame, winner="Sieger", loser="Verlierer", date="am", columns={"draw": "tied"}, zone="Europe/Berlin"
    )
    assert sides_of(table) == [("2026-07-13 20:40 ann - bob", 1783968000_000000, [(1, ["ann"]), (1, ["bob"])])]


@pytest.mark.parametrize(
    "times",
    [
        ["2026-07-13 20:40", "2026-07-14 00:00", "2026-07-15 19:00:07"],
        [datetime(2026, 7, 13, 20, 40), datetime(2026, 7, 14), datetime(2026, 7, 15, 19, 0, 7)],
    ],
)
def test_a_match_without_an_id_has_the_same_one_in_a_file_and_in_a_frame(times):
    frame = pl.DataFrame({"won": ["ann"] * 3, "lost": ["bob"] * 3, "at": times})
    ids = from_wide(frame, winner="won", loser="lost", date="at").match_id.to_pylist()
    assert ids == ["2026-07-13 20:40 ann - bob", "2026-07-14 ann - bob", "2026-07-15 19:00:07 ann - bob"]


def test_a_winner_and_a_loser_are_listed_in_either_order_and_keep_their_scores():
    frame = pl.DataFrame(
        {
            "won": [f"w{number}" for number in range(400)],
            "lost": [f"l{number}" for number in range(400)],
            "on": ["2026-01-05"] * 400,
            "more": [20 + number for number in range(400)],
            "fewer": [number % 7 for number in range(400)],
        }
    )
    scores = {"home_score": "more", "away_score": "fewer"}
    table = from_wide(frame, winner="won", loser="lost", date="on", columns=scores)
    listed_first = 0
    for match in table.to_matches("x"):
        (winner,) = (team for team in match.teams if team.place == 1)
        (loser,) = (team for team in match.teams if team.place == 2)
        number = int(winner.players[0].player.removeprefix("w"))
        assert (loser.players[0].player, winner.score, loser.score) == (f"l{number}", 20 + number, number % 7)
        listed_first += match.teams[0] is winner
    assert 160 < listed_first < 240  # four standard deviations of a fair coin
    away = from_frame(frame, columns={"home": "lost", "away": "won", "played_at": "on", "winner": "won"})
    assert {match.places for match in away.to_matches("x")} == {(2, 1)}


def test_even_learns_no_side_from_winners_who_are_named_first():
    rng = random.Random(1)
    pairs = [rng.sample(["ann", "bob", "cid", "dan"], 2) for _ in range(600)]
    frame = pl.DataFrame({"won": [a for a, _ in pairs], "lost": [b for _, b in pairs], "on": ["2026-01-05"] * 600})
    ratings = rate(from_wide(frame, winner="won", loser="lost", date="on"), "even")
    there, back = (ratings.odds([a], [b]).expected[0] for a, b in (("ann", "bob"), ("bob", "ann")))
    assert there + back == pytest.approx(1, abs=0.1)


def test_a_frame_is_read_with_other_columns():
    frame = pl.DataFrame({"game": [1, 1], "day": ["2026-01-05"] * 2, "nick": ["ann", "bob"], "won": [False, True]})
    table = from_frame(frame, columns={"match_id": "game", "played_at": "day", "player": "nick", "result": "won"})
    assert sides_of(table) == [("1", 1767571200_000000, [(1, ["bob"]), (2, ["ann"])])]
    with pytest.raises(InputError, match="the data frame has no column 'Nick'; it has 'game', 'day'"):
        from_frame(frame, columns={"player": "Nick"})


def test_a_file_with_our_columns_is_read_as_it_is(request):
    path = request.config.rootpath / "docs" / "examples" / "season.csv"
    found, table = understood(path)
    assert all(ours == theirs for ours, theirs in found.mapping.columns.items())
    assert table_values(table) == table_values(read(path))
    assert reading_options(found.mapping) == []


@pytest.mark.parametrize(
    ("minutes", "column"),
    [(["31,5", "31,5", "kurz", "28,0"], "duration"), (["31,5", "12,0", "28,0", "28,0"], "seconds")],
    ids=["the same in a match", "different in a match"],
)
def test_minutes_are_the_match_s_if_its_rows_agree(minutes, column, tmp_path):
    rows = [("Spiel", "Datum", "Seite", "Spieler", "Ergebnis", "Minuten")]
    rows += [("m1", "2026-01-01", "a", "ann", "S", minutes[0]), ("m1", "2026-01-01", "b", "bob", "N", minutes[1])]
    rows += [("m2", "2026-01-02", "a", "ann", "S", minutes[2]), ("m2", "2026-01-02", "b", "bob", "N", minutes[3])]
    path = written(tmp_path, rows, delimiter=";")
    raw = read_raw(path)
    mapping = guess(raw.rows, raw.source.dialect).mapping
    assert (mapping.columns[column], mapping.units) == ("Minuten", {column: "minutes"})


# In 2026 the clocks of Berlin go from 02:00 to 03:00 on 29 March, and from 03:00 back to 02:00 on 25 October.
CLOCK_CHANGES = [
    ("2026-03-29 01:30", "2026-03-29T00:30:00Z"),
    ("2026-03-29 02:30", "2026-03-29T01:30:00Z"),  # does not exist: read as winter time, which is 03:30 in summer time
    ("2026-03-29 03:30", "2026-03-29T01:30:00Z"),
    ("2026-10-25 02:30", "2026-10-25T00:30:00Z"),  # happens twice: the first, in summer time
    ("2026-10-25 03:30", "2026-10-25T02:30:00Z"),
]


@pytest.mark.parametrize("time_format", [None, "%Y-%m-%d %H:%M"])
@pytest.mark.parametrize(("local", "moment"), CLOCK_CHANGES)
def test_times_around_a_change_of_the_clock_are_read_as_the_page_says(local, moment, time_format, tmp_path):
    path = tmp_path / "matches.csv"
    path.write_text(f"match_id,played_at,team,player,place\nm1,{local},a,ann,1\nm1,{local},b,bob,2\n")
    (match,) = read(path, time_format=time_format, zone="Europe/Berlin").to_matches("default")
    assert match.played_at == datetime.fromisoformat(moment)


# --- The same matches in any disguise ---

NAMES = ["ann", "Zoë", "Łukasz", "bob b", "cid-7", "d'an"]
PATTERNS = ["%d.%m.%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S", "%Y-%m-%d %H:%M:%S", "%m/%d/%Y %I:%M:%S %p"]
ZONES = ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York"]


@st.composite
def disguises(draw):
    """Duels, with the form of a file that holds them."""
    days = draw(st.lists(st.integers(0, 300), min_size=1, max_size=6))
    start = 1767312000  # 2026-01-02
    duels = [
        (f"m{number}", start + 86400 * day + 3600 * 10, *draw(st.permutations(NAMES))[:2], draw(st.booleans()))
        for number, day in enumerate(days)
    ]
    duels += [("last", start + 86400 * 400, "ann", "Zoë", False)]  # 6 February 2027
    duels += [("late", start + 86400 * 415, "ann", "Zoë", False)]  # a day above 12 settles the order of day and month
    scores = [round(draw(st.floats(0, 9000)), 2) for _ in range(2 * len(duels))]
    form = {
        "delimiter": draw(st.sampled_from(",;\t|")),
        "encoding": draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])),
        "decimal": draw(st.sampled_from(".,")),
        "pattern": draw(st.sampled_from(PATTERNS)),
        "zone": draw(st.sampled_from(ZONES)),
        "shape": draw(st.sampled_from(["long", "wide", "cell"])),
        "names": draw(st.booleans()),
    }
    return duels, scores, form


@given(disguises())
def test_the_same_matches_are_read_from_any_disguise(tmp_path_factory, disguise):
    duels, scores, form = disguise
    folder = tmp_path_factory.mktemp("disguise")

    def time(seconds):
        return datetime.fromtimestamp(seconds, ZoneInfo(form["zone"])).strftime(form["pattern"])

    def number(value):
        return f"{value:.2f}".replace(".", form["decimal"])

    ours = ("match_id", "played_at", "team", "player", "place", "score")
    if form["shape"] == "long":
        rows = [("Spiel", "Datum", "Seite", "Spieler", "Platz", "Punkte") if form["names"] else ours]
        for at, (name, seconds, a, b, is_draw) in enumerate(duels):
            rows.append((name, time(seconds), "x", a, 1, number(scores[2 * at])))
            rows.append((name, time(seconds), "y", b, 1 if is_draw else 2, number(scores[2 * at + 1])))
    elif form["shape"] == "wide":
        rows = [
            ("Spiel", "Datum", "Sieger", "Verlierer", "Remis")
            if form["names"]
            else ("match_id", "played_at", "winner", "loser", "draw")
        ]
        rows += [(name, time(seconds), a, b, "yes" if is_draw else "no") for name, seconds, a, b, is_draw in duels]
    else:
        rows = [
            ("Spiel", "Datum", "Paarung", "Ergebnis") if form["names"] else ("match_id", "played_at", "teams", "result")
        ]
        rows += [
            (name, time(seconds), f"{b} vs {a}", "0.5" if is_draw else "0-1") for name, seconds, a, b, is_draw in duels
        ]
    path = written(folder, rows, delimiter=form["delimiter"], encoding=form["encoding"])
    _, table = understood(path, zone=form["zone"])
    expected = sorted(
        (seconds * 10**6, name, sorted([(1, [a]), (1 if is_draw else 2, [b])]))
        for name, seconds, a, b, is_draw in duels
    )
    assert sorted((seconds, name, sides) for name, seconds, sides in sides_of(table)) == expected
    if form["shape"] == "long":
        read_scores = {
            (name, player): score
            for name, _, _, _, teams in table_values(table)
            for *_, players in teams
            for player, score, *_ in players
        }
        assert read_scores == {
            (duel[0], duel[2 + side]): scores[2 * at + side] for at, duel in enumerate(duels) for side in (0, 1)
        }
