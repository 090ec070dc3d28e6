"""What players see: where they stand, how they came there, and why a rating moved."""

import re
from dataclasses import replace
from html import unescape
from urllib.parse import quote

import pytest

from evenmatch import rules, systems
from evenmatch.corrections.corrections import Ban, Void
from evenmatch.durations import DAY
from evenmatch.ladders.descriptions import STATES, state_meanings
from evenmatch.ladders.inactivity import DailyDecay
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.ladders.settings import Settings
from evenmatch.standings.division import Division
from evenmatch.standings.rules import StandingsRules
from evenmatch.web import page_request
from ledger.sample_matches import duel, team_match
from web_client import HOSTILE, RESULTS, elo_by_hand, words


def standings_rows(page):
    """(name, shown rating) of the rows of a table of standings."""
    found = re.findall(r'<tr data-key="([^"]*)" data-value="([^"]*)"', page)
    return [(unescape(name), float(value)) for name, value in found]


def test_the_standings_list_players_by_rating(anyone, league):
    expected, _ = elo_by_hand(RESULTS)
    shown = standings_rows(anyone.page(f"/ladders/{league}/standings"))
    best_first = sorted(expected, key=expected.get, reverse=True)
    assert [name for name, _ in shown] == best_first
    assert [value for _, value in shown] == pytest.approx([expected[name] for name in best_first])


def test_the_standings_around_a_player_say_where_they_stand(anyone, league):
    around = words(anyone.page(f"/ladders/{league}/standings?around=joe"))
    assert "joe stands at #4 of 4 with a rating of" in around


def bands_of(page):
    """(division at the head of a band, names in it) of each band of a table of standings, from the top."""
    bands = re.findall(r'<th scope="rowgroup"[^>]*>(?:<svg.*?</svg> )?(\w+(?: listed)?)(.*?)</tbody>', page, re.DOTALL)
    return [(division, [name for name, _ in standings_rows(rest)]) for division, rest in bands]


@pytest.fixture
def kept(service):
    """A ladder on which p05 keeps a division: behind p07, who is not in it, at percentile 41 of 11 players."""
    divisions = (Division("Low", 1), Division("High", 61))
    rule = StandingsRules(placement=1, active_days=1000, divisions=divisions, division_margin=25)
    service.create_ladder("kept", "elo", rules("elo"), Settings(standings=rule))
    names = [f"p{number:02}" for number in range(1, 12)]
    service.record(team_match(1, *enumerate(names, 1), ladder="kept"))
    service.divide("kept")
    names.insert(8, names.pop(4))  # the fifth is ninth in the second match, and seventh after both
    service.record(team_match(2, *enumerate(names, 1), ladder="kept"))
    service.view("kept")
    return "kept"


def test_the_standings_have_one_heading_per_division_and_mark_a_player_who_keeps_one(anyone, kept):
    above, below = ["p01", "p02", "p03", "p04", "p06"], ["p07", "p05", "p08", "p09", "p10", "p11"]
    page = anyone.page(f"/ladders/{kept}/standings")
    assert bands_of(page) == [("High", above), ("Low", below)]
    told = words(page)
    assert "p05 keeps High until below percentile 36" in told  # 61 - 25
    assert told.count("keeps") == 1
    assert bands_of(anyone.page(f"/ladders/{kept}/standings?around=p05")) == [("High", above), ("Low", below)]
    for path in (f"/ladders/{kept}", f"/ladders/{kept}/players/p05"):
        assert "keeps High until below percentile 36" in words(anyone.page(path)), path
    assert "keeps" not in words(anyone.page(f"/ladders/{kept}/players/p06"))


def test_an_idle_player_stands_in_the_order_of_ratings_and_the_standings_say_why_the_percentile_is_lower(
    anyone, service, clock
):
    divisions = (Division("Low", 1), Division("High", 51))
    rule = StandingsRules(1, active_days=1000, divisions=divisions, inactivity="percentile", grace_days=14)
    service.create_ladder("idle", "elo", rules("elo"), Settings(standings=rule))
    service.record(team_match(1, (1, "ann"), (2, "bob"), (3, "eve"), ladder="idle"))
    clock.move(days=60)
    service.record(team_match(24 * 60, (1, "bob"), (2, "eve"), ladder="idle"))
    service.view("idle")
    page = anyone.page("/ladders/idle/standings")
    assert bands_of(page) == [("High", ["ann", "bob"]), ("Low", ["eve"])]
    assert "ann percentile lowered by inactivity" in words(page)
    assert words(page).count("lowered by inactivity") == 1


def listed_by(service, name, days):
    """A ladder of duels whose players are listed for so many days after a match."""
    service.create_ladder(name, "elo", rules("elo"), Settings().changed({"placement": 2, "active_days": days}))
    return name


def test_pages_say_why_nobody_is_listed(anyone, service, clock):
    """Nobody has played; nobody has played enough; all who have played enough stopped long ago (matches at 01:00)."""
    ladder = listed_by(service, "quiet", 3.0)
    pages = ("/", f"/ladders/{ladder}", f"/ladders/{ladder}/standings")

    def told(sentence):
        service.view(ladder)
        assert [page for page in pages if sentence not in words(anyone.page(page))] == []

    told("No match has been rated on this ladder yet.")
    service.record(duel(1, "ann", "bob", ladder=ladder))
    told("No player is listed yet: it takes 2 completed matches, and no player has more than 1.")
    service.record(duel(2, "ann", "bob", ladder=ladder))
    clock.move(days=47)
    told(
        "No player is listed: of 2 players with enough matches, none has completed a match in the last 3 days. "
        "The last match was on 2026-01-01."
    )


def test_the_page_around_a_player_says_why_they_are_not_listed(anyone, service, clock):
    ladder = listed_by(service, "quiet", 10.0)
    for number, names in enumerate((("ann", "bob"), ("bob", "ann"), ("cat", "dan")), 1):
        service.record(duel(number, *names, ladder=ladder))
    clock.move(days=20)
    service.view(ladder)
    around = f"/ladders/{ladder}/standings?around="
    assert "Players are listed after 2 completed matches, and this player has 1." in words(anyone.page(f"{around}cat"))
    german = words(anyone.get(f"{around}cat", headers={"Accept-Language": "de"}).text)
    assert "Spieler werden gelistet nach 2 abgeschlossenen Matches; dieser Spieler hat 1." in german
    last = "The last completed match was 29 days ago, and players are listed for 10 days after a match."
    assert last in words(anyone.page(f"{around}ann"))


def test_a_player_sees_rank_form_record_and_every_change(anyone, league):
    _, change = elo_by_hand(RESULTS)
    told = words(anyone.page(f"/ladders/{league}/players/ann"))
    assert "#1 of 4" in told
    assert "L W W W" in told  # the latest first
    assert "All time 3 – 1 won – lost" in told
    assert "Streak now 1 loss best: 3 wins in a row" in told
    assert f"{change['ann']:.2f}".replace("-", "−") in told
    won = "They beat an evenly matched opponent, so their rating rose by 16.00."
    assert f"{won} A loss would have cost them 16.00." in told
    assert "joe 1–0–1" in told  # met twice: won, then lost


def told_of_points(page):
    """What the rating chart of a page tells of each point, the oldest first."""
    points = re.search(r'id="path-figure" data-points="([^"]*)"', page)[1]
    return [point.split(" ", 2)[2] for point in unescape(points).split("\n")]


def test_the_path_of_a_player_is_a_chart_of_every_match(anyone, league):
    rating, change = elo_by_hand(RESULTS)
    told = told_of_points(anyone.page(f"/ladders/{league}/players/ann"))
    assert [point.split(": ")[0].rpartition(", ")[2] for point in told] == ["won", "won", "won", "lost"]
    assert told[0].endswith("won: 1,500 → 1,516 (+16.00)")
    before = rating["ann"] - change["ann"]
    assert told[-1].endswith(f"{before:,.0f} → {rating['ann']:,.0f} ({change['ann']:+.2f})".replace("-", "−"))


def test_a_match_tells_the_odds_before_and_each_factor_with_a_bar_and_a_sentence(anyone, league):
    page = anyone.page(f"/ladders/{league}/matches/m2")  # ann (1516) beat joe (1500)
    told = words(page)
    odds = 100 / (1 + 10 ** (-16 / 400))
    assert f"{odds:.0f} % chance to win, before the match {100 - odds:.0f} %" in told
    assert f"1,516 → {1516 + 32 * (1 - odds / 100):,.0f}" in told
    gain = 32 * (1 - odds / 100)
    why = f"beat an evenly matched opponent, so {{}} rating rose by {gain:.2f}."
    assert f"They {why.format('their')}" in told
    assert f"A loss would have cost them {32 - gain:.2f}." in told
    assert f"+{gain:.2f}" in told
    anyone.get(f"/ladders/{league}/me?want=standing&player=ann")
    own = words(anyone.page(f"/ladders/{league}/matches/m2"))
    assert f"You {why.format('your')}" in own
    assert f"A loss would have cost you {32 - gain:.2f}." in own
    assert "They lost to an evenly matched opponent" in own
    assert "ann beat joe" in told
    assert "left" not in told
    assert page.count('<svg class="bar"') >= 3  # the odds, and factors of both


def test_the_three_questions_lead_to_their_answers(anyone, league):
    def asked(want, name="ann"):
        return anyone.get(f"/ladders/{league}/me?want={want}&player={quote(name)}").headers["location"]

    assert asked("standing") == f"/ladders/{league}/standings?around=ann"
    assert asked("why") == f"/ladders/{league}/matches/m6?player=ann"
    assert asked("wait") == f"/ladders/{league}/queue"
    assert asked("standing", "nobody") == "/search?q=nobody"
    assert "want is 'else'; expected standing, why, wait" in words(
        anyone.page(f"/ladders/{league}/me?want=else&player=ann", 422)
    )


def test_a_player_who_gave_a_name_is_shown_their_place(anyone, league):
    anyone.get(f"/ladders/{league}/me?want=standing&player=ann")
    assert "Hi, ann" in words(anyone.page("/"))
    assert 'class="mine"' in anyone.page(f"/ladders/{league}/standings")
    assert "above 99 of 100 active players" in words(anyone.page(f"/ladders/{league}/distribution"))


def test_a_name_that_would_be_markup_is_text_on_every_page(anyone, league):
    for path in (
        "",
        "/standings",
        "/matches",
        "/matches/m4",
        f"/players/{quote(HOSTILE, safe='')}",
        "/standings?around=ann",
    ):
        page = anyone.page(f"/ladders/{league}{path}")
        assert '<b>"' not in page
        assert "&lt;b&gt;&#34;" in page
        assert "\u202e" not in re.sub(r'(href|data-key|value|title)="[^"]*"', "", page)


def test_a_ladder_or_player_that_is_not_there_is_told_with_a_page(anyone, league):
    assert "unknown ladder" in words(anyone.page("/ladders/other", 404))
    assert "No player called zoe" in words(anyone.page(f"/ladders/{league}/players/zoe", 404))
    assert "There is no page at" in words(anyone.page("/nothing/here", 404))


@pytest.mark.parametrize("name", [".", "..", "~..", "a/b", "a?b#c", "%41", "é"])
def test_a_player_is_reached_whatever_their_name(anyone, league, service, name):
    service.record(duel(50, name, "bob", ladder=league))
    service.view(league)
    page = anyone.page(f"/ladders/{league}/standings")
    links = re.findall(rf'href="(/ladders/{league}/players/[^"]+)"', page)
    titles = [re.search(r"<h1>(.*?)</h1>", anyone.page(link))[1] for link in links]
    assert f"<bdi>{name}</bdi>" in titles


def test_past_seasons_keep_their_standings(anyone, league, service):
    service.open_season(league, title="Spring", reset="full")
    told = words(anyone.page(f"/ladders/{league}/seasons"))
    assert "Season 1" in told
    assert "Spring now" in told
    assert words(anyone.page(f"/ladders/{league}/seasons/1")).count("ann") == 1


def test_the_rules_of_a_ladder_are_told_with_every_parameter(anyone, league):
    told = words(anyone.page(f"/ladders/{league}/rules"))
    assert "k 32" in told
    assert "scale 400" in told


def test_a_player_without_a_place_in_the_standings_is_led_to_their_own_page(anyone, league, service):
    service.record(duel(60, "new", "other", ladder=league), rated=False)
    service.correct(league, Ban("ann"))
    service.view(league)
    for name in ("new", "ann"):
        found = anyone.get(f"/ladders/{league}/me?want=standing&player={name}").headers["location"]
        assert found == f"/ladders/{league}/players/{name}"
        assert anyone.get(found).status_code == 200


def hours_of(page):
    """What the card on hours says, and the colour of each percentage in it."""
    card = page[page.index('id="hours"') : page.index("</section>", page.index('id="hours"'))]
    return words(card), re.findall(r'<span class="(\w*)">[+−±]\d+ %', card)


def test_the_best_and_worst_hours_are_different_ones(anyone, service):
    service.create_ladder("hours", "elo", rules("elo"))
    nights = [duel(24 * day + 3, "ann", "bob", ladder="hours") for day in range(6)]
    service.record_many("hours", nights)
    assert 'id="hours"' not in anyone.page("/ladders/hours/players/ann")
    service.record_many("hours", [duel(24 * day + 13, "bob", "ann", ladder="hours") for day in range(6)])
    told, colours = hours_of(anyone.page("/ladders/hours/players/ann"))
    assert re.search(r"Best, UTC 03–06 h \+\d+ % in 6 matches Worst, UTC 12–15 h −\d+ % in 6 matches", told), told
    assert colours == ["up", "down"]
    assert "At no time" not in told


@pytest.mark.parametrize(
    ("change", "shown", "colour"),
    [(0.004, "±0", ""), (-0.004, "±0", ""), (0.0, "±0", ""), (0.005001, "+0.01", "up"), (-12.0, "−12.00", "down")],
)
def test_a_change_has_the_colour_of_the_sign_that_is_shown(change, shown, colour):
    text = page_request.signed(change)
    assert (text, page_request.direction(text)) == (shown, colour)


def test_a_page_says_whether_it_counts_a_season_or_all_of_them(anyone, league, service):
    def told():
        service.view(league)
        return [words(anyone.page(f"/ladders/{league}{path}")) for path in ("/players/ann", "/standings", "")]

    page, standings, overview = told()
    assert "All time 3 – 1 won – lost" in page
    assert "this season" not in page
    service.open_season(league, title="Spring", reset="full")
    service.record(duel(80, "ann", "bob", ladder=league))
    page, standings, overview = told()
    assert "Matches this season 1 1 completed" in page
    assert "All time 4 – 1 won – lost" in page
    assert "Percentile Matches this season Won Last match" in standings
    assert "Division Matches this season" in overview
    service.open_season(league, title="Summer", reset="none")
    page, standings, overview = told()
    assert "Matches since the last reset 1 1 completed" in page
    assert "All time" in page
    for table in (standings, overview):
        assert "Matches since the last reset" in table
    final = words(anyone.page(f"/ladders/{league}/seasons/1"))
    assert "Division Matches 1" in final


def test_a_match_has_no_card_without_a_player(anyone, league):
    for path in ("matches/m2", "matches/m2?player=ann", "matches/m2?player=joe", "matches/m2?player=zoe"):
        page = anyone.page(f"/ladders/{league}/{path}")
        cards = re.findall(r'<section class="card team [^>]*>.*?</section>', page, re.DOTALL)
        assert len(cards) == 2, path
        assert all('<div class="why">' in card for card in cards), path


def test_a_match_of_three_uneven_sides_tells_places_quitters_and_everybody_apart(anyone, league, service):
    service.record(team_match(70, (1, "ann", "new"), (2, "joe*"), (2, "bob"), ladder=league))
    page = words(anyone.page(f"/ladders/{league}/matches/m70"))
    assert "Team 1 won" in page
    assert "joe left early" in page
    for team, place in ((1, "1st"), (2, "2nd"), (3, "2nd")):
        assert f"Team {team} · {place}" in page
    assert re.search(r"ann (\d+ )?\+\d+\.\d\d 1,5\d\d → 1,5\d\d", page)
    assert re.search(r"bob (\d+ )?−\d+\.\d\d 1,\d{3} → 1,\d{3}", page)
    told = words(anyone.page(f"/ladders/{league}/players/joe"))
    assert re.search(r"Place 2 of 3 .*left early", told)


def test_the_list_of_matches_says_who_beat_whom(anyone, league, service):
    service.record(team_match(70, (1, "ann", "new"), (2, "joe*"), (2, "bob"), ladder=league))
    service.record(team_match(71, (1, "ann"), (1, "bob"), ladder=league))
    service.record(team_match(72, (2, "ann", "bob", "joe"), (1, "zoe", "new", "kim", "max"), ladder=league))
    listed = re.findall(r'<a class="grow match"[^>]*>(.*?)</a>', anyone.page(f"/ladders/{league}/matches"))
    assert [words(one) for one in listed[:4]] == [
        "zoe , new and 2 more beat ann , bob and joe",
        "ann drew with bob",
        "ann and new won, ahead of joe and bob",
        "joe beat ann",
    ]


def test_a_match_of_many_players_is_listed_by_place_and_names_the_visitor(anyone, league, service):
    service.record(team_match(70, (3, "ann"), (1, "joe"), (2, "bob*"), ladder=league))
    page = anyone.page(f"/ladders/{league}/matches/m70")
    assert "joe won" in words(page)
    assert re.findall(r'class="place">(\w+)<.*?players/(\w+)"', page, re.DOTALL) == [
        ("1st", "joe"),
        ("2nd", "bob"),
        ("3rd", "ann"),
    ]
    anyone.get(f"/ladders/{league}/me?want=standing&player=ann")
    assert "You finished 3rd of 3" in words(anyone.page(f"/ladders/{league}/matches/m70"))


def test_a_match_that_is_not_rated_says_so_beside_its_teams(anyone, league, service):
    service.correct(league, Void("m2", "a bug"))
    page = words(anyone.page(f"/ladders/{league}/matches/m2"))
    assert "ann beat joe" in page
    assert "No rating changed: the match was voided: a bug." in page
    assert "chance to win" not in page


UNTOLD = {"mean", "games"}  # from which the rating is made, and which the page tells otherwise


def test_every_state_of_every_system_is_explained_or_left_out_on_purpose():
    for name in systems.names():
        columns = set(systems.find(name).columns(rules(name).newcomers(1), rules(name).parameters))
        assert columns - set(state_meanings(systems.find(name), columns)) <= UNTOLD, name


@pytest.mark.parametrize(
    ("system", "shown"), [("glicko2", ["Deviation", "Volatility"]), ("prav", ["Volatility", "Provisional"])]
)
def test_a_player_sees_what_the_system_keeps_and_what_it_means(service, anyone, system, shown):
    service.create_ladder("sure", system, rules(system), Settings().changed({"placement": 1, "active_days": 1000.0}))
    service.record_many("sure", [duel(at, *who, ladder="sure") for at, who in enumerate(RESULTS, 1)])
    service.view("sure")
    state = LadderQueries(service).profile("sure", "ann").state
    told = words(anyone.page("/ladders/sure/players/ann")).partition("How sure is the rating?")[2]
    for name in shown:
        value = state[name.lower()]
        text = ("yes" if value else "no") if isinstance(value, bool) else page_request.number(value)
        assert f"{name} {text} {STATES.get((system, name.lower())) or STATES[name.lower()]}" in told
    assert "Mean" not in told.partition("after each match")[0]
    service.change_settings("sure", {"show": "percentile"})
    assert "How sure is the rating?" not in anyone.page("/ladders/sure/players/ann")


def test_a_player_reads_what_inactivity_costs_a_week_before_it_does(anyone, service, clock):
    clock.now -= 10 * DAY  # 1 January 2026
    rule = {"placement": 1, "active_days": 365.0, "inactivity": "rating", "rating_decay": 25.0, "rating_stop": "Gold"}
    service.create_ladder("idle", "elo", rules("elo"), Settings().changed(rule))
    for number, pair in enumerate([("ann", "bob"), ("ann", "cat"), ("bob", "cat")]):
        service.record(duel(number, *pair, ladder="idle"))
    sentence = "Without a completed match, the rating falls by 25 a week from 2026-01-23 on, down to Gold, and this"
    assert sentence not in words(anyone.page("/ladders/idle/players/ann"))
    clock.move(days=17)
    service.view("idle")  # pages may show standings that are a twentieth of a second old
    assert sentence in words(anyone.page("/ladders/idle/players/ann"))
    german = words(anyone.get("/ladders/idle/players/ann", headers={"Accept-Language": "de"}).text)
    assert "Ohne abgeschlossenes Match sinkt die Wertung ab 2026-01-23 um 25 pro Woche, bis auf Gold, und" in german
    assert sentence not in words(anyone.page("/ladders/idle/players/cat"))  # below Gold
    assert "−25.00 rating a week after 14 days, down to Gold" in words(anyone.page("/ladders/idle/rules"))
    service.change_settings("idle", {"inactivity": "percentile"})
    service.view("idle")
    assert "the shown percentile falls by 1 a day from 2026-01-" in words(anyone.page("/ladders/idle/players/ann"))
    assert "percentiles a day after 14 days" in words(anyone.page("/ladders/idle/rules"))


def test_a_player_learns_how_far_placement_is(anyone, service):
    """With auto: before the eighth match, then by the move that is expected, and nothing once it is over."""
    rule = {"placement": "auto", "placement_bound": 5, "active_days": 1000}
    service.create_ladder("steady", "elo", rules("elo"), Settings().changed(rule))
    names = [f"p{number}" for number in range(40)]
    service.record_many(
        "steady",
        [
            duel(number, *sorted((names[number % 40], names[number * 7 % 40 - 1])), ladder="steady")
            for number in range(1, 260)
            if number % 40 != number * 7 % 40 - 1 and names[number % 40] != names[number * 7 % 40 - 1]
        ],
    )
    service.record_many("steady", [duel(260, "new", "p3", ladder="steady"), duel(261, "p4", "new", ladder="steady")])
    standings = dict(service.named(service.view("steady").snapshot.among(service.view("steady").snapshot.board.player)))
    moving = [name for name, one in standings.items() if one.expected_move is not None]
    placed = [name for name, one in standings.items() if one.placed]
    assert moving
    assert placed
    assert all(not standings[name].placed for name in moving)
    page = words(anyone.page("/ladders/steady/players/new"))
    assert "In placement: 2 of at least 8 matches completed" in page
    one = standings[moving[0]]
    page = words(anyone.page(f"/ladders/steady/players/{moving[0]}"))
    moves = f"the percentile still moves by about {one.expected_move:.0f} per match"
    expected = f"{moves}; it is shown once that is below 5, after 50"
    assert expected in page
    assert "In placement" not in words(anyone.page(f"/ladders/steady/players/{placed[0]}"))
    rule = "8 completed matches once the next one is expected to move the percentile by less than 5, and after 50"
    assert rule in words(anyone.page("/ladders/steady/standings"))
    assert "8 matches or more, until" in words(anyone.page("/ladders/steady/rules"))
    assert "In placement: 2 of at least 8" in words(anyone.page("/ladders/steady/standings?around=new"))
    service.change_settings("steady", {"show": "division"})
    page = words(anyone.page(f"/ladders/steady/players/{moving[0]}"))
    assert "the percentile is shown once it is steady, after 50 matches at the latest" in page


def test_falls_by_inactivity_stand_among_the_matches_and_in_the_chart(anyone, service, clock):
    rule = {"placement": 2, "active_days": 1000, "inactivity": "rating", "grace_days": 3, "rating_decay": 10.0}
    clock.move(days=-10)
    service.create_ladder("idle", "elo", rules("elo"), Settings().changed(rule))
    service.record_many("idle", [duel(number, "ann", "bob", ladder="idle") for number in (1, 2)])
    clock.move(days=14)
    DailyDecay(service).apply("idle")
    top, low = (service.view("idle").snapshot.board.rating.max() + fall for fall in (10, 0))
    clock.move(days=1)
    service.record(duel(24 * 14, "bob", "ann", ladder="idle"))
    service.view("idle")
    page = anyone.page("/ladders/idle/players/ann")
    rows = re.findall(
        r'<(?:p|details) class="(m [^"]*)".*?</(?:p|details)>', page[page.index('id="matches"') :], re.DOTALL
    )
    assert rows == ["m lost", "m fall row", "m won", "m won"]
    assert "−10, not playing" in words(page)
    (mark,) = (point for point in told_of_points(page) if "not playing" in point)
    assert mark.endswith(f"not playing: {top:,.0f} → {low:,.0f} (−10.00)")
    service.change_settings("idle", {"show": "percentile"})
    assert "not playing" not in anyone.page("/ladders/idle/players/ann")
    assert "not playing" not in words(anyone.page("/ladders/idle/players/bob"))


def test_the_opening_of_a_season_stands_among_the_matches(anyone, league, service, clock):
    service.open_season(league, title="Autumn <1>", reset="soft")
    clock.move(days=10)
    service.record(duel(24 * 15, "bob", "ann", ladder=league))
    service.view(league)
    page = anyone.page(f"/ladders/{league}/players/ann")
    rows = re.findall(r'<(?:p|details) class="(m [^"]*)"', page[page.index('id="matches"') :])
    assert rows == ["m lost", "m fall row", "m lost", "m won", "m won", "m won"]
    assert "Autumn <1> began" in words(page)


def test_the_last_loss_of_a_player_is_one_click_away(anyone, league, service):
    page = anyone.page(f"/ladders/{league}/players/ann")
    last = [number for number, (winner, loser) in enumerate(RESULTS, 1) if loser == "ann"][-1]
    assert re.search(rf'href="/ladders/{league}/matches/m{last}\?player=ann">Last loss<', page)


def test_a_list_of_matches_is_filtered_by_player_result_day_and_season(anyone, league, service, clock):
    def listed(query):
        return re.findall(r'data-key="(m\d+)"', anyone.page(f"/ladders/{league}/matches{query}"))

    service.open_season(league, title="Spring")
    clock.move(days=3)
    service.record_many(league, [duel(at, "ann", "joe", ladder=league) for at in range(250, 280)])
    assert listed("?player=bob") == ["m3", "m1"]
    assert listed("?player=BOB&result=won") == ["m3"]
    assert listed("?player=bob&opponent=ann") == ["m1"]
    assert listed("?since=2026-01-11&until=2026-01-11") == [f"m{at}" for at in range(263, 249, -1)]
    assert listed("?season=1") == [f"m{at}" for at in range(6, 0, -1)]
    assert listed("?season=2&until=2026-01-01") == []
    empty = words(anyone.page(f"/ladders/{league}/matches?season=2&until=2026-01-01"))
    assert "There are no matches like these. All matches" in empty
    page = anyone.page(f"/ladders/{league}/matches?season=2&player=ann")
    following = re.search(r'rel="next" href="([^"]+)"', page)[1].replace("&amp;", "&")
    assert "season=2" in following
    assert "player=ann" in following
    assert re.findall(r'data-key="(m\d+)"', anyone.page(following)) == [f"m{at}" for at in range(254, 249, -1)]
    assert "choose a player" in words(anyone.page(f"/ladders/{league}/matches?result=won", 422))
    assert "nobodyx" in words(anyone.page(f"/ladders/{league}/matches?player=nobodyx", 404))


def test_standings_show_wins_and_how_the_rating_moved_in_seven_days(anyone, league, service):
    service.record(duel(200, "ann", "bob", ladder=league))
    service.view(league)
    page = anyone.page(f"/ladders/{league}/standings")
    rows = {who: words(row) for who, row in re.findall(r'(?s)<tr data-key="(\w+)"(.*?)</tr>', page)}
    moved = elo_by_hand([*RESULTS, ("ann", "bob")])[1]["ann"]
    assert f" up +{moved:.2f} " in rows["ann"]
    assert f" down −{moved:.2f} " in rows["bob"]
    assert " 80 % 4–0–1 " in rows["ann"]
    assert " no match " in rows["joe"]
    assert " 25 % 1–0–3 " in rows["joe"]


def test_a_page_says_on_which_maps_a_player_is_stronger(anyone, service):
    service.create_ladder("maps", "even", rules("even"), Settings(context=("map", "mode")))
    for number in range(24):
        match = duel(number, *(("ann", "bob") if number % 2 else ("bob", "ann")), "maps")
        place = "dust" if number % 2 else "mill<b>&"
        service.record(replace(match, context={"map": place, "mode": "duel"}))
    page = anyone.page("/ladders/maps/players/ann")
    assert "Strength by map" in words(page)
    assert "Strength by mode" not in words(page)  # there is only one
    assert re.search(r"dust 12 matches \+\d+ [−+]\d+ to \+\d+ ", words(page))
    assert "<bdi>mill&lt;b&gt;&amp;</bdi>" in page
    assert "dust" in words(anyone.page("/ladders/maps/matches/m1"))
