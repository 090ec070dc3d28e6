"""A small ledger with every kind of event and several generations, for tests that alter it."""

from evenmatch import rules
from evenmatch.corrections.corrections import Ban, Reinstate, Unvoid, Void
from evenmatch.ladders.inactivity import DailyDecay
from evenmatch.ladders.settings import Settings
from evenmatch.match import Match, Team
from evenmatch.standings.division import Division
from evenmatch.standings.rules import StandingsRules
from ledger.sample_matches import START, after, duel, micros, team_match

PLAYERS = [f"p{number:02}" for number in range(36)]
BANDS = (Division("low", 1), Division("middle", 40), Division("high", 80))


def write_varied_ledger(service, clock):
    """Write the ladders `default`, rated by elo, then glicko2, then elo, and `learning`, by a system that learns."""
    clock.now = micros(START)
    standings = StandingsRules(placement=2, active_days=365, divisions=BANDS, inactivity="rating", grace_days=3)
    service.create_ladder("default", "elo", rules("elo"), Settings(standings=standings, rating_decay=10.0))
    service.start_ratings("default", {"p00": 1700.0, "p01": 1300.0}, "starts")
    pairs = [(PLAYERS[number % 36], PLAYERS[(number * 7 + 5) % 36]) for number in range(60)]
    clock.move(days=2)
    service.record_many("default", [duel(number, *pair) for number, pair in enumerate(pairs) if pair[0] != pair[1]])
    service.divide("default")
    service.correct("default", Void("m3", "the server crashed"))
    service.correct("default", Unvoid("m3", "it did not"))
    service.correct("default", Ban("p09", reason="aimbot"))
    clock.move(days=1)
    service.record(Match("labelled", after(70), (Team.of("p04", "p05", place=1), Team.of("p06", place=2)), "default"))
    service.record(team_match(71, (1, "p07*", "p08"), (2, "p10", "p11~"), (2, "p12")), rated=True)
    service.record(duel(72, "p01", "p02"), rated=False)
    service.record(duel(73, "p01", "p09"))
    service.correct("default", Ban("p13", rule="refund", reason="smurf"))
    service.correct("default", Reinstate("p09", "a mistake"))
    service.change_rules("default", "glicko2", rules("glicko2"))
    service.record(duel(74, "p14", "p15"))
    service.change_rules("default", "elo", rules("elo", k=24))
    service.record(duel(75, "p14", "p16"))
    service.merge("p17", "p18")
    service.rename("p19", "p19-new")
    service.erase("p20")
    clock.now = micros(after(24 * 30))
    DailyDecay(service).apply("default")
    service.open_season("default", title="Winter", reset="soft", factor=0.5)
    clock.move(days=6)
    for number in range(1, 41):
        service.record(duel(720 + number, PLAYERS[2 * number % 36], PLAYERS[(2 * number + 1) % 36]))
    service.change_settings("default", {"title": "Duels"})
    service.divide("default")
    service.correct("default", Void("m730", "lag"))
    service.record(duel(770, "p21", "p22"))
    service.create_ladder("learning", "even", rules("even"), Settings(context=("map",)))
    for number in range(1, 12):
        sides = (PLAYERS[number], PLAYERS[number + 3]), (PLAYERS[2 * number],)
        teams = (Team.of(*sides[0], place=1, score=3), Team.of("x", sides[1][0] + "y", place=2, score=1))
        context = {"map": ("dust", "mill")[number % 2]}
        service.record(Match(f"n{number}", after(24 * 31 + number), teams, "learning", context=context))
