"""The report of a backtest: what it says, that it asks nothing of the network, and that no name in it does harm."""

import dataclasses
import json
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("plotly", reason="reports need plotly (the extra lab)")
pytest.importorskip("jinja2", reason="reports need jinja2 (the extra lab)")

from browser.page_checks import Watched
from chromium import chromium, lacking
from evenmatch import Appearance, Match, Team, from_matches, rate, rules
from evenmatch.errors import UnknownNameError, UsageError
from evenmatch.lab import charts
from evenmatch.lab.backtests import report
from evenmatch.lab.backtests.backtest import backtest
from evenmatch.lab.backtests.report import write_report
from evenmatch.lab.backtests.scoring import TRIALS, Variant
from evenmatch.lab.backtests.verdict import verdict
from evenmatch.lab.display_names import DIRECTIONS
from evenmatch.lab.sample import season

SYSTEMS = ("elo", "glicko2", "wager")
OWNED = "document.title='owned'"
NAMES = [
    "<b>bold</b>",
    '<a href="https://evil.example/">link</a>',
    f"</script><script>{OWNED}</script>",
    f"<img src=https://evil.example/x onerror={OWNED}>",
    "\u202egnol drawkcab\u202c",
    "x" * 200,
    "🏳️‍🌈 'quotes\"",
    "&lt;i&gt; %{x} {{ 7 * 7 }} {% raw %}",
    "line\nbreak\u2028and more",
    "--> ]]>",
]
LADDERS = [f"</title><script>{OWNED}</script>", f"<svg onload={OWNED}>" + "y" * 180]


class ReportPage(HTMLParser):
    """The elements of a page: (tag, attributes), text outside scripts and styles, and what is in the scripts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.words, self.scripts, self.headings = [], [], [], [], []
        self.feed(text)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif "style" not in self.open:
            self.words.append(data)
            if self.open and self.open[-1] in {"h1", "h2", "h3"}:
                self.headings.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def found():
    played = season(1, players=40, matches=700, team_size=2)
    return backtest(played.matches, SYSTEMS)


@pytest.fixture(scope="module")
def hostile():
    rng = np.random.default_rng(1)
    played = []
    for number in range(300):
        first, second = rng.choice(len(NAMES), 2, replace=False)
        wins = rng.random() < 1 / (1 + np.exp((second - first) / 4))
        teams = (Team((Appearance(NAMES[first]),), 2 - wins), Team((Appearance(NAMES[second]),), 1 + wins))
        time = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(hours=8 * number)
        played.append(Match(f"m{number}", time, teams, ladder=LADDERS[number % 2]))
    matches = from_matches(played)
    source = dataclasses.replace(matches.source, name=f"folder/<script>{OWNED}<b>\u202e.csv")
    return backtest(dataclasses.replace(matches, source=source), SYSTEMS)


@pytest.fixture
def tuned(found):
    """As though tuning had found that elo does better with another k."""
    better = rules("elo", k=48)
    variant = Variant("elo", "tuned", better)
    scores = found.scores.to_pylist()
    row = next(row for row in scores if (row["system"], row["variant"]) == ("elo", "default"))
    row = row | {"variant": "tuned", "log_loss": row["log_loss"] - 0.01, "parameters": json.dumps(better.values())}
    trials = [{"system": "elo", "trial": at, "log_loss": 0.6, "parameters": "{}", "seconds": 0.1} for at in range(7)]

    def with_tuned(table):
        mine = [row | {"variant": "tuned"} for row in table.to_pylist() if row["variant"] == "default"]
        return pa.Table.from_pylist(table.to_pylist() + mine, schema=table.schema)

    return dataclasses.replace(
        found,
        variants=(*found.variants, variant),
        scores=pa.Table.from_pylist(
            sorted([*scores, row], key=lambda row: row["log_loss"]), schema=found.scores.schema
        ),
        segments=with_tuned(found.segments),
        reliability=with_tuned(found.reliability),
        against_best=with_tuned(found.against_best),
        against_best_default=with_tuned(found.against_best_default),
        trials=pa.Table.from_pylist(trials, schema=TRIALS),
        chosen=(variant,),
        notes=("tuning stopped early: the time was over",),
    )


def written_report(found, folder, **options):
    path = folder / "report.html"
    write_report(found, path, **options)
    assert [file.name for file in folder.iterdir()] == ["report.html"]
    return path.read_text("utf-8")


def page_figures(page):
    return json.loads(next(script for script in page.scripts if script.startswith("{")))


def test_a_report_shows_the_verdict_and_every_number_of_the_ranking(found, tmp_path):
    page = ReportPage(written_report(found, tmp_path, command="evenmatch backtest season.csv"))
    for sentence in verdict(found):
        assert sentence in page.text
    for row in found.scores.to_pylist():
        assert f"{row['system']} {row['variant']} {row['log_loss']:.4f}" in page.text
    assert f"matches 700 players {len(set(found.matches.player_names))} ladders 1" in page.text
    assert "warm-up 350 matches judged 350 matches" in page.text
    assert "evenmatch backtest season.csv" in page.text
    assert report.fingerprint(found.matches) in page.text
    assert "Nothing was tuned." in page.text
    assert "What tuning changed" not in page.headings


def test_a_report_is_built_of_landmarks_headings_captions_and_named_charts(found, tmp_path):
    page = ReportPage(written_report(found, tmp_path))
    tags = [tag for tag, _ in page.elements]
    assert page.all("html") == [{"lang": "en"}]
    assert [tags.count(tag) for tag in ("header", "main", "footer", "h1")] == [1, 1, 1, 1]
    assert page.headings[:3] == ["Verdict", "Ranking", "Are the odds right?"]
    assert tags.count("caption") == tags.count("table") >= 4
    shown = [attributes for attributes in page.all("div") if attributes.get("class") == "chart"]
    assert all(attributes["role"] == "img" and attributes["aria-label"] for attributes in shown)
    drawn = {attributes["data-figure"] for attributes in shown}
    assert drawn == {"reliability", "time", "paths", *(f"ratings-{at}" for at in range(len(SYSTEMS)))}
    assert drawn - {"paths"} <= set(page_figures(page))


def test_a_report_needs_no_network(found, hostile, tmp_path):
    for each in (found, hostile):
        page = ReportPage(written_report(each, tmp_path))
        for tag, attributes in page.elements:
            assert tag not in {"link", "iframe", "img", "object", "embed", "base", "a"}
            assert not {"src", "href", "srcset", "action", "data", "poster"} & set(attributes)
        policy = next(meta["content"] for meta in page.all("meta") if "http-equiv" in meta)
        assert policy.startswith("default-src 'none'")
        assert "url(" not in written_report(each, tmp_path).split("</style>")[0]


def test_hostile_names_are_shown_letter_by_letter_and_start_nothing(hostile, tmp_path, monkeypatch):
    said = f"best on <script>{OWNED}</script>\u202e"
    monkeypatch.setattr("evenmatch.lab.backtests.report.verdict", lambda _: [said])
    text = written_report(hostile, tmp_path, players=NAMES, command=f"evenmatch backtest '<script>{OWNED}'")
    page = ReportPage(text)
    assert len(page.all("script")) == 3  # the figures, plotly, our own
    assert not [tag for tag, _ in page.elements if tag in {"b", "img", "a", "i"}]
    assert not [key for _, attributes in page.elements for key in attributes if key.startswith("on")]
    assert page.text.count(f"<script>{OWNED}<b>�.csv") == 2  # title and heading
    assert f"best on <script>{OWNED}</script>�" in page.text
    assert not DIRECTIONS & set(text.split('id="figures"')[0])
    assert not {"<", ">", "&"} & set(page.scripts[0])
    figures = page_figures(page)
    lines = [line for key, figure in figures.items() if key.startswith("paths") for line in figure["data"]]
    assert {line["meta"].split(" (")[0] for line in lines} >= {"<b>bold</b>", "x" * 23 + "…", "line�break�and more"}
    assert all("<" not in line["name"] and ">" not in line["name"] for line in lines)


def test_a_report_draws_the_named_players_or_those_with_most_matches(hostile, found):
    names = hostile.matches.player_names
    chosen = report.choose(hostile.matches, [NAMES[1], NAMES[0], NAMES[1]])
    assert [names[at] for at in chosen] == [NAMES[1], NAMES[1], NAMES[0], NAMES[0]]
    played = np.bincount(found.matches.history.columns.player)
    assert sorted(played[report.choose(found.matches, [])]) == sorted(played)[-5:]


def test_of_team_mates_who_always_play_together_one_path_is_drawn():
    pairs = [("Ann", "Bob"), ("Cat", "Dan"), ("Eve", "Fay"), ("Gus", "Hal"), ("Ida", "Joe"), ("Kim", "Lou")]
    played = []
    for number in range(120):
        first, second = (pairs[(number * step + number // 7) % 6] for step in (1, 2))
        if first != second:
            teams = tuple(Team(tuple(map(Appearance, pair)), place) for place, pair in enumerate((first, second), 1))
            played.append(Match(f"m{number}", datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number), teams))
    matches = from_matches(played)
    chosen = [matches.player_names[at] for at in report.choose(matches, [])]
    assert len({pair for pair in pairs for name in chosen if name in pair}) == len(chosen) == 5


def test_paths_are_the_ratings_after_each_match(found):
    most = report.choose(found.matches, [])[0]
    text = report.render(found, [most], "")
    first = found.chosen[0]
    rated = rate(found.matches, first.rules, journal=True)
    slots = rated.matches.history.columns.player == most
    drawn = charts.rating_paths([charts.Path("one", np.arange(slots.sum()), rated.journal.after[slots])])
    assert page_figures(ReportPage(text))["paths-0"]["data"][0]["y"] == json.loads(drawn.to_json())["data"][0]["y"]


def test_an_unknown_player_is_named_before_anything_is_written(found, tmp_path):
    with pytest.raises(UnknownNameError, match="unknown player 'Nobody'"):
        write_report(found, tmp_path / "report.html", players=["Nobody"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "reason"),
    [("nosuch/report.html", "No such file"), ("folder.html", "is a folder"), ("report.pdf", "expected .html")],
)
def test_an_unwritable_path_is_refused_before_the_work_begins(name, reason, found, tmp_path, monkeypatch):
    (tmp_path / "folder.html").mkdir()
    monkeypatch.setattr(report, "render", None)
    with pytest.raises(UsageError, match=reason) as told:
        write_report(found, tmp_path / name)
    assert str(tmp_path / name) in str(told.value)


def test_a_tuned_backtest_shows_what_tuning_changed(tuned, tmp_path):
    page = ReportPage(written_report(tuned, tmp_path))
    before = next(row for row in tuned.scores.to_pylist() if row["variant"] == "default" and row["system"] == "elo")
    loss = before["log_loss"]
    assert "What tuning changed" in page.headings
    assert f"elo 7 trials {loss:.4f} → {loss - 0.01:.4f} k 32 48" in page.text
    assert "tuning stopped early: the time was over" in page.text
    assert "Tuning used only those." in page.text


@pytest.fixture(scope="module")
def browser():
    if (reason := lacking()) is not None:
        pytest.skip(f"needs a browser: {reason}")
    with chromium() as opened:
        yield opened


def red(color):
    return int(re.search(r"\d+", color)[0])


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 360)])
def test_a_browser_draws_every_chart_and_asks_for_nothing(browser, hostile, tmp_path, scheme, width):
    written_report(hostile, tmp_path, players=NAMES[:4])
    address = (tmp_path / "report.html").as_uri()
    watched = Watched(browser, address, width=width, height=800, scheme=scheme)
    page = watched.page()
    page.goto(address, wait_until="commit")
    page.wait_for_load_state("load")
    page.wait_for_function("[...document.querySelectorAll('.chart')].every((one) => one.querySelector('.main-svg'))")
    assert page.title().startswith("Which rating system fits: ")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.select_option("#paths", index=1)
    paths = page.locator(".chart[data-figure=paths]")
    page.evaluate("(chart) => Plotly.Fx.hover(chart, [{curveNumber: 0, pointNumber: 3}])", paths.element_handle())
    assert page.locator("a, img, .chart b").count() == 0
    assert "<b>bold</b>" in page.locator(".lines button").all_inner_texts()[-8:][0]
    ink, ground = (red(page.evaluate(f"getComputedStyle(document.body).{of}")) for of in ("color", "backgroundColor"))
    assert (ink > ground) == (scheme == "dark")
    watched.close()
    assert watched.asked == [address]
    assert watched.troubles == []
