"""The report of an audit: one file without scripts, in which names do nothing and every cell can be found."""

import html.parser
import re
import shutil
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

from evenmatch import systems
from evenmatch.errors import UsageError
from evenmatch.lab.backtests.workers import Threads
from evenmatch.lab.fairness.audit import Audit, AuditPlan, Cell, Contestant, Measure, audit
from evenmatch.lab.fairness.report import render, write_audit_report
from evenmatch.lab.seasons.settings import SeasonSettings
from lab.own_behaviours import write_behaviour

HOSTILE = "</style><script>alert(1)</script>\u202e\"'<img src=x onerror=alert(2)>{{ 7*7 }}"
SAFE_IN_A_PATH = "own'\"><img src=x onerror=alert(3)>&amp; #1"


class Page(html.parser.HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data

    def all(self, name):
        return [attributes[name] for _, attributes in self.elements if name in attributes]


def cell(contestant, behaviour, mean, low, high):
    changed, nothing = Measure(mean, low, high), Measure(0.0, -1.0, 1.0)
    return Cell(contestant, behaviour, "duel", 1.0, changed, changed, nothing, nothing, {1.0: mean}, 0.6, 30.0, 0.1)


def made_up(behaviours, contestants, measure=(3.0, 1.0, 5.0)):
    """An audit whose cells are made up; `wager` does not rate the last behaviour."""
    plan = AuditPlan(contestants=contestants, behaviours=behaviours, compared=len(behaviours) * len(contestants))
    places = [(c, b) for c in contestants for b in behaviours if (c.system, b) != ("wager", behaviours[-1])]
    return Audit(plan, tuple(cell(c, b, *measure) for c, b in places))


@cache
def usual():
    contestants = (Contestant("elo"), Contestant("wager"), Contestant("elo", None, (("k", 20.0),)))
    return made_up(("smurf", "idle_hoarder", "win_trader"), contestants)


def test_every_cell_is_in_the_report_and_every_anchor_leads_to_one():
    found = usual()
    page = Page(render(found, command="evenmatch audit"))
    identities = page.all("id")
    assert len(identities) == len(set(identities))
    anchors = [unquote(link[1:]) for link in page.all("href") if link.startswith("#")]
    assert len(anchors) == len(set(anchors)) == len(found.cells) == 8
    assert set(anchors) <= set(identities)
    assert all(re.fullmatch(r"[\w-]+", name) for name in identities)
    words = " ".join(page.text.split())
    for one in found.cells:
        assert one.sentence in words
        assert one.command(found.plan) in words
    assert words.count("–") >= 1
    assert "Under elo, an idle hoarder gains 3.0 percentiles (+1.0 to +5.0), at dose 1." in words
    assert "Is strong and begins again with a fresh account." in words


def test_the_report_is_one_file_without_scripts():
    page = Page(render(usual(), command="evenmatch audit"))
    assert {tag for tag, _ in page.elements}.isdisjoint({"script", "link", "img", "iframe", "object", "base", "form"})
    assert page.all("src") == []
    assert all(link.startswith("#") for link in page.all("href"))
    policy = next(a["content"] for tag, a in page.elements if tag == "meta" and "http-equiv" in a)
    assert "default-src 'none'" in policy


def test_names_of_a_users_files_do_nothing(tmp_path):
    behaviour = write_behaviour(tmp_path / f"{SAFE_IN_A_PATH}.py", "0.0", title=HOSTILE, does=HOSTILE, games=("duel",))
    same_stem = write_behaviour(tmp_path / "other" / f"{SAFE_IN_A_PATH}.py", "0.0", title="Other", games=("duel",))
    own = str(tmp_path / f"{SAFE_IN_A_PATH} system.py")
    shutil.copyfile(Path(systems.__file__).parent / "elo.py", own)
    settings = SeasonSettings(players=20, matches=20, weeks=1.0, culprits=0.2)
    plan = AuditPlan(
        contestants=(Contestant(own), Contestant("elo")),
        behaviours=(behaviour, same_stem),
        settings=settings,
        search=(),
        measured=(1, 2),
    )
    with Threads(1) as workers:
        found = audit(plan, workers)
    assert found.cells[0].percentile == found.cells[2].percentile
    for text in (render(found, command=HOSTILE), render(made_up((behaviour,), (Contestant(own),)), command="")):
        page = Page(text)
        assert {tag for tag, _ in page.elements}.isdisjoint({"script", "img"})
        assert not [name for _, a in page.elements for name in a if name.startswith("on")]
        assert "\u202e" not in text
        assert "49" not in page.text.split("alert(2)>", 1)[1][:12]
        identities = page.all("id")
        assert len(identities) == len(set(identities))
        assert {link[1:] for link in page.all("href")} <= set(identities)
        assert not [name for name in identities if not re.fullmatch(r"[\w-]+", name)]


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        ((3.0, 1.0, 5.0), "elo can be gamed by smurf (+3.0)"),
        ((-3.0, -5.0, -1.0), "elo: no behaviour gains by more than chance"),
        ((3.0, -1.0, 7.0), "elo: no behaviour gains by more than chance"),
        ((3.0, float("nan"), float("nan")), "elo: no behaviour gains by more than chance"),
    ],
)
def test_the_verdict_counts_what_is_beyond_chance(measure, words):
    page = Page(render(made_up(("smurf",), (Contestant("elo"),), measure), command=""))
    assert words in " ".join(page.text.split())
    sure = [a["class"] for tag, a in page.elements if tag == "td" and "sure" in a.get("class", "")]
    assert bool(sure) is (measure[1] * measure[2] > 0)


def test_a_report_that_cannot_be_written_is_told(tmp_path):
    write_audit_report(usual(), tmp_path / "x.html")
    assert (tmp_path / "x.html").read_text().startswith("<!doctype html>")
    with pytest.raises(UsageError, match="suffix"):
        write_audit_report(usual(), tmp_path / "x.pdf")
    assert [path.name for path in tmp_path.iterdir()] == ["x.html"]
