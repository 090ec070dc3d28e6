"""Section 1, `wager`, in exact arithmetic: ranks are whole cents, everything else is a fraction."""

import math
from decimal import Decimal
from fractions import Fraction

from .model import SlowChange, SlowMatch, SlowPlayer, SlowTeam

HIGHEST_CENTS = 9 * 10**13


def exact(number: float) -> Fraction:
    """The decimal number that is written, not the binary one that is stored."""
    return Fraction(Decimal(repr(float(number))))


def round_half_up(number: Fraction) -> int:
    return math.floor(number + Fraction(1, 2))


def to_cents(rating: float) -> int:
    return round_half_up(exact(rating) * 100)


def to_rating(cents: int) -> float:
    return float(Fraction(cents, 100))


def replay(
    matches: list[SlowMatch],
    *,
    start: float = 1.00,
    floor: float = 1.00,
    stake: float = 0.05,
    uneven: str = "total",
    quitter_time: str = "stayed",
    modifier_limit: float | None = None,
    advantage: float = 0.0,
    state: dict[str, dict] | None = None,
) -> list[SlowChange]:
    """One change per match and player. `state`: {player: {"rating": 21.84}}."""
    rules = Rules(floor, stake, uneven, quitter_time, modifier_limit)
    ranks = {name: to_cents(fields["rating"]) for name, fields in (state or {}).items()}
    changes = []
    for match in matches:
        for team in match.teams:
            for player in team.players:
                ranks.setdefault(player.name, to_cents(start))

        after = {}
        for index, team in enumerate(match.teams):
            own, other = Side(match, index, ranks, advantage), Side(match, 1 - index, ranks, advantage)
            expected = Fraction(own.average**2, own.average**2 + other.average**2)
            for player in team.players:
                before = ranks[player.name]
                after[player.name] = rules.new_rank(before, player, own, other)
                changes.append(
                    SlowChange(
                        match.id, player.name, index, to_rating(before), to_rating(after[player.name]), float(expected)
                    )
                )
        ranks.update(after)
    return changes


class Side:
    """One of the two teams of a match, as the formulas see it."""

    def __init__(self, match: SlowMatch, index: int, ranks: dict[str, int], advantage: float) -> None:
        team: SlowTeam = match.teams[index]
        if len(match.teams) != 2:
            raise ValueError(f"match {match.id} has {len(match.teams)} teams; wager knows two")
        self.place = team.place
        self.size = len(team.players)
        # Averages are rounded half-up to two decimals: to whole cents.
        self.average = round_half_up(Fraction(sum(ranks[player.name] for player in team.players), self.size))
        if index == 0:
            self.average = max(1, round_half_up(self.average * (1 + exact(advantage) / 100)))
        self.all_quit = all(player.quit for player in team.players)
        # None where nobody's seconds were recorded; recorded for some players only is an input error.
        everybody = [player.seconds for each in match.teams for player in each.players]
        self.seconds = None
        if any(seconds is not None for seconds in everybody):
            self.seconds = sum((exact(player.seconds) for player in team.players), Fraction(0))
            self.longest = max(exact(seconds) for seconds in everybody)


class Rules:
    """The parameters, exact, and the rules that read them."""

    def __init__(
        self, floor: float, stake: float, uneven: str, quitter_time: str, modifier_limit: float | None
    ) -> None:
        self.floor = to_cents(floor)
        self.stake = exact(stake)
        self.uneven = uneven
        self.quitter_time = quitter_time
        self.limit = None if modifier_limit is None else exact(modifier_limit)

    def new_rank(self, rank: int, player: SlowPlayer, own: Side, other: Side) -> int:
        if player.quit:
            # Rule 6, which also comes before rule 5. So where both teams quit entirely, everybody is a quitter.
            change = -self.quitter_loss(rank, player, own, other)
        elif other.all_quit:
            # Rule 5: the stake alone, without modifiers.
            change = rank * self.stake
        elif own.place < other.place:
            change = self.win(rank, own, other)
        elif own.place > other.place:
            change = -self.loss(rank, own, other, own.seconds)
        elif own.average < other.average:
            # Rule 4: after a draw the lower team is paid as for a win.
            change = self.win(rank, own, other)
        else:
            change = Fraction(0)
        # First the floor, then the only rounding of the result.
        cents = round_half_up(max(Fraction(self.floor), rank + change))
        if cents > HIGHEST_CENTS:
            raise OverflowError(f"{player.name} would reach {cents} cents; the most is {HIGHEST_CENTS}")
        return cents

    def win(self, rank: int, own: Side, other: Side) -> Fraction:
        rank_modifier = self.limited(Fraction(other.average, own.average))
        return rank * self.stake * rank_modifier * self.time_modifier(other.seconds, other.size, own.seconds, own.size)

    def loss(self, rank: int, own: Side, other: Side, own_seconds: Fraction | None) -> Fraction:
        rank_modifier = self.limited(Fraction(own.average, other.average))
        return rank * self.stake * rank_modifier * self.time_modifier(own_seconds, own.size, other.seconds, other.size)

    def quitter_loss(self, rank: int, player: SlowPlayer, own: Side, other: Side) -> Fraction:
        if other.seconds is not None and other.seconds == 0:
            # "A quitter whose opponents' time is 0 loses R0/20": nothing else, also where the rank modifier is above 1.
            return rank * self.stake
        own_seconds = own.seconds
        if own_seconds is not None and self.quitter_time == "stayed":
            # This quitter alone is taken to have stayed; team-mates who quit too keep the time they played.
            # The end is the longest `seconds` of any player, even where the match has a duration of its own.
            own_seconds = own_seconds - exact(player.seconds) + own.longest
        return max(rank * self.stake, self.loss(rank, own, other, own_seconds))

    def time_modifier(
        self, above: Fraction | None, above_size: int, below: Fraction | None, below_size: int
    ) -> Fraction:
        """The quitter modifier `above/below`: 1 where no times were recorded or one of them is 0.

        So also in a quitter's own standard loss, where `quitter_time="actual"` leaves their team without time.
        """
        if above is None or below is None or above == 0 or below == 0:
            return Fraction(1)
        if self.uneven == "mean":
            return self.limited((above / above_size) / (below / below_size))
        return self.limited(above / below)

    def limited(self, modifier: Fraction) -> Fraction:
        if self.limit is None:
            return modifier
        return min(self.limit, max(1 / self.limit, modifier))
