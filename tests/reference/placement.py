"""Automatic placement, in plain Python, from its definition: one match after another, nothing packed.

After every completed match a player has a mean rating change: of the first eight, then moving by an eighth. Half of the
percentiles between the rating less that change and the rating plus it are the expected move, by a sample of ratings:
every rating, or 101 of them, evenly spaced by rank, of at least 30 players of the season. A sample is taken before the
first match that is 32 positions or a quarter of the season after the one before it. The lowest move counts.
"""

from dataclasses import dataclass, field


@dataclass
class Mover:
    """A player in a season."""

    rating: float = 0.0
    matches: int = 0
    completed: int = 0
    change: float = 0.0
    move: float = 100.0


@dataclass
class SlowPlacement:
    """Players by name, and the present sample."""

    players: dict[str, Mover] = field(default_factory=dict)
    season: int = 0
    sampled: int = 0
    sample: list[float] = field(default_factory=list)

    def match(self, position, lines):
        """A match event. lines: (player, before, after, kept, quit) of each; none of a match that is not rated."""
        if position >= self.sampled + max(32, (self.sampled - self.season) // 4):
            known = sorted(one.rating for one in self.players.values() if one.matches)
            self.sampled, self.sample = position, []
            if len(known) >= 30:
                self.sample = known if len(known) <= 101 else [known[at * (len(known) - 1) // 100] for at in range(101)]
        for player, before, after, kept, left in lines:
            one = self.players.setdefault(player, Mover())
            one.rating = after
            if not kept:
                continue
            one.matches += 1
            if left:
                continue
            one.completed += 1
            one.change += (abs(after - before) - one.change) / min(one.completed, 8)
            if one.completed >= 8 and self.sample:
                span = self.percentile(after + one.change) - self.percentile(after - one.change)
                one.move = min(one.move, span / 2)

    def percentile(self, rating):
        """Share of the sample below, a half for equal ones, 0 to 100."""
        below = sum(other < rating for other in self.sample)
        equal = sum(other == rating for other in self.sample)
        return 50 * (below + below + equal) / len(self.sample)

    def open_season(self, position, ratings):
        """A season with these ratings by name."""
        self.season = self.sampled = position
        self.sample = []
        self.players = {name: Mover(rating) for name, rating in ratings.items()}
