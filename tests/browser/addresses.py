"""Every address of the web site, read off the site itself, with what stands for each of its parts."""

import re
from urllib.parse import quote

from browser.sample_ladders import DUELS, HOSTILE
from evenmatch.web.pages import PAGES

PART = re.compile(r"\{(\w+)(?::\w+)?\}")
ASKED = {  # pages that must be asked something
    "/ladders/{ladder:text}/me": "?player=joe&want=standing",
    "/ladders/{ladder:text}/operate/queue/remove": "?name=ranked",
}
# A stream, which does not end, files to download, pictures, and a table for a frame of another site; what a login with
# an identity provider or a link leads to, which test_visitor.py and tests/web/test_logins.py open.
NO_PAGES = ("/pulse", "/operate/export", "/audit/file", ".{kind}", "/embedded")
NO_PAGES += ("/login/link", "/login/{provider}", "/login/{provider}/back", "/account", "/account/data")


MORE = (
    "/ladders/{ladder:text}/standings?around={player}",
    "/ladders/{ladder:text}/matches?player={player}&result=won&since=2020-01-01",
    "/search?q=a",
    "/ladders/{ladder:text}/distribution?player={player}",
    "/ladders/{ladder:text}/matches/{match:text}?player={player}",
    "/ladders/{ladder:text}/operate/correct?what=void&match={match}",
    "/ladders/{ladder:text}/operate/queue?name=ranked&preset=quick&look=1",
    "/ladders/{ladder:text}/operate/divisions?look=1&name0=All&lowest0=1",
    "/ladders/{ladder:text}/operate/bans?look=1&names={player}",
    "/operate/players?what=erase&look=1&player={player}",
    "/ladders/{ladder:text}/operate/correct?what=ban&player={player}",
)  # what pages show when they are asked something


def page_paths():
    """The path, with its parts named, of every page that can be opened."""
    return [one.path for one in PAGES if "GET" in one.methods and not one.path.endswith(NO_PAGES)]


def sent():
    """The path of every form."""
    return [one.path for one in PAGES if "POST" in one.methods]


def filled(path, known, ladder):
    """An address for a path, on a ladder. Fails for a part that nothing is known of: tell it here."""
    return with_parts(path, parts_of(known, ladder))


def with_parts(path, parts):
    """An address for a path whose parts have these values."""
    return PART.sub(lambda part: quote(str(parts[part[1]]), safe=""), path) + ASKED.get(path, "")


def parts_of(known, ladder):
    return {
        "ladder": ladder,
        "player": HOSTILE[0],
        "match": known.match[ladder],
        "season": "1",
        "queue": "quick" if ladder == DUELS else "ranked",
        "ticket": known.ticket.get(ladder),
        "key": known.key,
        "webhook": "1",
        "name": "elo",
        "system": "elo",
    }
