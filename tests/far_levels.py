"""Ratings far from each other and from any middle, for each rating system."""

_LEVELS = {
    "wager": (1.0, 1.5, 4.0, 9.0),
    "scorefactor": (100, 160, 300, 700),
    "trueskill": (0, 8, 15, 30),
    "wenglin": (0, 8, 15, 30),
    "trophies": (0, 100, 400, 900),
    "planeswalker": (0, 10, 40, 200),
    "battlepoints": (700, 900, 1300, 2100),
}


def far_levels(system):
    """Four ratings of a system, ascending; the first is at its floor if it has one."""
    return tuple(map(float, _LEVELS.get(system, (900, 1300, 1600, 2400))))
