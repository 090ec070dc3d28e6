"""The report of simulated queues, its figures, pictures and words: everything told, nothing fetched, no name obeyed."""

import dataclasses
import re

import numpy as np
import pytest

from evenmatch.lab.queue import verdict
from evenmatch.lab.queue.run_metrics import summary_of

pytest.importorskip("plotly", reason="reports need plotly (the extra lab)")
pytest.importorskip("jinja2", reason="reports need jinja2 (the extra lab)")

from benchmarks.rivals import others

from evenmatch.errors import UsageError
from evenmatch.lab.queue import queue_charts, report
from evenmatch.lab.queue.scenario import Scenario
from evenmatch.lab.queue.simulation import simulate
from evenmatch.matchmaking.propose import propose
from evenmatch.policy import Policy
from lab.test_queue_run_metrics import run_of
from lab.test_report import OWNED, ReportPage, browser, page_figures, red

assert browser  # the fixture of another file
HOSTILE = f"</script><script>{OWNED}</script><img src=https://evil.example/x onerror={OWNED}>\u202e"
POLICY = Policy(team_size=2)


@pytest.fixture(scope="module")
def runs():
    """Two minutes of 2v2 with parties and regions; the second run has a hostile name, the third breaks filters."""
    scenario = Scenario(minutes=2, seed=3, parties=(0.7, 0.3), patience=90.0, regions={"<b>eu</b>": 0.6, "us": 0.4})
    fifo = others()["fifo"].propose
    plan = [("balanced", propose), (HOSTILE, propose), ("fifo", fifo)]
    return [simulate(scenario, matchmaker, POLICY, name=name) for name, matchmaker in plan]


@pytest.fixture(scope="module")
def solo():
    """The same without parties, of one matchmaker."""
    return simulate(Scenario(minutes=2), propose, POLICY, name="balanced")


@pytest.fixture(scope="module")
def report_text(runs, tmp_path_factory):
    """The report of these runs."""
    return written_report(runs, tmp_path_factory.mktemp("report"))


def written_report(runs, folder, **options):
    path = folder / "report.html"
    report.write_queue_report(runs, path, **{"title": "2v2", **options})
    assert [file.name for file in folder.iterdir()] == ["report.html"]
    return path.read_text("utf-8")


def test_a_report_shows_the_verdict_and_the_figures_of_every_run(runs, tmp_path):
    page = ReportPage(
        written_report(runs, tmp_path, command="evenmatch simulate-queue --seed 3", notes=["Nothing differs."])
    )
    for sentence in verdict.verdict(runs[:1]):
        if "rule" not in sentence:  # of which all runs have a part
            assert sentence in page.text
    for run in runs:
        found = summary_of(run)
        assert f"{found['matches']} matches {verdict.seconds(found['wait_p50'])}" in page.text
        assert f"{found['law']:.1f} {found['violations']:,} {found['unmatched']:,}" in page.text
    assert "evenmatch simulate-queue --seed 3" in page.text
    assert "Nothing differs." in page.text
    assert f"players who joined {int(runs[0].sizes.sum()):,}" in page.text  # each once
    assert "seed 3" in page.text
    assert "By size of party" in page.headings


def test_a_report_is_built_of_landmarks_headings_captions_and_named_charts(report_text):
    page = ReportPage(report_text)
    tags = [tag for tag, _ in page.elements]
    assert [tags.count(tag) for tag in ("header", "main", "footer", "h1")] == [1, 1, 1, 1]
    assert tags.count("caption") == tags.count("table") >= 4
    shown = [attributes for attributes in page.all("div") if attributes.get("class") == "chart"]
    assert all(attributes["role"] == "img" and attributes["aria-label"] for attributes in shown)
    drawn = {attributes["data-figure"] for attributes in shown}
    assert drawn - {"paths"} == set(page_figures(page)) - {"decile-95", "decile-50"}
    assert {"decile-95", "decile-50"} == {attributes["value"] for attributes in page.all("option")}


def test_hostile_names_are_shown_letter_by_letter_and_start_nothing(runs, tmp_path):
    text = written_report(runs, tmp_path, title=f"<b>{HOSTILE}", command=f"evenmatch '{HOSTILE}'", notes=[HOSTILE])
    page = ReportPage(text)
    assert len(page.all("script")) == 3  # the figures, plotly, our own
    assert not [tag for tag, _ in page.elements if tag in {"b", "img", "a"}]
    assert not [key for _, attributes in page.elements for key in attributes if key.startswith("on")]
    assert page.text.count(HOSTILE.replace("\u202e", "�")) >= 4
    assert "\u202e" not in text.split('id="figures"')[0]
    assert not {"<", ">", "&"} & set(page.scripts[0])
    lines = [line for figure in page_figures(page).values() for line in figure["data"] if "name" in line]
    assert all("<" not in line["name"] for line in lines)
    assert all("<" not in text for line in lines for text in line.get("text", []))


def test_the_same_runs_give_the_same_report(runs, report_text, tmp_path):
    assert written_report(runs, tmp_path) == report_text


def test_a_report_that_cannot_be_written_is_an_error(runs, tmp_path):
    with pytest.raises(UsageError, match=r"expected .html"):
        report.write_queue_report(runs, tmp_path / "report.pdf", title="")
    with pytest.raises(UsageError, match="No such file"):
        report.write_queue_report(runs, tmp_path / "nosuch" / "report.html", title="")


def test_a_queue_without_a_match_has_a_report(tmp_path):
    none = simulate(Scenario(minutes=0.1, arrivals=1.0), propose, Policy(), name="balanced")
    page = ReportPage(written_report([none], tmp_path))
    assert f"balanced made no match out of {int(none.sizes.sum())} players." in page.text
    assert set(page_figures(page)) == {"queue"}
    assert "Wait against evenness" not in page.headings


def players_of(run):
    """(percentile, size of party, wait) of each player who found a match, one by one."""
    found = []
    for at in range(len(run.fate)):
        first, stop = run.tickets.start[at : at + 2].tolist()
        wait = (run.left[at] - run.tickets.queued[at]) / 1e6
        if run.fate[at] == 1:
            found += [(run.tickets.percentile[seat], stop - first, wait) for seat in range(first, stop)]
    return found


def test_waits_are_drawn_as_players_waited(runs):
    run = runs[0]
    waits = sorted(wait for *_, wait in players_of(run))
    line = queue_charts.wait_shares(runs).data[0]
    assert (line.x[0], line.x[-1], line.y[-1]) == (waits[0], waits[-1], 100)
    assert line.x[queue_charts.STEPS // 2] == pytest.approx(np.median(waits))


def test_waits_by_decile_and_party_are_drawn_as_players_waited(runs):
    run = runs[0]
    fourth = [wait for percentile, _, wait in players_of(run) if 30 <= percentile < 40]
    line = queue_charts.wait_by_decile(runs, 50).data[0]
    assert line.y[list(line.x).index(4)] == pytest.approx(np.median(fourth))
    pairs = [wait for _, size, wait in players_of(run) if size == 2]
    line = queue_charts.wait_by_party_size(runs).data[0]
    assert line.x == (1, 2)
    assert line.y[1] == pytest.approx(np.percentile(pairs, 95))


def test_a_mark_is_open_where_rules_were_broken_and_its_lines_end_at_95_of_100(runs):
    figure = queue_charts.wait_against_evenness(runs)
    assert [line.marker.symbol.endswith("-open") for line in figure.data] == [False, False, True]
    found, line = summary_of(runs[2]), figure.data[2]
    assert (line.x[0], line.y[0]) == (found["wait_p50"], found["spread_p50"])
    assert line.x[0] + line.error_x.array[0] == pytest.approx(found["wait_p95"])
    assert line.y[0] + line.error_y.array[0] == pytest.approx(found["spread_p95"])


def test_true_odds_are_drawn_for_the_stronger_team(runs):
    line = queue_charts.true_odds(runs).data[2]
    odds = runs[2].worth.true_odds
    assert line.x[-1] == pytest.approx(100 * max(odds.max(), 1 - odds.min()))
    assert line.x[0] >= 50


def test_the_verdict_names_who_waits_longest_and_what_was_broken(runs):
    told = " ".join(verdict.verdict([runs[0], runs[2]]))
    deciles = [one for one in summary_of(runs[0])["by_decile"] if one["matched"] >= verdict.LEAST]
    slowest = max(deciles, key=lambda one: one["wait_p95"])["decile"]
    assert re.search(rf"\b{slowest}(st|nd|rd|th) tenth of the ranks \(percentiles {slowest * 10 - 10} to ", told)
    assert "No rule was broken by balanced:" in told
    broken = summary_of(runs[2])
    share = verdict.percent(broken["violations"] / broken["matched"])
    assert f"Rules were broken by fifo ({share} of its players): these were put with a player outside" in told
    assert "By size of party, those of" in told


def test_the_verdict_warns_of_players_who_are_stuck_and_says_what_they_are():
    told = verdict.verdict([run_of()])
    assert "Too few players found a match to compare waits by rank." in told
    assert "That is 15% of all joins: " in " ".join(told)  # 2 of 13
    assert (
        "The waits above do not include them: 2 of the 2 players still waiting have waited longer than 10 s already. "
        "With all waiting players included, the wait of 95 of 100 is at least 25 s."
    ) in told
    assert "Of those 2, 100% are in parties of 2 (31% of all joins)." in told


def test_the_verdict_compares_ranks_where_most_of_them_have_players(runs):
    few = simulate(Scenario(minutes=0.6), propose, POLICY, name="balanced")
    assert not [told for told in verdict.verdict([few]) if "of the ranks" in told]
    assert [told for told in verdict.verdict(runs) if "of the ranks" in told]


def test_the_effect_of_more_players_is_predicted_only_for_a_steady_queue(solo):
    def said(run):
        return [told for told in verdict.verdict([run]) if told.endswith("product of wait and spread doubles.")]

    assert len(said(solo)) == 1
    assert not said(dataclasses.replace(solo, scenario=Scenario(minutes=2, kind="bursts")))
    assert not said(simulate(Scenario(minutes=1), propose, Policy(), name="balanced"))  # most still wait


def test_shares_are_never_rounded_to_all_or_nothing():
    told = [verdict.percent(share) for share in (None, 0.0, 0.0004, 0.004, 0.5, 0.994, 0.9999, 1.0)]
    assert told == ["–", "0%", "0.1%", "0.4%", "50%", "99.4%", "99.9%", "100%"]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 360)])
def test_a_browser_draws_every_chart_and_asks_for_nothing(browser, report_text, tmp_path, scheme, width):
    (tmp_path / "report.html").write_text(report_text, "utf-8")
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    told, asked = [], []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "report.html").as_uri())
    page.wait_for_function("[...document.querySelectorAll('.chart')].every((one) => one.querySelector('.main-svg'))")
    assert asked == [(tmp_path / "report.html").as_uri()]
    assert told == []
    assert page.title() == "Waits and even matches: 2v2"
    assert page.evaluate("document.documentElement.scrollWidth") == width
    chart = page.locator(".chart[data-figure=paths]")
    before = chart.evaluate("(chart) => chart.data[0].y[0]")
    page.select_option("#paths", value="decile-50")
    assert chart.evaluate("(chart) => chart.data[0].y[0]") < before
    assert page.locator(".chart b, .chart img").count() == 0
    ink, ground = (red(page.evaluate(f"getComputedStyle(document.body).{of}")) for of in ("color", "backgroundColor"))
    assert (ink > ground) == (scheme == "dark")
    page.close()


def test_a_report_shows_the_attributes_of_policy_and_players(tmp_path):
    told = Scenario(minutes=1, attributes={"platform": {"pc": 3, "console": 1}}, vetoes={"dust": 0.25})
    policy = Policy(
        team_size=2,
        attributes={"platform": {"values": ["pc", "console"], "worth": 30}},
        maps=("dust", "nuke"),
        vetoes=1,
    )
    run = simulate(told, propose, policy, name="choosy")
    page = ReportPage(written_report([run], tmp_path))
    assert "platform (meet of pc, console, worth 30 s)" in page.text
    assert "dust, nuke" in page.text
    assert "pc 75%, console 25%" in page.text
    assert "dust 25%" in page.text
