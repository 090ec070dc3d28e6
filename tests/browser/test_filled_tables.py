"""Full tables at every width: long names, large numbers, a running offer, audits, results of the lab.

The list of pages is the site's own, and so is the list of tables: the captions in its templates.
"""

import re
from importlib import resources

import pytest

from browser.addresses import MORE, page_paths, with_parts
from browser.conftest import log_in
from browser.filled_ladder import FILLED, LEARNING, NAMES, WHY, fill
from browser.page_checks import Watched, cut_off, empty_cards, overflow, rows_of_tables, settled
from browser.test_live_updates import wait_for
from evenmatch.web.page_request import address
from server_process import Served, request_json

pytestmark = pytest.mark.slow

WIDTHS = (360, 390, 1280)
LAB = address("ladders", FILLED, "lab")
LONGEST = 90_000  # milliseconds: systems may have to be compiled first
SHOWN = re.compile(r'<caption[^>]*?>(?:{{ _\("|{% trans[^%]*%})([^"{]+)')  # a caption, up to what a template fills in


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return tmp_path_factory.mktemp("filled") / "evenmatch.db"


@pytest.fixture(scope="module")
def filled(world):
    return fill(world)


@pytest.fixture(scope="module")
def served(world, filled, tmp_path_factory):
    settings = {"OPEN_READS": "true", "GUESTS": "true", "OPEN_RATE": "1000", "OPEN_BURST": "10000"}
    settings |= {"LOG_FORMAT": "text", "PRIVATE_WEBHOOKS": "true", "STOP_WITHIN": "1"}
    folder = tmp_path_factory.mktemp("served")
    with Served(str(world), folder, **{f"EVENMATCH_{name}": value for name, value in settings.items()}) as process:
        yield process


@pytest.fixture(scope="module")
def tab(browser, served, filled):
    """A tab of an operator, after what fills the audit trail and the list of deliveries."""
    with served.client(filled.admin) as client:
        request_json(client, "POST", f"/v1/ladders/{FILLED}/voids", {"match_id": filled.match, "reason": WHY})
        request_json(client, "POST", "/v1/keys", {"name": "Temporary key", "scopes": ["read"]}, status=201)
        teams = [{"place": at, "players": [{"player": name}]} for at, name in enumerate(NAMES[6:8], 1)]
        report = {"id": "reported-live", "played_at": "2026-01-01T00:00:00Z", "teams": teams}
        request_json(client, "POST", f"/v1/ladders/{FILLED}/matches", report)
    watched = Watched(browser, served.address)
    library = {"content_type": "text/javascript", "body": "window.Plotly = {react: async () => {}}"}
    watched.context.route("**/plotly*", lambda route: route.fulfill(**library))  # it takes longer than all the rest
    page = watched.page()
    log_in(page, filled.admin)
    yield page
    watched.close()
    assert watched.troubles == []


@pytest.fixture(scope="module")
def results(tab):
    """The addresses of the results of a backtest, of tuning, and of a what-if; suspects are found, too."""

    def finish(button):
        tab.get_by_role("button", name=button).click()
        tab.locator("#result:not([data-every])").wait_for(timeout=LONGEST)
        return tab.url

    tab.goto(f"{LAB}/backtest")
    for box in tab.locator("input[name=system]").all():
        box.set_checked(box.get_attribute("value") in ("elo", "glicko2"))
    found = [finish("Start the backtest")]
    tab.goto(f"{LAB}/tuning")
    tab.get_by_label("Search time in seconds").fill("5")
    found.append(finish("Begin tuning"))
    tab.goto(f"{LAB}/what-if")
    tab.get_by_label("Rating system").select_option("glicko2")
    tab.locator("#parameters summary", has_text="Parameters of glicko2").wait_for()
    found.append(finish("Compare the standings"))
    tab.goto(address("ladders", FILLED, "operate", "suspects"))
    tab.get_by_role("button", name="Look again").or_(tab.get_by_role("button", name="Look for")).first.click()
    tab.get_by_role("table", name="Suspicious accounts").wait_for(timeout=LONGEST)
    return found


@pytest.fixture(scope="module")
def addresses(filled, results):
    """Every page of the site with something in it."""
    parts = {"ladder": FILLED, "player": NAMES[0], "match": filled.match, "season": "1", "ticket": filled.ticket}
    parts |= {"key": filled.other_key, "webhook": "1"}
    pages = [
        with_parts(path, parts | {"player": filled.winner if "/results/" in path else NAMES[0]}).replace(
            "=ranked", "=patient"
        )
        for path in (*page_paths(), *MORE)
    ]
    pages = [page for page in pages if not page.startswith((f"{LAB}/health", f"{LAB}/waits"))]
    return [*pages, f"{LAB}/queue/change?queue=patient&w0=40", address("ladders", LEARNING, "lab"), *results]


def opened(tab, where):
    """Whether a page is there as a whole: charts drawn, findings computed, details open."""
    answer = tab.goto(where)
    assert answer.status == 200, (where, answer.status)
    settled(tab)
    tab.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true })")
    return tab.locator("#findings[data-every]").count() == 0


def check_a_file_with_problems(tab, folder):
    """Leave the page open that lists the problems of a file of matches."""
    path = folder / "A file with a name that is rather long, from the regular season.csv"
    path.write_text(
        "match_id,played_at,team,player,place\n"
        f"{'m' * 60},2026-01-01T00:00:00Z,a,{NAMES[0]},1\n"
        f"{'m' * 60},2026-01-01T00:00:00Z,b,{NAMES[0]},2\n"
    )
    tab.goto(address("ladders", FILLED, "operate", "files"))
    tab.get_by_label("File").set_input_files(path)
    tab.get_by_role("button", name="Check the file").click()
    tab.get_by_role("table", name="Problems of the file").wait_for()


def test_no_table_is_cut_off_or_empty_at_any_width(tab, addresses, tmp_path):
    rows, problems = {}, {}

    def look(where):
        for caption, count in rows_of_tables(tab):
            rows[caption] = max(rows.get(caption, 0), count)
        for width in WIDTHS:
            tab.set_viewport_size({"width": width, "height": 800})
            if found := overflow(tab) + cut_off(tab) + empty_cards(tab):
                problems[where, width] = found

    for where in addresses:
        wait_for(lambda where=where: opened(tab, where))
        look(where)
    check_a_file_with_problems(tab, tmp_path)
    look("a file with problems")
    assert problems == {}
    templates = resources.files("evenmatch.web") / "templates"
    captions = {one.strip() for file in templates.iterdir() for one in SHOWN.findall(file.read_text("utf-8"))}
    assert len(captions) > 20
    empty = {one for one in captions if not any(count for caption, count in rows.items() if caption.startswith(one))}
    assert empty == set()
