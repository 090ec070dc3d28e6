"""Who may see what: sessions, forms, headers, and other sites that try."""

import re

import jwt
import pytest
from plotly.offline import get_plotlyjs

from evenmatch import rules
from evenmatch.errors import StoreError
from evenmatch.http.app import application
from evenmatch.http.options import Options
from evenmatch.http.server import site_over
from evenmatch.operations.service import Service
from evenmatch.web.app import pages
from evenmatch.web.pages import PAGES
from evenmatch.web.texts import Texts
from ledger.sample_matches import duel
from web_client import Browsing, field, words

POLICY = "content-security-policy"


def test_every_page_forbids_scripts_that_are_not_ours(anyone, operator, league):
    addresses = ["/", "/login", f"/ladders/{league}", "/nothing", f"/ladders/{league}/players/nobody"]
    for answer in [*map(anyone.get, addresses), operator.get("/operate")]:
        policy = dict(part.strip().split(" ", 1) for part in answer.headers[POLICY].split(";"))
        assert policy["script-src"] == "'self'"
        assert policy["default-src"] == "'none'"
        assert policy["frame-ancestors"] == "'none'"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_no_page_holds_a_script_or_a_style_of_its_own(anyone, operator, league):
    shown = [anyone.page(f"/ladders/{league}{path}") for path in ("", "/standings", "/queue", "/distribution")]
    for page in [*shown, operator.page(f"/ladders/{league}/operate")]:
        assert re.findall(r"<script(?![^>]*(?:src=|application/json))", page) == []
        assert re.findall(r"\son[a-z]+=", page) == []


def test_assets_are_cached_for_ever_and_served_by_the_site_itself(anyone):
    page = anyone.page("/")
    loaded = re.findall(r'(?:src|href)="(/assets/[^"#]+)', page)
    assert {one.rpartition("/")[2] for one in loaded} == {"evenmatch.css", "evenmatch.js", "icon.svg", "crests.svg"}
    for one in loaded:
        answer = anyone.get(one)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    assert re.findall(r'(?:src|href)="(?:https?:)?//', page) == []


def test_the_chart_library_is_that_of_the_installed_package_and_named_in_the_lab_alone(anyone, league):
    address = re.search(r'data-plotly="([^"]+)"', anyone.page(f"/ladders/{league}/lab"))[1]
    assert anyone.get(address).text == get_plotlyjs()
    for path in ("", "/standings", "/players/ann", "/distribution", "/queue", "/matches/m2"):
        assert "plotly" not in anyone.page(f"/ladders/{league}{path}")


def test_a_file_that_is_not_ours_is_not_served(anyone):
    assert anyone.get("/assets/x/..%2F..%2Fapp.py").status_code == 404
    assert anyone.get("/assets/x/app.py").status_code == 404


class TestClosed:
    """Where reads are not open, nobody sees anything without a key."""

    @pytest.fixture
    def options(self):
        return Options(matchmaker=False, open_rate=10_000, open_burst=10_000)

    def test_every_page_asks_to_log_in_or_refuses(self, anyone, league):
        for page in PAGES:
            if page.path.startswith("/login") or page.path in ("/logout", "/me/forget", "/theme"):
                continue
            path = re.sub(r"\{ladder:text\}", league, page.path)
            path = re.sub(r"\{[^}]+\}", "1", path)
            answer = anyone.request(page.methods[0], path)
            if page.methods == ("GET",):
                assert (answer.status_code, answer.headers["location"].split("?")[0]) == (303, "/login"), path
            else:
                assert answer.status_code in (403, 422), path
            assert "ann" not in words(answer.text).split()

    def test_a_key_that_may_read_one_ladder_sees_that_one(self, site, anyone, league, service):
        service.create_ladder("other", "elo", rules("elo"))
        text = site.keys.create("reader", ["read"], [league])[1]
        assert anyone.post("/login", data={"key": text, "to": "/"}).status_code == 303
        assert "The league" in anyone.page("/")
        assert "other" not in words(anyone.page("/"))
        assert "may act on 'league'" in words(anyone.page("/ladders/other", 403))
        assert "the scope admin is required" in words(anyone.page(f"/ladders/{league}/operate", 403))


def test_a_wrong_key_is_told_and_begins_no_session(anyone):
    answer = anyone.post("/login", data={"key": "em_wrong"})
    assert answer.status_code == 403
    assert "this is not a key" in words(answer.text)
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("to", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_logging_in_leads_to_no_other_site(anyone, admin_key, to):
    assert anyone.post("/login", data={"key": admin_key, "to": to}).headers["location"] == "/operate"


def test_a_session_ends_with_its_key_with_time_and_with_logging_out(site, operator, admin_key, clock):
    assert operator.get("/operate").status_code == 200
    clock.move(seconds=12 * 3600 + 1)
    assert operator.get("/operate").headers["location"].startswith("/login")
    operator.post("/login", data={"key": admin_key})
    assert operator.get("/operate").status_code == 200
    assert operator.submit("/logout", on="/operate").status_code == 303
    assert operator.get("/operate").headers["location"].startswith("/login")
    operator.post("/login", data={"key": admin_key})
    site.keys.revoke(admin_key)
    clock.move(seconds=3)
    assert operator.get("/operate").headers["location"].startswith("/login")


def test_a_forged_session_is_nobody(site, admin_key):
    browsing = Browsing(application(site, pages=pages))
    key = admin_key.rpartition("_")[0][:13]
    forged = jwt.encode({"iss": "evenmatch session", "sub": key, "jti": "x", "exp": 2**33}, "0" * 32, "HS256")
    assert browsing.get("/operate", headers={"cookie": f"evenmatch-session={forged}"}).status_code == 303
    browsing.close()


def test_a_form_without_the_proof_of_its_session_changes_nothing(operator, league):
    refused = operator.post(f"/ladders/{league}/operate/correct", data={"what": "void", "match": "m2"})
    assert refused.status_code == 403
    assert "Your session has changed since you opened this form" in words(refused.text)
    assert field(refused.text, "match")[0] == "m2"
    other = operator.post(f"/ladders/{league}/operate/correct", data={"what": "void", "match": "m2", "proof": "0" * 64})
    assert other.status_code == 403
    assert "void" not in words(operator.page(f"/ladders/{league}/matches/m2")).split()


@pytest.mark.parametrize("headers", [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}])
def test_a_form_of_another_site_is_refused(anyone, admin_key, headers):
    answer = anyone.post("/login", data={"key": admin_key}, headers=headers)
    assert answer.status_code == 403
    assert "sent from another site" in words(answer.text)


@pytest.mark.parametrize("fields", ["&", "a=1&"])
def test_a_form_of_more_fields_than_a_page_has_is_refused(anyone, fields):
    answer = anyone.post("/login", content=fields * 15_000)
    assert (answer.status_code, "more than 2,000 fields" in words(answer.text)) == (422, True)


def test_a_form_of_this_site_is_taken_whatever_its_name(anyone, admin_key):
    same = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
    assert anyone.post("/login", data={"key": admin_key}, headers=same).status_code == 303


def test_pages_can_be_switched_off_and_leave_the_endpoints_as_they_are(site, league):
    without = Browsing(application(site))
    assert without.get("/").headers["content-type"] == "application/problem+json"
    without.close()


@pytest.mark.parametrize(("address", "status"), [("/", 200), ("/nope", 404)])
def test_too_many_pages_are_refused_whether_they_are_there_or_not(service, league, address, status):
    few = site_over(service, Options(matchmaker=False, open_reads=True, open_rate=0.001, open_burst=2))
    browsing = Browsing(application(few, pages=pages))
    assert [browsing.get(address).status_code for _ in range(3)] == [status, status, 429]
    browsing.close()
    few.threads.shutdown(wait=True)


def test_a_copied_cookie_is_worthless_after_logging_out(site, operator):
    copied = Browsing(application(site, pages=pages))
    copied.cookies(operator.cookies())
    assert copied.get("/operate").status_code == 200
    operator.submit("/logout", on="/operate")
    assert copied.get("/operate").headers["location"].startswith("/login")
    copied.close()


def test_a_key_that_only_reads_leads_to_the_ladders_and_is_shown_no_operating(site, anyone, league):
    text = site.keys.create("reader", ["read"])[1]
    assert anyone.post("/login", data={"key": text}).headers["location"] == "/"
    assert "Operate" not in words(anyone.page("/"))


@pytest.mark.parametrize("number", ["9" * 27, "0" * 20 + "9" * 27, "-1", "1e3"])
def test_a_number_that_no_page_has_is_refused_in_words(anyone, league, number):
    assert "must be a whole number" in words(anyone.page(f"/ladders/{league}/standings?page={number}", 422))
    assert "expected the `next` of a previous page" in words(
        anyone.page(f"/ladders/{league}/matches?before={number}", 422)
    )


def test_a_page_is_found_with_a_slash_behind_its_address(anyone, league):
    led = anyone.get(f"/ladders/{league}/?x=1")
    assert (led.status_code, led.headers["location"]) == (308, f"/ladders/{league}?x=1")
    assert anyone.get("/nothing/").status_code == 404


def test_another_spelling_leads_to_no_ladder_that_may_not_be_read(site, league, service):
    service.create_ladder("Secret", "elo", rules("elo"))
    browsing = Browsing(application(site_over(service, Options(matchmaker=False)), pages=pages))
    assert browsing.get("/ladders/secret").headers["location"].startswith("/login")
    browsing.close()


def test_an_error_on_a_ladder_keeps_its_navigation_and_links_what_was_meant(anyone, league, service):
    service.record(duel(9, "Ravi Ink", "bob", ladder=league))
    page = anyone.page(f"/ladders/{league}/players/Ravi%20Inc", 404)
    assert f'<a href="/ladders/{league}/standings"' in page
    assert f'<a class="button" href="/ladders/{league}/players/Ravi%20Ink">Did you mean “Ravi Ink”?</a>' in page
    around = anyone.page(f"/ladders/{league}/standings?around=Ravi+Inc", 404)
    assert f'href="/ladders/{league}/standings?around=Ravi+Ink"' in around
    spelled = anyone.page(f"/ladders/{league}/players/RAVI%20INK", 404)
    assert f'<a class="button" href="/ladders/{league}/players/Ravi%20Ink">' in spelled
    assert 'Did you mean <a href="/search?q=Ravi+Ink">' in anyone.page("/search?q=Ravi+Inc")
    nobody = anyone.page(f"/ladders/{league}/players/completely%20different", 404)
    assert "Did you mean" not in nobody


def test_no_name_of_an_unreadable_ladder_is_suggested(anyone, league, service):
    service.create_ladder("other", "elo", rules("elo"))
    service.record(duel(9, "Ravi Ink", "bob", ladder="other"))
    assert "Ravi Ink" not in anyone.page(f"/ladders/{league}/players/Ravi%20Inc", 404)


def test_a_user_whose_session_ended_while_a_form_was_open_can_log_in_and_go_on(operator, league, clock):
    at = f"/ladders/{league}/operate/correct"
    proof = re.search(r'name="proof" value="([^"]+)"', operator.page(f"{at}?what=void&match=m2"))[1]
    clock.move(seconds=12 * 3600 + 1)
    answer = operator.post(at, data={"proof": proof, "what": "void", "match": "m2"})
    assert answer.status_code == 403
    assert re.search(r'href="/login\?to=[^"]*correct"', answer.text)
    assert "Log in again" in words(answer.text)
    assert "What you typed what void match m2" in words(answer.text)


def test_a_form_that_came_while_the_database_did_not_answer_can_be_sent_again(operator, league, service, monkeypatch):
    at = f"/ladders/{league}/operate/correct"
    proof = re.search(r'name="proof" value="([^"]+)"', operator.page(f"{at}?what=void&match=m2"))[1]

    def refuse(*_, **__):
        raise StoreError("the connection was lost or refused")

    monkeypatch.setattr(Service, "noting", refuse)
    answer = operator.post(at, data={"proof": proof, "what": "void", "match": "m2", "reason": '"x" <b>'})
    assert answer.status_code == 503
    assert '<input type="hidden" name="match" value="m2">' in answer.text
    assert '<input type="hidden" name="reason" value="&#34;x&#34; &lt;b&gt;">' in answer.text
    assert "Send it again" in words(answer.text)
    monkeypatch.undo()
    proof_again = re.search(r'name="proof" value="([^"]+)"', answer.text)[1]
    sent = {"proof": proof_again, "what": "void", "match": "m2", "reason": "x"}
    assert operator.post(at, data=sent).status_code == 303


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.4, "0 s"),
        (119.4, "119 s"),
        (119.6, "2 min"),
        (241, "4 min 1 s"),
        (242, "4 min 2 s"),
        (1199, "19 min 59 s"),
        (1200, "20 min"),
        (7199, "120 min"),
        (7200, "2 h"),
        (172_800, "2 days"),
        (None, "–"),
        (float("inf"), "–"),
    ],
)
def test_times_that_pass_are_told_to_the_second_where_seconds_matter(value, told):
    assert Texts("en").seconds(value) == told
