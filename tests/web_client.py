"""Asking for pages as a browser does, without one; and a league whose players are met on them."""

import re
from html import unescape

from asgi_client import Asking

HOSTILE = '<b>"x"</b>&\u202e'
RESULTS = [("ann", "bob"), ("ann", "joe"), ("bob", "joe"), (HOSTILE, "joe"), ("ann", HOSTILE), ("joe", "ann")]


def elo_by_hand(results, k=32.0, start=1500.0):
    """Ratings by Elo's formula, and the last change of each player."""
    rating, change = {}, {}
    for winner, loser in results:
        a, b = rating.setdefault(winner, start), rating.setdefault(loser, start)
        gain = k * (1 - 1 / (1 + 10 ** ((b - a) / 400)))
        rating[winner], rating[loser] = a + gain, b - gain
        change[winner], change[loser] = gain, -gain
    return rating, change


class Browsing(Asking):
    """Asks for pages, and sends their forms as a browser does."""

    def page(self, address, status=200, **fields):
        """The text of a page."""
        answer = self.get(address, **fields)
        assert answer.status_code == status, f"{address}: {answer.status_code} {words(answer.text)[:500]}"
        return answer.text

    def cookies(self, others=None):
        """The cookies that are held; others: held from now on, too."""
        if others is not None:
            self._client.cookies.update(others)
        return self._client.cookies

    def log_in_as(self, site, player, ladders=None):
        """Log in as a player, with a login link that the game's backend made for these ladders."""
        key = site.keys.authenticate(site.keys.create("backend", ["queue"], ladders)[1])
        path = site.tokens.issue_link(key, player).text
        answer = self.submit("/login/link", on=path, token=path.partition("=")[2])
        assert answer.status_code == 303, words(answer.text)
        return answer

    def submit(self, address, on=None, **form):
        """Send a form that stands on a page, with what proves that it does."""
        proof = re.search(r'name="proof" value="([^"]+)"', self.page(on or address))
        return self.post(address, data={"proof": proof[1] if proof else "", **form})


def words(page):
    """What a page says, without its elements."""
    body = re.sub(r"(?s)<(script|style)\b.*?</\1>", " ", page)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


def field(page, name):
    """What stands in a field of a form, and what is said to be wrong with it; None where nothing is."""
    entry = re.search(rf'<input id="([^"]+)" name="{re.escape(name)}" value="([^"]*)"', page)
    wrong = re.search(rf'<small class="wrong" id="{re.escape(entry[1])}-wrong"[^>]*>(.*?)</small>', page)
    return unescape(entry[2]), wrong and words(wrong[1])
