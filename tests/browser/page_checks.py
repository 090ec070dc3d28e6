"""Pages in a real browser, of which everything is noted that a visitor should never meet."""

from urllib.parse import urlsplit

from evenmatch.lab.display_names import DIRECTIONS

PATIENCE = 20_000  # milliseconds until something that is waited for is there
LOUD = ("error", "warning", "assert")
STANDS_OUT = """() => {
    const root = document.scrollingElement, wide = root.scrollWidth - root.clientWidth
    if (wide <= 0) return []
    const out = [...document.querySelectorAll('body *')]
        .filter((one) => one.getBoundingClientRect().right > root.clientWidth + 0.5)
        .map((one) => `${one.tagName.toLowerCase()}.${one.getAttribute('class')}`)
    return [`${wide} px too wide`, ...out.slice(0, 8)]
}"""
CUT_OFF = """() => [...document.querySelectorAll('.scroll, .card, .grid > *')]
    .filter((one) => one.scrollWidth > one.clientWidth + 1)
    .map((one) => `${one.getAttribute('aria-label') ?? one.className}: ${one.scrollWidth} in ${one.clientWidth} px`)"""
EMPTY_CARDS = """() => [...document.querySelectorAll('.card')]
    .filter((one) => [...one.children].every((part) => /^H[1-6]$/.test(part.tagName) || !part.innerText.trim())
        && !one.querySelector('input, button, .figure, svg'))
    .map((one) => one.innerText.trim() || one.id)"""
ROWS = """() => [...document.querySelectorAll('table')]
    .map((one) => [one.caption.textContent.trim(), one.querySelectorAll('tbody tr').length])"""

MADE_OF_NAMES = """() => [
    ...[...document.querySelectorAll('*')].filter((one) =>
        // a form's field may be called `attributes`, and hides the property
        Element.prototype.getAttributeNames.call(one).some((each) => each.startsWith('on') || each === 'autofocus')
        || (one.href?.baseVal ?? one.href ?? '').toString().startsWith('javascript:')
        || ['evil.example'].some((host) => [one.src, one.href, one.action].join(' ').includes('//' + host))),
    ...[...document.scripts].filter((one) => one.type !== 'application/json' && !one.src.startsWith(location.origin)),
    ...document.querySelectorAll('main b, main i, main bdi *, h1 h1, td h1, iframe, object, embed, base'),
].map((one) => one.outerHTML.slice(0, 200))"""


class Watched:
    """The pages of one visitor; `troubles` is what went wrong on any of them, `asked` every address that was asked.

    own   addresses that may be asked begin like this
    """

    def __init__(
        self,
        browser,
        own,
        *,
        width=1200,
        height=900,
        scheme="light",
        javascript=True,
        cookies=(),
        locale="en-GB",
        zone="UTC",
    ):
        self.troubles, self.asked = [], []
        self._own = own
        self.context = browser.new_context(
            base_url=own,
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            java_script_enabled=javascript,
            reduced_motion="reduce",
            locale=locale,
            timezone_id=zone,
        )
        self.context.add_cookies(list(cookies))
        self.context.set_default_timeout(PATIENCE)
        self.context.set_default_navigation_timeout(PATIENCE)
        self.context.on("console", self._console)
        self.context.on("weberror", lambda error: self.troubles.append(f"error: {error.error}"))
        self.context.on("request", self._request)
        self.context.on("dialog", self._dialog)

    def page(self):
        """A new tab."""
        page = self.context.new_page()
        page.on("crash", lambda _: self.troubles.append("the page crashed"))
        return page

    def close(self):
        self.context.close()

    def _console(self, message):
        if message.type in LOUD:
            self.troubles.append(f"console {message.type}: {message.text} ({message.location.get('url', '')})")

    def _request(self, request):
        self.asked.append(request.url)
        if urlsplit(request.url).scheme not in ("data", "blob", "about") and not request.url.startswith(self._own):
            self.troubles.append(f"asked elsewhere: {request.url}")

    def _dialog(self, dialog):
        self.troubles.append(f"a dialog opened: {dialog.message}")
        dialog.dismiss()


def points_of(chart):
    """What a chart of the pages tells of each of its points, from the left."""
    return [point.split(" ", 2)[2] for point in chart.get_attribute("data-points").split("\n")]


def settled(page):
    """Wait until every chart of the lab is drawn."""
    page.wait_for_function(
        """() => [...document.querySelectorAll('[data-figure], [data-from]')]
            .every((one) => one.dataset.drawn === 'true' || one.textContent.trim().endsWith(').'))"""
    )


def overflow(page):
    """By how much a page is wider than its window, and what stands out; charts have two seconds to fit in."""
    for _ in range(20):
        if not (found := page.evaluate(STANDS_OUT)):
            break
        page.wait_for_timeout(100)
    return found


def cut_off(page):
    """What is wider than the block it stands in, so that columns are out of sight until somebody scrolls."""
    return page.evaluate(CUT_OFF)


def empty_cards(page):
    """The cards with nothing but a heading."""
    return page.evaluate(EMPTY_CARDS)


def rows_of_tables(page):
    """The caption and the number of rows of each table."""
    return [tuple(one) for one in page.evaluate(ROWS)]


def check_harmless(page):
    """Fail where a name became an element, or turns the direction of what follows."""
    assert page.title().endswith("evenmatch")
    assert page.evaluate(MADE_OF_NAMES) == []
    assert not DIRECTIONS & set(page.evaluate("document.body.innerText"))
