"""Charts of the pages: where points stand, which ticks an axis has, what a reader is told, and that names stay names.

The plot is 2000 wide and 1000 high, and y points down.
"""

import re
from datetime import UTC, datetime, timedelta

import jinja2
import numpy as np
import pytest

from evenmatch.web.svg_charts import DRAWN, HEIGHT, WIDTH, Point, Scale, histogram, number_ticks, path_chart, time_ticks
from evenmatch.web.texts import Texts

EN = Texts("en")

MINUTE = 60_000_000
DAY = 24 * 60 * MINUTE
BAD = '<b onload="x">&\u202e"'
START = int(datetime(2026, 11, 3, tzinfo=UTC).timestamp()) * 1_000_000
POINTS = [  # four days apart, then two; an unequal draw among them
    Point(START, 1510.0, 1520.0, "won", "first".strip),
    Point(START + 4 * DAY, 1520.0, 1500.0, "lost", "second".strip),
    Point(START + 6 * DAY, 1500.0, 1504.0, "drew", "third".strip),
    Point(START + 8 * DAY, 1504.0, 1600.0, "won", "fourth".strip),
]


def drawn(chart):
    return dict(chart.shapes)


def places(dots):
    return [(int(x), int(y)) for x, y in re.findall(r"M(\d+) (\d+)h0", dots)]


def test_points_stand_where_their_time_and_level_say():
    """The range is 1500 to 1600 and 8 % of room on both sides: 116 points of rating on 1000 units."""
    chart = path_chart(EN, "Rating", POINTS)
    assert places(drawn(chart)["won"]) == [(0, round(1000 * (1608 - 1520) / 116)), (2000, round(1000 * 8 / 116))]
    assert places(drawn(chart)["lost"]) == [(1000, round(1000 * 108 / 116))]
    assert places(drawn(chart)["drew"]) == [(1500, round(1000 * 104 / 116))]
    assert chart.kinds == ["won", "lost", "drew"]
    assert [line.split(" ", 2) for line in chart.points.split("\n")] == [
        ["0", "759", "first"],
        ["1000", "931", "second"],
        ["1500", "897", "third"],
        ["2000", "69", "fourth"],
    ]


def test_a_line_begins_at_the_level_before_the_first_match_and_turns_at_each_match():
    """From 1510 to 1520 at once; level for four days; down to 1500; and so on."""
    assert drawn(path_chart(EN, "Rating", POINTS))["line"] == "M0 845v-86h1000v172h500v-34h500v-828"


def test_after_a_reset_the_line_goes_on_from_the_level_that_the_reset_left():
    later = Point(START + 16 * DAY, 1550.0, 1560.0, "won", "later".strip)
    chart = path_chart(EN, "Rating", [*POINTS, later], openings=[("Summer", START + 12 * DAY)])
    assert [(start.at, start.text) for start in chart.starts] == [("75%", "Summer")]
    level = {rating: round(1000 * (1608 - rating) / 116) for rating in (1600, 1550, 1560)}
    turns = f"h500v{level[1550] - level[1600]}h500v{level[1560] - level[1550]}"
    assert drawn(chart)["line"].endswith(turns)


def test_divisions_near_the_path_are_marked_and_others_are_not():
    """Near: within 30 % of the range of 100 points."""
    marks = [("Far below", 1469.0), ("Low", 1470.0), ("Top", 1630.0), ("Far above", 1631.0)]
    assert [bound.text for bound in path_chart(EN, "Rating", POINTS, bounds=marks).bounds] == ["Low", "Top"]


@pytest.mark.parametrize(
    ("minutes", "texts"),
    [
        (2, ["00:00", "00:00:30", "00:01:00", "00:01:30", "00:02:00"]),
        (40, ["00:00", "00:10", "00:20", "00:30", "00:40"]),
        (5 * 60, ["00:00", "01:00", "02:00", "03:00", "04:00", "05:00"]),
        (5 * 24 * 60, ["3 Nov", "4 Nov", "5 Nov", "6 Nov", "7 Nov", "8 Nov"]),
        (24 * 24 * 60, ["9 Nov", "16 Nov", "23 Nov"]),  # Mondays
        (120 * 24 * 60, ["Dec", "2027", "Feb", "Mar"]),
        (1000 * 24 * 60, ["2027", "Jul", "2028", "Jul", "2029", "Jul"]),
    ],
)
def test_a_time_axis_covers_its_data_alone_and_has_round_times(minutes, texts):
    first, last = (Point(at, 1500.0, 1510.0, "won", str) for at in (START, START + minutes * MINUTE))
    chart = path_chart(EN, "Rating", [first, last])
    assert [x for x, _ in places(drawn(chart)["won"])] == [0, 2000]
    midnight = "3 Nov"
    assert [column.text for column in chart.columns] == [midnight if text == "00:00" else text for text in texts]


def test_a_path_of_one_match_stands_in_the_middle():
    chart = path_chart(EN, "Rating", [POINTS[0]._replace(before=1520.0)])
    assert places(drawn(chart)["won"]) == [(1000, 500)]
    assert path_chart(EN, "Rating", []) is None


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0, 1, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (1.2, 3.4, ["1.5", "2.0", "2.5", "3.0"]),
        (1480, 1660, ["1,500", "1,550", "1,600", "1,650"]),
        (-3, 4, ["−2", "0", "2", "4"]),
        (0.001, 0.0034, ["0.0010", "0.0015", "0.0020", "0.0025", "0.0030"]),
    ],
)
def test_a_number_axis_has_round_numbers(low, high, texts):
    assert [text for _, text in number_ticks(Scale(low, high, HEIGHT))] == texts


def test_a_summary_tells_where_a_path_began_and_ended_its_highest_and_its_lowest():
    assert path_chart(EN, "Rating", POINTS).summary == (
        "From 1,510 on 3 Nov to 1,600 on 11 Nov 2026. Highest 1,600, lowest 1,500."
    )
    same_day = [POINTS[0], POINTS[1]._replace(at=START + 90 * MINUTE)]
    assert path_chart(EN, "Rating", same_day).summary.startswith(
        "From 1,510 at 00:00 to 1,500 at 01:30 UTC on 3 Nov 2026"
    )


def test_a_long_path_keeps_its_peak_its_low_and_the_first_match_of_a_season_and_is_small():
    rng = np.random.default_rng(5)
    levels = 1500 + rng.normal(0, 10, 5000).cumsum()
    told = "3 Nov 2026, 14:05, won: 1,510 → 1,520 (+10.0)"
    points = [Point(START + n * DAY, None, float(level), "won", told.strip) for n, level in enumerate(levels)]
    chart = path_chart(EN, "Rating", points, openings=[("Summer", START + 2000 * DAY)])
    dots = places(drawn(chart)["won"])
    assert len(dots) <= DRAWN
    room = 0.08 * np.ptp(levels)
    height = np.ptp(levels) + 2 * room
    assert min(y for _, y in dots) == round(1000 * room / height)
    assert max(y for _, y in dots) == round(1000 * (1 - room / height))
    assert round(WIDTH * 2000 / 4999) in {x for x, _ in dots}
    assert "of 5,000 points: every peak and every low" in chart.summary
    assert len(html_of(chart)) < 30_000


def test_bars_stand_on_their_bins_and_far_bins_are_no_wider_than_the_others():
    """Drawn from 1300 to 1700, although the outer bins reach −5000 and 9000. The highest bar leaves 8 % of room."""
    edges = np.array([-5000.0, 1400.0, 1500.0, 1600.0, 9000.0])
    chart = histogram(EN, "Ratings", edges, [1, 4, 7, 2])
    tops = [round(1000 * (1 - players / (7 * 1.08))) for players in (1, 4, 7, 2)]
    expected = [f"M{500 * n} 1000V{top}H{500 * (n + 1)}V1000z" for n, top in enumerate(tops)]
    assert drawn(chart) == {"bars": "".join(expected), "own": ""}
    assert chart.points.split("\n")[0] == f"250 {tops[0]} 1 player from −5,000 to 1,400"
    assert chart.summary == "14 players: the most, 7, from 1,500 to 1,600."
    assert histogram(EN, "Ratings", edges, [0, 0, 0, 0]) is None


@pytest.mark.parametrize(("you", "own", "at"), [(1450.0, 1, "37.5%"), (1500.0, 2, "50%"), (8000.0, 3, "100%")])
def test_a_histogram_marks_the_visitor_and_their_bin(you, own, at):
    edges = np.array([-5000.0, 1400.0, 1500.0, 1600.0, 9000.0])
    chart = histogram(EN, "Ratings", edges, [1, 4, 7, 2], [("Silver", 1495.0), ("Champion", 2400.0)], you)
    assert drawn(chart)["own"].startswith(f"M{500 * own} ")
    assert (chart.you.at, chart.you.minor) == (at, you > 1500)
    assert [start.text for start in chart.starts] == ["Silver"]


def test_names_are_no_markup():
    chart = path_chart(
        EN, "Rating", [POINTS[0]._replace(told=BAD.strip), *POINTS[1:]], bounds=[(BAD, 1550.0)], openings=[(BAD, START)]
    )
    html = html_of(chart)
    assert "<b" not in html
    assert "\u202e" not in chart.bounds[0].text + chart.starts[0].text
    assert "&lt;b" in html
    assert html.count("data-points") == 1


def html_of(chart):
    templates = jinja2.PackageLoader("evenmatch.web")
    environment = jinja2.Environment(
        loader=templates, autoescape=True, trim_blocks=True, extensions=["jinja2.ext.i18n"]
    )
    environment.install_null_translations(newstyle=True)
    return str(environment.get_template("charts.html.jinja").module.chart(chart, "path"))


def test_ticks_are_in_utc_whatever_the_zone_of_the_server(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    span = Scale(START, START + timedelta(hours=4) // timedelta(microseconds=1), WIDTH)
    assert [text for _, text in time_ticks(EN, span)] == ["3 Nov", "01:00", "02:00", "03:00", "04:00"]
