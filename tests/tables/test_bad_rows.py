"""Every bad input of the tidy long form: its line, its match and its reason, in every form in which it can occur."""

import re

import pytest

from evenmatch import read, rules
from evenmatch.errors import BadRowsError, EvenmatchWarning, InputError, RowProblem
from evenmatch.rating import rate, rateable
from tables.tidy_rows import FILES, FIRST, FRAMES, WHOLE, changed, taken_in, write_file

NAN, INF = float("nan"), float("inf")

# What is wrong, the cells that make it so, and each problem: (row counted from 0, the beginning of its reason)
CASES = [
    ("seconds infinite", {(5, "seconds"): INF}, [(5, r"seconds is '?inf'?")]),
    ("seconds negative", {(5, "seconds"): -0.001}, [(5, r"seconds is '?-0\.001'?")]),
    ("place 0", {(4, "place"): 0, (5, "place"): 0}, [(4, "place is '?0'?")]),
    ("place between", {(6, "place"): 1.5, (7, "place"): 1.5}, [(6, r"place is '?1\.5'?")]),
    ("place too large", {(4, "place"): 2**31, (5, "place"): 2**31}, [(4, "place is")]),
    ("performance above 1", {(6, "performance"): 1.001}, [(6, r"performance is '?1\.001'?")]),
    ("entry beyond a billion", {(6, "entry"): -2e9}, [(6, r"entry is '?-2000000000(\.0)?'?")]),
    ("entry in words", {(6, "entry"): "bronze"}, [(6, "entry is 'bronze'")]),
    ("score infinite", {(7, "score"): INF}, [(7, r"score is '?inf'?")]),
    ("score in words", {(7, "score"): "many"}, [(7, "score is 'many'")]),
    ("duration negative", {(4, "duration"): -1.0}, [(4, r"duration is '?-1(\.0)?'?")]),
    ("quit in words", {(4, "quit"): "maybe"}, [(4, "quit is 'maybe'")]),
    ("quit a number", {(4, "quit"): "2"}, [(4, "quit is '?2'?")]),
    ("keep in words", {(4, "keep"): "maybe"}, [(4, "keep is 'maybe'")]),
    ("player empty", {(5, "player"): None}, [(5, "player is empty")]),
    ("player without a letter", {(5, "player"): ""}, [(5, "player is empty")]),
    ("team empty", {(5, "team"): None}, [(5, "team is empty")]),
    ("player twice on a team", {(5, "player"): "ann"}, [(5, "player 'ann' is in this match twice")]),
    ("player on both teams", {(6, "player"): "bob"}, [(6, "player 'bob' is in this match twice")]),
    (
        "one team only",
        {(row, name): value for row in (6, 7) for name, value in (("team", "a"), ("place", 1), ("team_score", 13.0))},
        [(4, "the match has only one team")],
    ),
    (
        "neither place nor team_score",
        {(row, name): None for row in (4, 5, 6, 7) for name in ("place", "team_score")},
        [(4, "place is missing and so is team_score")],
    ),
    (
        "no place and team_score for one team only",
        {(row, "place"): None for row in (4, 5, 6, 7)} | {(6, "team_score"): None, (7, "team_score"): None},
        [(4, "place is missing and so is team_score")],
    ),
    (
        "place for one team only",
        {(6, "place"): None, (7, "place"): None},
        [(4, "place is missing for a team while another has one")],
    ),
    ("place differs on a team", {(5, "place"): 2}, [(4, "place .*one place per team")]),
    ("team_score differs on a team", {(5, "team_score"): 14.0}, [(4, "team_score .*one team_score per team")]),
    ("time differs", {(6, "played_at"): "2026-01-02T10:00:01Z"}, [(6, "played_at .*one played_at per match")]),
    (
        "ladder differs",
        {(row, "ladder"): "one" for row in range(12)} | {(7, "ladder"): "two"},
        [(7, "ladder .*one ladder per match")],
    ),
    (
        "duration differs",
        {(row, "duration"): 700.0 for row in (4, 5, 6)} | {(7, "duration"): 701.0},
        [(7, "duration .*one duration per match")],
    ),
    ("time empty", {(4, "played_at"): None}, [(4, "played_at is empty")]),
    (
        "the same wrong time in every row",
        {(row, "played_at"): "02.01.2026 10:00" for row in (4, 5, 6, 7)},
        [(4, "played_at is '02.01.2026 10:00', which looks like 2026-01-02 with the day first")],
    ),
    (
        "two wrong times",
        {(row, "played_at"): text for row, text in ((4, "today"), (5, "later"), (6, "today"), (7, "later"))},
        [(4, "played_at is 'today'"), (5, "played_at is 'later'")],
    ),
    (
        "another time in the other rows",
        {(row, "played_at"): "2026-01-02T10:00:01Z" for row in (5, 6, 7)},
        [(5, "played_at is 2026-01-02T10:00:01Z, an earlier row")],
    ),
    (
        "the same wrong duration in every row",
        {(row, "duration"): -1.0 for row in (4, 5, 6, 7)},
        [(4, r"duration is '?-1(\.0)?'?")],
    ),
    (
        "the same wrong team_score in every row of both teams",
        {(row, "team_score"): "many" for row in (4, 5, 6, 7)},
        [(4, "team_score is 'many'"), (6, "team_score is 'many'")],
    ),
    (
        "the same wrong seconds of two players",
        {(4, "seconds"): -5.0, (5, "seconds"): -5.0},
        [(4, r"seconds is '?-5(\.0)?'?"), (5, r"seconds is '?-5(\.0)?'?")],
    ),
    ("time in words", {(4, "played_at"): "yesterday"}, [(4, "played_at is 'yesterday'")]),
    ("no such month", {(5, "played_at"): "2026-13-02T10:00:00Z"}, [(5, "played_at is '2026-13-02T10:00:00Z'")]),
]
EVERY_FORM = [*FILES, *FRAMES]


@pytest.mark.parametrize("form", EVERY_FORM)
@pytest.mark.parametrize(("cells", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_bad_row_is_reported_with_its_line_and_reason_and_nothing_else_is(cells, expected, form, tmp_path):
    with pytest.raises(BadRowsError) as caught:
        taken_in(changed(WHOLE, cells), form, tmp_path)
    problems = caught.value.problems
    unit = "line" if form in FIRST else "row"
    found = [(problem.line, problem.match_id, problem.unit, problem.reason) for problem in problems]
    assert [one[:3] for one in found] == [(row + FIRST.get(form, 1), "m2", unit) for row, _ in expected], found
    for problem, (_, reason) in zip(problems, expected, strict=True):
        assert re.match(reason, problem.reason, re.IGNORECASE), problem.reason
        assert "expected" in problem.reason or "needed" in problem.reason or "give all or none" in problem.reason


@pytest.mark.parametrize("form", ["csv", "table"])
@pytest.mark.parametrize("cells", [case[1] for case in CASES], ids=[case[0] for case in CASES])
def test_skipping_leaves_out_the_whole_match_and_no_other(cells, form, tmp_path):
    matches = taken_in(changed(WHOLE, cells), form, tmp_path, skip_bad=True)
    assert matches.match_id.to_pylist() == ["m1", "m3"]
    assert matches.skipped_matches == 1
    assert {problem.match_id for problem in matches.skipped} == {"m2"}
    assert len(matches.history.columns.player) == 8


@pytest.mark.parametrize("form", [form for form in EVERY_FORM if form != "pandas"])  # whose NaN is its empty cell
def test_seconds_that_are_not_a_number_are_not_taken_for_unrecorded(form, tmp_path):
    with pytest.raises(BadRowsError, match=r"(?i)seconds is '?nan'?"):
        taken_in(changed(WHOLE, {(5, "seconds"): NAN}), form, tmp_path)


@pytest.mark.parametrize("form", EVERY_FORM)
def test_every_bad_row_is_reported_and_not_only_the_first(form, tmp_path):
    cells = {
        (1, "seconds"): -1.0,
        (2, "performance"): 2.0,
        (3, "performance"): 3.0,
        (6, "player"): None,
        (9, "player"): "ann",
        (10, "seconds"): -2.0,
        (10, "performance"): -7.0,
    }
    with pytest.raises(BadRowsError) as caught:
        taken_in(changed(WHOLE, cells), form, tmp_path)
    first = FIRST.get(form, 1)
    found = [
        (problem.line - first, problem.match_id, problem.reason.split(" is ")[0]) for problem in caught.value.problems
    ]
    assert found[:4] == [(1, "m1", "seconds"), (2, "m1", "performance"), (3, "m1", "performance"), (6, "m2", "player")]
    assert found[4][:2] == (9, "m3")
    assert sorted(found[5:]) == [(10, "m3", "performance"), (10, "m3", "seconds")]


def test_a_message_of_many_problems_groups_them_while_the_error_holds_all():
    problems = [RowProblem(at, f"m{at // 2}", f"score is {at}.5e+3; expected a word") for at in range(2, 40)]
    problems += [RowProblem(41, None, "player is 'x y' and \"it's\"; expected one")]
    error = BadRowsError("a.csv", problems)
    assert error.problems == tuple(problems)
    assert str(error).splitlines()[:3] == [
        "a.csv: 39 problems",
        "  38 × score is …; expected a word",
        "      line 2, match 'm1': score is 2.5e+3",
    ]
    assert "  1 × player is … and …; expected one" in str(error)
    assert str(error).splitlines()[-1].endswith("'m10', and 9 more")
    few = BadRowsError("a.csv", problems[:20])
    assert str(few).splitlines()[1:] == [f"  {problem}" for problem in problems[:20]]


@pytest.mark.parametrize("form", EVERY_FORM)
def test_a_row_without_a_match_is_reported_without_one(form, tmp_path):
    with pytest.raises(BadRowsError) as caught:
        taken_in(changed(WHOLE, {(11, "match_id"): None}), form, tmp_path)
    (problem,) = caught.value.problems
    assert (problem.line, problem.match_id) == (11 + FIRST.get(form, 1), None)
    assert problem.reason.startswith("match_id is empty")


@pytest.mark.parametrize("form", EVERY_FORM)
def test_skipping_every_match_is_an_error(form, tmp_path):
    cells = {(row, "performance"): 2.0 for row in (0, 4, 8)}
    with pytest.raises(BadRowsError) as caught:
        taken_in(changed(WHOLE, cells), form, tmp_path, skip_bad=True)
    assert len(caught.value.problems) == 3


def test_skipping_counts_matches_and_not_problems(tmp_path):
    cells = {(row, "performance"): 2.0 for row in (0, 1, 2, 8)}
    matches = taken_in(changed(WHOLE, cells), "csv", tmp_path, skip_bad=True)
    assert matches.match_id.to_pylist() == ["m2"]
    assert (matches.skipped_matches, len(matches.skipped)) == (2, 4)


@pytest.mark.parametrize("form", EVERY_FORM)
@pytest.mark.parametrize("missing", ["match_id", "played_at", "team", "player"])
def test_a_missing_column_is_named_with_the_present_ones(missing, form, tmp_path):
    columns = {name: values for name, values in WHOLE.items() if name != missing}
    with pytest.raises(InputError, match=rf"lacks the column {missing}; it has '.*'team_score'"):
        taken_in(columns, form, tmp_path)


@pytest.mark.parametrize("form", EVERY_FORM)
def test_a_missing_place_is_named_where_there_is_no_team_score_either(form, tmp_path):
    columns = {name: values for name, values in WHOLE.items() if name not in ("place", "team_score")}
    with pytest.raises(InputError, match=r"lacks the column place \(or team_score\)"):
        taken_in(columns, form, tmp_path)


@pytest.mark.parametrize("form", EVERY_FORM)
def test_an_unknown_column_is_only_a_warning(form, tmp_path):
    with pytest.warns(EvenmatchWarning, match="unknown column 'map' not read"):
        matches = taken_in(WHOLE | {"map": ["dust"] * 12}, form, tmp_path)
    assert len(matches) == 3


@pytest.mark.parametrize("form", [form for form in EVERY_FORM if form != "jsonl"])  # where no rows are no columns
def test_no_rows_at_all_are_an_error(form, tmp_path):
    with pytest.raises(InputError, match="has no rows"):
        taken_in({name: [] for name in WHOLE}, form, tmp_path)


# What the system needs, what the match lacks, the system and its parameters, the reason
NEEDS = [
    (
        "mixed seconds",
        {(5, "seconds"): None},
        "wager",
        {},
        "seconds is empty for 1 of 4 players; wager needs it for all",
    ),
    (
        "mixed seconds",
        {(5, "seconds"): None},
        "scorefactor",
        {},
        "seconds is empty for 1 of 4 players; scorefactor needs",
    ),
    ("no score", {(4, "score"): None, (7, "score"): None}, "scorefactor", {}, "score is empty for 2 of 4 players"),
    ("no rounds", {(r, "team_score"): None for r in (6, 7)}, "prav", {"outcome": "share"}, "team_score is empty"),
    (
        "negative rounds",
        {(r, "team_score"): -1.0 for r in (6, 7)},
        "prav",
        {"outcome": "share"},
        "team_score is .*negative",
    ),
    ("three teams", {(7, "team"): "c", (7, "place"): 3}, "wager", {}, "3 teams; wager rates matches of exactly 2"),
]


@pytest.mark.parametrize("form", ["csv", "table"])
@pytest.mark.parametrize(("cells", "system", "parameters", "reason"), [need[1:] for need in NEEDS])
def test_a_match_that_lacks_what_its_system_needs_is_a_bad_row(cells, system, parameters, reason, form, tmp_path):
    matches = taken_in(changed(WHOLE, cells), form, tmp_path)
    by = rules(system, **parameters)
    with pytest.raises(BadRowsError) as caught:
        rate(matches, by)
    (problem,) = caught.value.problems
    assert (problem.line, problem.match_id) == (4 + FIRST.get(form, 1), "m2")
    assert re.match(reason, problem.reason), problem.reason
    left = rateable(matches, by, skip_bad=True)
    assert left.match_id.to_pylist() == ["m1", "m3"]
    assert left.skipped_matches == 1


def test_matches_skipped_in_reading_and_in_rating_are_counted_together(tmp_path):
    columns = changed(WHOLE, {(1, "performance"): 2.0, (5, "seconds"): None})
    matches = taken_in(columns, "csv", tmp_path, skip_bad=True)
    ratings = rate(matches, rules("wager"), skip_bad=True)
    assert ratings.matches.match_id.to_pylist() == ["m3"]
    assert ratings.matches.skipped_matches == 2
    assert [problem.line for problem in ratings.matches.skipped] == [3, 6]


def test_seconds_missing_for_a_whole_match_are_no_fault(tmp_path):
    columns = changed(WHOLE, {(row, "seconds"): None for row in (4, 5, 6, 7)})
    assert len(rateable(taken_in(columns, "csv", tmp_path), rules("wager"))) == 3


@pytest.mark.parametrize("column", ["ladder", "player", "match_id", "team", "seconds", "place", "played_at", "quit"])
def test_a_column_of_lists_is_an_input_error_that_names_the_column(column, tmp_path):
    with pytest.raises(InputError, match=column):
        taken_in(WHOLE | {column: [["x"]] * 12}, "table", tmp_path)


def test_the_same_column_twice_is_an_error(tmp_path):
    path = write_file(WHOLE, tmp_path / "matches.csv")
    path.write_text(path.read_text().replace("score,seconds", "score,score", 1))
    with pytest.raises(InputError, match="has the column 'score' more than once"):
        read(path)
