"""An open page reloads only the regions that have changed; what is sent is compressed, except events."""

import gzip
import re

import pytest

from evenmatch.web.regions import changed_regions, region_of
from ledger.sample_matches import duel

PART = "X-Evenmatch-Part"
PAGE = """<main><section class="a" id="one" data-live="ladder"><section id="inner">x</section> <p>1</p></section>
<div id="two"><p id="three">3 <time data-ago>5 min ago</time></p></div></main>"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("one", '<section class="a" id="one" data-live="ladder"><section id="inner">x</section> <p>1</p></section>'),
        ("inner", '<section id="inner">x</section>'),
        ("three", '<p id="three">3 <time data-ago>5 min ago</time></p>'),
        ("none", None),
        ("on", None),
    ],
)
def test_a_region_is_cut_out_with_all_it_contains(name, expected):
    assert region_of(PAGE, name) == expected


def test_a_region_that_says_how_long_ago_something_was_has_not_changed_by_that():
    tag, _ = changed_regions(PAGE, "two=")["two"]
    assert changed_regions(PAGE.replace("5 min ago", "6 min ago"), f"two={tag}") == {}
    assert changed_regions(PAGE.replace(">3 ", ">4 "), f"two={tag}").keys() == {"two"}
    assert changed_regions(PAGE, "one= two=old").keys() == {"one", "two"}


def test_only_the_regions_that_have_changed_are_sent(anyone, league, service):
    """The opponents of the match that is reported are two players who are not on the page of a third."""
    path = f"/ladders/{league}/players/ann"
    whole = anyone.page(path)
    ids = re.findall(r'id="([^"]+)"[^>]* data-live', whole)
    assert set(ids) == {"standing", "path", "matches"}
    first = anyone.get(path, headers={PART: " ".join(f"{one}=" for one in ids)})
    assert first.text == "".join(region_of(whole, one) for one in ids)
    assert first.headers["cache-control"] == "no-store"
    again = anyone.get(path, headers={PART: first.headers[PART]})
    assert (again.status_code, again.content) == (204, b"")
    service.record(duel(40, "bob", "joe", ladder=league))
    service.record(duel(41, "ann", "bob", ladder=league))
    service.view(league)
    later = anyone.get(path, headers={PART: first.headers[PART]})
    assert {one.partition("=")[0] for one in later.headers[PART].split()} == set(ids)
    assert "<header" not in later.text


def test_a_form_in_a_region_changes_its_mask_alone(operator, league, site):
    site.queue_service.set_queue(league, "main", {"team_size": 1})
    path = f"/ladders/{league}/operate"
    first = operator.get(path, headers={PART: "main="})
    assert 'name="proof"' in first.text
    assert operator.get(path, headers={PART: first.headers[PART]}).status_code == 204


def test_an_error_is_sent_as_a_whole_page(anyone, league):
    answer = anyone.get(f"/ladders/{league}/players/nobody", headers={PART: "standing="})
    assert answer.status_code == 404
    assert "<header" in answer.text


@pytest.mark.parametrize("path", ["/ladders/{}/standings", "/v1/ladders/{}/matches", "/v1/openapi.json"])
def test_what_is_read_is_compressed_for_those_who_ask_for_that(anyone, league, path):
    plain, packed = (
        anyone.get(path.format(league), headers={"accept-encoding": coding}) for coding in ("identity", "gzip")
    )
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert plain.headers["vary"] == packed.headers["vary"]
    assert "Accept-Encoding" in plain.headers["vary"]
    assert packed.text == plain.text
    assert int(packed.headers["content-length"]) < len(plain.content) / 2
    assert int(packed.headers["content-length"]) < 1.1 * len(gzip.compress(plain.content))


def test_events_and_short_answers_are_not_compressed(anyone, site, league):
    site.stopping.set()
    for path in (f"/ladders/{league}/pulse?seen=other", "/healthz"):
        assert "content-encoding" not in anyone.get(path).headers


def test_a_compressed_answer_that_is_known_is_not_sent_again(anyone, league):
    path = f"/v1/ladders/{league}/standings"
    etag = anyone.get(path).headers["etag"]
    again = anyone.get(path, headers={"if-none-match": etag})
    assert (again.status_code, again.content) == (304, b"")


def test_the_proof_of_a_session_has_another_mask_in_every_page(operator, league):
    """BREACH guesses a secret that stays the same by the sizes of compressed pages."""
    proofs = [re.findall(r'name="proof" value="([0-9a-f]+)"', operator.page("/operate")) for _ in range(2)]
    one, other = ({bytes.fromhex(proof) for proof in found} for found in proofs)
    assert len(one) == len(other) == 1
    assert one != other
    bare = [bytes(a ^ b for a, b in zip(proof[:32], proof[32:], strict=True)) for proof in (*one, *other)]
    assert bare[0] == bare[1]
    for forged in (bare[0].hex(), "00" * 64, "00" * 65, "zz", "é"):
        assert operator.post("/logout", data={"proof": forged}).status_code == 403
    assert operator.post("/logout", data={"proof": (bytes(32) + bare[0]).hex()}).status_code == 303
