"""The report of an audit in a browser: readable in daylight, in the dark and on a phone."""

import pytest

from browser.axe import violations
from browser.page_checks import overflow
from evenmatch import systems
from evenmatch.lab import behaviours
from evenmatch.lab.fairness.audit import Audit, AuditPlan, Cell, Contestant, Measure
from evenmatch.lab.fairness.report import write_audit_report


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of all systems and behaviours with made-up gains of every size."""
    contestants = tuple(map(Contestant, systems.names()))
    names = tuple(name for name in behaviours.names() if name != "honest")
    plan = AuditPlan(contestants=contestants, behaviours=names, compared=len(contestants) * len(names))
    cells = []
    for row, name in enumerate(names):
        for column, contestant in enumerate(contestants):
            gain = (row * 7 + column * 5) % 61 - 30.0
            measure, cost = Measure(gain, gain - 6, gain + 6), Measure(-3.0, -5.0, -1.0)
            made = Cell(contestant, name, "team", 1.0, measure, measure, cost, cost, {1.0: gain}, 0.6, 30.0, 0.1)
            cells += [made] if (row + column) % 9 else []
    path = tmp_path_factory.mktemp("report") / "fairness.html"
    write_audit_report(Audit(plan, tuple(cells)), path, command="evenmatch audit --system all --report fairness.html")
    return path


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_the_report_is_readable(browser, report, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    troubles = []
    page.on("console", lambda message: troubles.append(message.text))
    page.goto(report.as_uri())
    assert overflow(page) == []
    assert violations(page) == []
    link = page.locator("table.heat tbody td a").first
    link.click()
    target = page.locator(link.get_attribute("href"))
    assert target.is_visible()  # the browser opens what is folded
    assert "evenmatch audit --system elo" in target.inner_text()  # battlepoints, the first, has no such cell
    assert violations(page) == []
    assert troubles == []
    context.close()
