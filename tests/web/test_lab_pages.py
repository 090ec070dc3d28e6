"""The lab's pages through the application, over a season whose numbers are known from elsewhere."""

import json
import re
import time
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from asgi_client import Asking
from evenmatch import backtest, from_matches, rules
from evenmatch.accounts.access import OPERATOR
from evenmatch.http.app import application
from evenmatch.http.options import Options
from evenmatch.http.server import site_over
from evenmatch.lab.backtests.verdict import advise, verdict
from evenmatch.lab.ladder.learning import shown_number
from evenmatch.lab.sample import season
from evenmatch.operations.service import Service
from evenmatch.queues import queue_sql
from evenmatch.queues.matchmaker import Matchmaker
from evenmatch.queues.queue_sql import FormedMatch
from evenmatch.queues.requests import Join, QueuedPlayer
from evenmatch.web.app import pages
from ledger.sample_matches import ManualClock, after, duel
from service.sample_queues import forecast
from web_client import Browsing

SECOND = 1_000_000
LADDER = "/ladders/6v6/lab"
BAD = '<script>alert("1")</script>\u202e'  # the best player of all


def named_matches():
    made = season(7, players=40, matches=600)
    best = max(made.skill, key=made.skill.get)

    def called(slot):
        return replace(slot, player=BAD) if slot.player == best else slot

    return [
        replace(one, teams=tuple(replace(team, players=tuple(map(called, team.players))) for team in one.teams))
        for one in made.matches.to_matches("6v6")
    ]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    options = Options(matchmaker=False, open_reads=True, rate=100_000, burst=100_000, open_rate=1000, open_burst=1000)
    with Service.open(str(tmp_path_factory.mktemp("lab") / "evenmatch.db")) as service:
        service.create_ladder("6v6", "elo", rules("elo", k=2))
        service.create_ladder("new", "wager", rules("wager"))
        service.record_many("6v6", named_matches())
        service.create_ladder("even", "even", rules("even"))
        service.record_many("even", list(season(5, matches=200).matches.to_matches("even")))
        service.view("6v6")  # pages may show standings that are a twentieth of a second old
        made = site_over(service, options)
        made.queue_service.set_queue("6v6", "main", {"team_size": 1, "steps": [[0, 100]], "max_odds": "none"})
        seekers = [Join(members=(QueuedPlayer(name=f"w{at}"),), queues=("main",)) for at in range(40)]
        made.queue_service.apply("6v6", seekers)
        Matchmaker(made.queue_service).step("6v6")
        yield made
        made.jobs.stop(10)
        made.close()


@pytest.fixture(scope="module")
def anyone(site):
    asking = Asking(application(site, pages=pages))
    yield asking
    asking.close()


@pytest.fixture(scope="module")
def designer(site):
    """Somebody logged in with a key that may read, and nothing else."""
    yield (asking := logged_in(site, None))
    asking.close()


def logged_in(site, ladders):
    asking = Asking(application(site, pages=pages))
    key = site.keys.create("design", ["read"], ladders, None)[1]
    assert asking.post("/login", data={"key": key}).status_code == 303
    return asking


def page_text(asking, path, **fields):
    answer = asking.get(path, **fields)
    assert answer.status_code == 200, answer.text
    return answer.text


def sent(asking, path, form):
    """What a form answers that is sent as its page has it, and these values besides."""
    proof = re.search(r'name="proof" value="([^"]+)"', page_text(asking, path))
    return asking.post(path, data={"proof": proof[1] if proof else "", **form})


def finished_page(asking, path, form):
    """The page of the result, when the job is over."""
    answer = sent(asking, path, form)
    assert answer.status_code == 303, answer.text
    return settled_page(asking, answer.headers["location"])


def settled_page(asking, path, within=60.0):
    """A page as soon as nothing on it is still being worked out."""
    until = time.monotonic() + within
    while "data-every" in (shown := page_text(asking, path)):
        assert 'role="status"' in shown
        assert time.monotonic() < until
        time.sleep(0.2)
    return shown


def inside(shown, name):
    """The figure that stands in a page under this name."""
    return json.loads(re.search(rf'<script type="application/json" id="{name}-json">(.*?)</script>', shown)[1])


def words(shown):
    return unescape(re.sub(r"<[^>]+>", " ", shown))


def test_the_overview_opens_at_once_and_has_the_findings_soon(anyone, site):
    shown = page_text(anyone, LADDER)
    assert shown.count("data-figure=") == 6  # five of its health, and waits
    told = words(settled_page(anyone, LADDER))
    assert "Winners gain what losers lose: matches neither create nor remove points." in told


def test_the_overview_has_what_the_system_learned_after_each_quarter_of_the_matches(anyone, site):
    shown = settled_page(anyone, "/ladders/even/lab")
    table = re.search(r"What the system has learned about this ladder.*?</table>", shown, re.DOTALL)[0]
    assert re.findall(r'class="num">(\d+)</th>', table) == ["50", "100", "150", "200"]
    now = site.reading(OPERATOR).learned("even")
    last = [row[-1] for row in (re.findall(r"<td[^>]*>(.*?)</td>", row) for row in table.split("<tr>")[2:])]
    assert [unescape(value) for value in last] == [shown_number(number) for number in now]


@pytest.mark.parametrize("of", ["levels", "odds", "reliability", "troubles", "activity"])
def test_each_figure_of_the_health_is_drawn(anyone, of):
    answer = anyone.get(f"{LADDER}/health", params={"of": of})
    assert answer.headers["content-type"] == "application/json"
    assert len(answer.json()["data"]) >= 2
    assert len(answer.content) < 20_000


def test_figures_that_are_not_there_are_told(anyone):
    assert anyone.get(f"{LADDER}/health", params={"of": "floor"}).status_code == 422
    assert anyone.get(f"{LADDER}/health", params={"of": "x"}).status_code == 404
    answer = anyone.get("/ladders/new/lab/health")
    assert answer.status_code == 422
    assert "has no rated match" in unescape(answer.text)
    assert "It has no rated match yet." in page_text(anyone, "/ladders/new/lab")


def test_the_waits_of_those_who_were_offered_a_match_are_drawn(anyone, site):
    data = anyone.get(f"{LADDER}/waits").json()["data"]
    offers = site.queue_service.recent("6v6", 100)
    assert sum(len(one["x"]) for one in data if one["mode"] == "markers") == sum(len(one.waits) for one in offers) > 0


def test_a_backtest_of_the_ladders_own_history(designer):
    shown = finished_page(designer, f"{LADDER}/backtest", {"system": ["elo", "trueskill"], "warm_up": "50"})
    found = backtest(from_matches(named_matches()), [rules("elo", k=2), "trueskill"])
    for sentence in verdict(found):
        assert sentence in words(shown)
    for row in found.scores.to_pylist():
        assert f"{row['log_loss']:.4f}" in shown
    assert "this ladder's" in unescape(shown)
    assert advise(found, "elo").words in words(shown)
    assert "See what would change" in words(shown)  # the present k = 2 learns next to nothing
    assert len(inside(shown, "reliability")["data"]) == 3
    assert inside(shown, "periods")["data"]


def test_tuning_tells_what_it_changed_and_leads_to_a_what_if(designer, site):
    shown = finished_page(designer, f"{LADDER}/tuning", {"system": "elo", "seconds": "5"})
    assert "What tuning changed in elo" in shown
    assert "The tuned parameters predict better, by" in words(shown)  # the present k = 2 learns next to nothing
    assert inside(shown, "best")["data"][0]["y"]
    tuned = re.findall(r'name="(p\.\w+)" value="([^"]*)"', shown)
    k = dict(tuned)["p.k"]
    assert float(k) > 2
    form = dict(tuned) | {"system": "elo", "shown_system": "elo", "preset": "", "shown_preset": ""}
    assert f'value="{k}"' in page_text(designer, f"{LADDER}/what-if", params=form)
    then = finished_page(designer, f"{LADDER}/what-if", form)
    assert f"k 2 → {k}" in " ".join(words(then).split())


def test_a_what_if_names_those_who_move_harmlessly(designer):
    form = {"system": "elo", "shown_system": "elo", "preset": "", "shown_preset": "", "p.k": "90"}
    shown = finished_page(designer, f"{LADDER}/what-if", form)
    assert "k 2 → 90" in " ".join(words(shown).split())
    assert "of them would be in another division" in words(shown)
    assert "<script>alert" not in shown
    assert "&lt;script&gt;alert" in shown
    names = [name for one in inside(shown, "ranks")["data"][1:] for name in one["customdata"]]
    assert any(name.startswith("&lt;script&gt;") for name in names)
    assert "Change the rules" not in shown  # who may read may not do that
    assert len(re.findall("<caption>Who (?:gains|loses) most</caption>", shown)) == 2


def test_a_named_player_is_looked_up_in_a_what_if(designer, site):
    job = next(one for one in site.jobs.page("6v6", None, 10) if one.kind == "what-if")
    row = job.result["everybody"][17]
    name = row[0]
    shown = page_text(designer, f"{LADDER}/results", params={"job": job.job, "player": f" {name.upper()} "})
    table = re.search(r"<caption>The player you looked up</caption>.*?</table>", shown, re.DOTALL)[0]
    assert [int(rank) for rank in re.findall(r'data-label="Rank(?: then)?">(\d+)<', table)] == row[1:3]
    told = words(page_text(designer, f"{LADDER}/results", params={"job": job.job, "player": "<b>nobody"}))
    assert "No player called <b>nobody." in told
    site.service.create_ladder("duels", "elo", rules("elo"))
    site.service.record(duel(1, "elsewhere", "other", ladder="duels"))
    told = words(page_text(designer, f"{LADDER}/results", params={"job": job.job, "player": "elsewhere"}))
    assert "elsewhere does not play on this ladder, but on: duels." in told


def test_the_proof_of_a_session_is_in_no_form_that_is_sent_in_an_address(designer):
    for path in ("", "/backtest", "/tuning", "/what-if", "/queue", "/results"):
        for form in re.findall(r'<form[^>]*method="get".*?</form>', page_text(designer, LADDER + path), re.DOTALL):
            assert "proof" not in form
    assert "formmethod" not in page_text(designer, f"{LADDER}/what-if")


def test_a_choice_of_system_is_compared_without_a_detour(designer):
    present = re.findall(r'name="(p\.\w+|shown_\w+)" value="([^"]*)"', page_text(designer, f"{LADDER}/what-if"))
    form = dict(present) | {"system": "wager", "preset": ""}  # only the select was touched
    assert "elo now, wager then" in " ".join(words(finished_page(designer, f"{LADDER}/what-if", form)).split())
    looked = sent(designer, f"{LADDER}/what-if", form | {"look": "1"})
    assert "Parameters of wager" in page_text(designer, looked.headers["location"])


REFUSED = [
    ("backtest", {}, 422, "Choose at least one system"),
    ("backtest", {"system": "/etc/x.py"}, 422, "Unknown system '/etc/x.py'"),
    ("backtest", {"system": "elo", "warm_up": "95"}, 422, "Expected a whole number from 10 to 90, got '95'"),
    ("tuning", {"system": "elo", "seconds": "9999"}, 422, "Expected a whole number from 5 to 120, got '9999'"),
    (
        "what-if",
        {"system": "elo", "shown_system": "elo", "shown_preset": "", "p.k": "x"},
        422,
        "Expected a number from 0 to 10,000, got 'x'",
    ),
]


@pytest.mark.parametrize(("what", "form", "status", "said"), REFUSED)
def test_work_that_cannot_start_says_what_could(designer, what, form, status, said):
    answer = sent(designer, f"{LADDER}/{what}", form)
    assert said in unescape(answer.text)
    assert answer.status_code == status


def test_only_logged_in_users_start_lab_work(anyone, designer, site):
    assert "Log in with a key" in page_text(anyone, f"{LADDER}/backtest")
    assert sent(anyone, f"{LADDER}/backtest", {"system": "elo"}).status_code == 403
    assert designer.post(f"{LADDER}/backtest", data={"system": "elo", "proof": "x"}).status_code == 403
    other = logged_in(site, ["new"])
    assert other.get(f"{LADDER}/backtest").status_code == 403
    other.close()


def test_players_start_no_lab_work(site):
    player = Browsing(application(site, pages=pages))
    player.log_in_as(site, "ann")
    assert "Log in with a key" in page_text(player, f"{LADDER}/tuning")
    told = sent(player, f"{LADDER}/tuning", {"system": "elo", "seconds": "20"})
    assert (told.status_code, "requires a login with a key" in unescape(told.text)) == (403, True)
    player.close()


def test_a_result_is_shown_on_its_own_ladder_alone(anyone, site):
    job = next(one for one in site.jobs.page("6v6", None, 10) if one.kind == "backtest")
    assert anyone.get("/ladders/new/lab/results", params={"job": job.job}).status_code == 404
    assert anyone.get(f"{LADDER}/results", params={"job": "job_nothing"}).status_code == 404


def test_a_cancelled_job_is_shown_as_cancelled(designer, site):
    job = next(one for one in site.jobs.page("6v6", None, 10) if one.kind == "backtest")
    with site.service.database.write() as store:
        store.run("UPDATE job SET state = 'cancelled' WHERE job = ?", job.job)
    try:
        assert "cancelled" in words(page_text(designer, f"{LADDER}/results"))
        assert designer.get(f"{LADDER}/results", params={"job": job.job}).status_code == 200
    finally:
        with site.service.database.write() as store:
            store.run("UPDATE job SET state = 'done' WHERE job = ?", job.job)


def test_a_failed_job_says_why(designer):
    shown = finished_page(designer, "/ladders/new/lab/backtest", {"system": "elo"})
    assert "ladder 'new' has no rated match" in words(shown)


def figures(shown):
    """The figures of each policy, as the table has them."""
    rows = re.findall(r'<tr[^>]*><th scope="row">([\w ]+)</th>(.*?)</tr>', shown, re.DOTALL)
    return {name: re.findall(r"<td[^>]*>([^<]*)</td>", cells) for name, cells in rows}


@pytest.fixture(scope="module")
def busy_site(tmp_path_factory):
    """A ladder of duels whose queue 240 players joined in an hour: each minute a strict pair and two single players."""
    options = Options(matchmaker=False, open_reads=True, rate=100_000, burst=100_000, open_rate=1000, open_burst=1000)
    clock = ManualClock(after(620))
    with Service.open(str(tmp_path_factory.mktemp("busy") / "evenmatch.db"), clock) as service:
        service.create_ladder("duels", "elo", rules("elo"))
        names = [f"p{minute}{letter}" for minute in range(60) for letter in "abcd"]
        pairs = [sorted(pair) for pair in np.random.default_rng(4).choice(len(names), (600, 2)) if pair[0] != pair[1]]
        played = [duel(at, names[better], names[worse], "duels") for at, (better, worse) in enumerate(pairs)]
        service.record_many("duels", played)
        service.view("duels")  # else those who join in the next twentieth of a second have the level of a newcomer
        made = site_over(service, options)
        made.queue_service.set_queue("duels", "main", {"team_size": 2, "steps": [[0, 6], [20, 12.34]]})
        made.queue_service.set_queue("duels", "side", {"team_size": 1})
        for minute in range(60):
            made.queue_service.apply("duels", [party(minute, "ab"), party(minute, "c"), party(minute, "d")])
            clock.move(seconds=60)
        yield made
        made.jobs.stop(10)
        made.close()


def party(minute, letters):
    """A party that joins; filters of single players widen."""
    members = (QueuedPlayer(name=f"p{minute}{letter}", loose=len(letters) == 1) for letter in letters)
    return Join(members=tuple(members), queues=("main",))


TRIAL = "/ladders/duels/lab/queue"


@pytest.fixture(scope="module")
def operator(busy_site):
    asking = Asking(application(busy_site, pages=pages))
    key = busy_site.keys.create("operate", ["admin"], None, None)[1]
    assert asking.post("/login", data={"key": key}).status_code == 303
    yield asking
    asking.close()


def test_the_simulator_starts_from_the_queues_own_records_and_policy(operator):
    shown = page_text(operator, TRIAL)
    told = words(shown)
    assert "makes matches of 2 teams of 2" in told
    assert "240 players joined this queue, 50% of them in parties of up to 2; 240 an hour in a typical hour" in told
    assert "50% of them have a filter that never widens" in told
    assert "Move a slider to see what would change." in told
    found = figures(shown)
    assert list(found) == ["Your change", "Now"]
    assert found["Your change"] == found["Now"]
    assert 'name="w1" min="0" max="100" step="0.1" value="12.34"' in shown
    assert "Apply it or try it" not in told


def test_a_value_that_a_browser_rounds_to_the_step_of_its_slider_changes_nothing(operator):
    assert "Move a slider to see what would change." in words(page_text(operator, TRIAL, params={"w1": "12.3"}))


def test_a_wider_range_is_compared_with_the_queue_now_in_words(operator):
    wide = page_text(operator, TRIAL, params={"w0": "60", "even_spread": "60"})
    found = figures(wide)
    assert float(found["Your change"][2]) > float(found["Now"][2])  # who takes anybody has wider matches
    assert "Shorter waits but less even matches." in words(wide)  # half as long for half of the players
    assert f"(now {found['Now'][2]})" in words(wide)
    assert [one["name"] for one in inside(wide, "evenness")["data"]] == ["Your change", "Now"]


def test_the_presets_are_compared_on_request(operator):
    found = figures(page_text(operator, TRIAL, params={"presets": "1"}))
    assert list(found) == ["Your change", "Now", "balanced", "quick", "fair"]


def test_an_operator_sees_what_changes_and_applies_it(operator, busy_site):
    address = re.search(r'action="([^"]+change)"', page_text(operator, TRIAL, params={"w0": "9"}))[1]
    shown = page_text(operator, address, params={"queue": "main", "w0": "9"})
    assert "0 s: 6, 20 s: 12.34 0 s: 9, 20 s: 12.34" in " ".join(words(shown).split())
    form = hidden_fields(shown) | {"do": "apply"}
    before = busy_site.queue_service.queue("duels", "main")
    assert operator.post(address, data=form).status_code == 303
    then = busy_site.queue_service.queue("duels", "main")
    assert then.policy == replace(before.policy, steps=((0, 9), (20, 12.34)))
    assert then.rules == before.rules
    entry = busy_site.audit.page("duels")[0]
    assert (entry.action, entry.target) == ("queue.set", "main")
    assert entry.body == {"policy": {"steps": [[0.0, 9.0], [20.0, 12.34]]}}
    stale = operator.post(address, data=form | {"w0": "10"})
    assert "was changed since you saw this page" in unescape(stale.text)


def test_an_operator_tries_a_change_as_an_experiment(operator, busy_site):
    shown = page_text(operator, f"{TRIAL}/change", params={"queue": "side", "max_odds": "70"})
    answer = operator.post(f"{TRIAL}/change", data=hidden_fields(shown) | {"do": "experiment"})
    busy_site.service.clock.move(seconds=1)
    assert "Which policy does better?" in page_text(operator, answer.headers["location"])
    assert busy_site.queue_service.queue("duels", "side").experiment.second.max_odds == 0.7
    told = words(page_text(operator, f"{TRIAL}/change", params={"queue": "side", "max_odds": "80"}))
    assert "Stop it before you change the policy" in told


def hidden_fields(shown):
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', shown))


def test_only_operators_change_a_queue_from_the_lab(designer):
    assert "Apply it or try it" not in page_text(designer, f"{LADDER}/queue", params={"w0": "50"})
    assert designer.get(f"{LADDER}/queue/change").status_code == 403


def test_a_ladder_without_a_queue_is_simulated_with_teams_of_its_matches(anyone):
    told = words(page_text(anyone, "/ladders/even/lab/queue"))
    assert "makes matches of 2 teams of 6" in told
    assert "This ladder has no queue." in told
    assert "as in the latest 100 matches" in told
    assert "There are no records to start from" in words(page_text(anyone, "/ladders/new/lab/queue"))


@pytest.mark.parametrize("asked", [{"arrivals": "1e9"}, {"w0": "x"}, {"even_spread": "nan"}, {"max_odds": "0"}])
def test_a_slider_beyond_its_end_is_told(anyone, asked):
    answer = anyone.get(f"{LADDER}/queue", params=asked)
    assert answer.status_code == 422
    assert f"{next(iter(asked))} is " in unescape(answer.text)


def test_an_erased_player_is_in_no_result_that_the_lab_keeps(service):
    site = site_over(service, Options(matchmaker=False, open_reads=True, open_rate=1000, open_burst=1000))
    service.create_ladder("6v6", "elo", rules("elo"))
    service.record_many("6v6", named_matches())
    asking = logged_in(site, None)
    found = finished_page(
        asking, f"{LADDER}/what-if", {"system": "elo", "shown_system": "elo", "shown_preset": "", "p.k": "64"}
    )
    everybody = {one.player for match in named_matches() for team in match.teams for one in team.players} - {BAD}
    gone = next(one for one in sorted(everybody) if f" {one} " in words(found))
    address = re.search(r"results\?job=(job_\w+)", page_text(asking, f"{LADDER}/results"))[0]
    service.erase(gone)
    assert f" {gone} " not in words(page_text(asking, f"{LADDER}/{address}"))
    asking.close()
    site.jobs.stop(10)
    site.threads.shutdown(wait=True)


def test_the_predictions_of_a_queue_are_audited(site, anyone):
    """300 matches of the season, as if the queue had formed them with the ladder's own odds."""
    assert "0 matches formed" in words_of(anyone, f"{LADDER}/audit")
    found = backtest_predictions(site)
    with site.service.database.write() as store:
        for match in found:
            queue_sql.insert_formed_match(store, store.head("6v6").ladder, match)
    shown = words_of(anyone, f"{LADDER}/audit?period=all")
    assert "300 matches formed: 300 played as predicted" in shown
    assert site.reading(OPERATOR).queue_audit("6v6", "main", 0, 2**62).verdict in shown
    for heading in ("By spread in percentiles", "By longest wait in seconds", "By parties", "By percentile"):
        assert heading in shown
    assert "Slope" in shown
    assert 'id="curve-json"' in page_text(anyone, f"{LADDER}/audit?period=all")
    assert "0 matches formed" in words_of(anyone, f"{LADDER}/audit?period=week")
    assert anyone.get(f"{LADDER}/audit?queue=side").status_code == 404
    assert "This ladder has no queue" in words_of(anyone, "/ladders/new/lab/audit")
    assert "Were the predictions right?" in words_of(anyone, LADDER)


def test_two_policies_that_share_a_queue_are_compared(site, anyone):
    """Waits of 9 and 3 s in 60 slices of a minute each, and the same spreads."""
    queue_service = site.queue_service
    queue_service.set_queue("6v6", "trial", {"team_size": 1})
    started = queue_service.start_experiment(
        "6v6", "trial", {"preset": "fair", "steps": [[0, 3], [9, 50]]}, {"slice_seconds": 60, "washout": 0}
    )
    assert "Nothing is known yet" in words_of(anyone, f"{LADDER}/audit?queue=trial")
    luck = np.random.default_rng(3)
    with site.service.database.write() as store:
        ladder = store.head("6v6").ladder
        begin = started.started_at - 3600 * SECOND
        store.run("UPDATE queue_experiment SET started_at = ? WHERE ladder = ?", begin, ladder)
        for elapsed in range(3, 3600, 6):
            arm = started.arm_at(started.started_at + elapsed * SECOND)
            waits = ((9 if arm == "a" else 3) + luck.normal(0, 1, 2)).tolist()
            trial = {"experiment": started.number, "arm": arm, "elapsed": elapsed * SECOND}
            body = forecast(spread=luck.uniform(2, 4), waits=waits, trial=trial)
            match = FormedMatch(f"trial-{elapsed}", "trial", begin + elapsed * SECOND, 1, body)
            queue_sql.insert_formed_match(store, ladder, match)
    shown = words_of(anyone, f"{LADDER}/audit?queue=trial")
    assert "Which policy does better? Experiment of 2" in shown
    assert "B does better on median wait and wait of 95 of 100." in shown
    assert "median wait with B: 5." in shown
    assert "none, the difference is known" in shown
    assert "no difference worth detecting: at most 0." in shown
    assert "makes the matches in 50 % of the time slices of 60 s" in shown
    assert "0 s: 3, 9 s: 50" in shown  # how the policies differ
    assert 'id="experiment-figure-1-json"' in page_text(anyone, f"{LADDER}/audit?queue=trial")


def words_of(asking, path, **fields):
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page_text(asking, path, **fields))).split())


def backtest_predictions(site):
    """The last 300 recorded matches with the odds that the ladder gave them."""
    _, matches, _ = site.reading(OPERATOR).matches("6v6", limit=300)
    return [
        FormedMatch(
            profile.match_id,
            "main",
            profile.played_at,
            3,
            forecast(
                teams=[[site.service.player(part.player) for part, _ in team.parts] for team in profile.sides],
                parties=[[1] * 6, [1] * 6],
                odds=[team.finish.expected for team in profile.sides],
                spread=2.0 + index % 9,
                waits=[float(index % 100)],
            ),
        )
        for index, profile in enumerate(matches)
    ]
