"""What axe finds wrong with a page."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

RUN = """async ([alsoThese, alone]) => {
    const only = alone.length ? {runOnly: {type: 'rule', values: alone}} : {}
    const found = await axe.run({exclude: [['tbody tr:nth-child(n+9)']]}, {resultTypes: ['violations'], ...only})
    const nodes = (one) => one.nodes.slice(0, 4).map((node) => [node.target.join(' '), node.failureSummary])
    return found.violations
        .filter((one) => ['serious', 'critical'].includes(one.impact) || alsoThese.includes(one.id))
        .map((one) => [one.id, one.impact, nodes(one)])
}"""
ALSO = ["color-contrast", "label", "label-title-only", "heading-order", "region", "landmark-one-main", "empty-heading"]


@cache
def source():
    """The script, of the installed package."""
    found = find_spec("axe_playwright_python")
    assert found is not None
    assert found.origin is not None
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")


def violations(page, *alone):
    """What is serious or critical, and all of labels, contrast and landmarks; or these rules alone."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(source())
    return [
        f"{rule} ({impact}): " + "; ".join(f"{where}: {' '.join(why.split())}" for where, why in nodes)
        for rule, impact, nodes in page.evaluate(RUN, [ALSO, list(alone)])
    ]
