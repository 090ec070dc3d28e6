"""Behaviours of the tests' own, as files: what each does is known beforehand."""

PATTERN = '''"""A behaviour of a test."""

from evenmatch.lab.behaviours import Behaviour


class Own(Behaviour):
    name, title, does, games, doses = "own", {title!r}, {does!r}, {games!r}, {doses!r}

    def prepare(self, season, play, mine):
        play.skill[mine] += {more}


BEHAVIOUR = Own
'''


def write_behaviour(path, more, *, title="Own", does="does something", games=("duel", "team"), doses=(1.0,)):
    """Write a behaviour that adds `more`, an expression of `self.dose`, to the skill of its players; its name."""
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(PATTERN.format(more=more, title=title, does=does, games=games, doses=doses), encoding="utf-8")
    return str(path)
