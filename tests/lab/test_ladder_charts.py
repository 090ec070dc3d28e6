"""Figures of players: what is told of each match, how large they are, and that names stay names."""

import json
import math

import pytest

from evenmatch.lab.ladder.charts import (
    ChartPoint,
    LevelPoint,
    PartyWait,
    level_path,
    player_path,
    spread,
    waits_over_time,
)

DAY = 86_400_000_000
CUTS = [("Bronze", 900.0), ("Silver", 1495.0), ("Gold", 1520.0), ("Champion", 2400.0)]
POINTS = [
    ChartPoint("m1", 1 * DAY, 1500.0, 1516.0, "won"),
    ChartPoint("m2", 2 * DAY, 1516.0, 1498.25, "lost"),
    ChartPoint("m3", 3 * DAY, 1498.25, 1499.0, "drew"),
    ChartPoint("m4", 4 * DAY, 1499.0, 1499.0, "void"),
]


def figure_json(figure):
    """The figure as a page reads it."""
    return json.loads(figure.to_json())


def annotation_texts(figure):
    return [one["text"] for one in figure_json(figure)["layout"].get("annotations", [])]


def test_a_path_rises_and_falls_with_each_match():
    line, *marks = figure_json(player_path(POINTS, CUTS))["data"]
    assert (line["mode"], line["line"]["shape"]) == ("lines", "hv")
    assert line["y"] == [1500.0, 1516.0, 1498.25, 1499.0, 1499.0]
    assert line["x"] == [86_400_000 * day for day in (1, 1, 2, 3, 4)]
    assert [one["name"] for one in marks] == ["won", "lost", "drew", "not rated"]
    assert len({one["marker"]["symbol"] for one in marks}) == len({one["marker"]["color"] for one in marks}) == 4
    assert marks[1]["customdata"] == [["m2", "1970-01-03 00:00", "1,516.0 → 1,498.25 (−17.8)"]]


def test_only_divisions_near_the_path_are_drawn():
    assert annotation_texts(player_path(POINTS, CUTS)) == ["Silver", "Gold"]
    assert annotation_texts(player_path(POINTS[3:], CUTS)) == [
        "Silver",
        "Gold",
    ]  # a path that never moved has room, too
    fell = ChartPoint("m5", 5 * DAY, 1600.0, 1500.0, "lost")
    assert annotation_texts(player_path([fell], [("Low", 1480.0), ("High", 1620.0), ("Top", 1700.0)])) == [
        "Low",
        "High",
    ]


@pytest.mark.parametrize("hours", [0, 5, 24, 24 * 90])
def test_a_time_axis_has_at_least_a_day_and_ends_with_its_last_point(hours):
    """An axis that continues after the latest match shows the future."""
    last = 100 * DAY
    times = [last - hours * DAY // 24, last]
    rated = [ChartPoint("m", at, 1500.0, 1510.0, "won") for at in times]
    placed = [LevelPoint("m", at, 60.0, "percentile 60", "won") for at in times]
    offered = [PartyWait(at, 12.0, 50.0) for at in times]
    for figure in (player_path(rated), level_path(placed, "percentile", []), waits_over_time(offered)):
        since, until = figure_json(figure)["layout"]["xaxis"]["range"]
        first, last_ms = (at // 1000 for at in times)
        assert until - since >= 86_400_000
        assert since < first
        assert last_ms < until <= last_ms + (until - since) / 40


def test_a_season_is_a_line_at_which_the_path_goes_on_from_where_the_reset_left_it():
    later = ChartPoint("m5", 10 * DAY, 1499.5, 1515.0, "won")
    figure = player_path([*POINTS, later], [], [("Summer <b>", 8 * DAY)])
    line = figure_json(figure)["data"][0]
    assert list(zip(line["x"], line["y"], strict=True))[-3:] == [
        (4 * 86_400_000, 1499.0),
        (8 * 86_400_000, 1499.5),
        (10 * 86_400_000, 1515.0),
    ]
    assert annotation_texts(figure) == ["Summer &lt;b&gt;"]
    assert [one["x0"] for one in figure_json(figure)["layout"]["shapes"]] == [8 * 86_400_000]


def test_a_long_path_is_small():
    long = [
        ChartPoint(f"season-4-match-{at:06}", at * DAY // 7, 1500 + math.sin(at), 1500 + math.sin(at + 1), "won")
        for at in range(400)
    ]
    assert len(player_path(long, CUTS).to_json()) < 60_000


def test_names_are_no_markup():
    bad = '<b>&lt;</b>\u202e"'
    path = figure_json(player_path([POINTS[0]._replace(match_id=bad)], [(bad, 1505.0)]))
    shown = path["data"][1]["customdata"][0][0]
    assert shown == path["layout"]["annotations"][0]["text"] == '&lt;b&gt;&amp;lt;&lt;/b&gt;�"'


def test_bins_are_drawn_where_they_are_and_far_ones_no_wider_than_the_others():
    (bars,) = figure_json(spread([-5000.0, 1400.0, 1500.0, 1600.0, 9000.0], [1, 4, 7, 2], [], None))["data"]
    assert (bars["x"], bars["width"], bars["y"]) == ([1350.0, 1450.0, 1550.0, 1650.0], 4 * [100.0], [1, 4, 7, 2])
    assert bars["customdata"][0] == ["-5,000", "1,400"]
    assert len(set(bars["marker"]["color"])) == 1


@pytest.mark.parametrize(("you", "mine", "line"), [(1450.0, 1, 1450.0), (1500.0, 2, 1500.0), (8000.0, 3, 1700.0)])
def test_a_histogram_marks_the_player_who_looks_at_it(you, mine, line):
    found = figure_json(spread([-5000.0, 1400.0, 1500.0, 1600.0, 9000.0], [1, 4, 7, 2], CUTS, you))
    colors = found["data"][0]["marker"]["color"]
    assert [at for at, color in enumerate(colors) if colors.count(color) == 1] == [mine]
    assert [one["x0"] for one in found["layout"]["shapes"]] == [1495.0, 1520.0, line]
    assert [one["text"] for one in found["layout"]["annotations"]] == ["Silver", "Gold", "you are here"]
