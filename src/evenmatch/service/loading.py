"""Load the kernels that ladders are rated by, so that the first match need not wait for that."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from evenmatch.errors import InputError
from evenmatch.match import Appearance, Match, Team
from evenmatch.online import Rater
from evenmatch.service.service import Service

PLAYED = datetime(2026, 1, 1, tzinfo=UTC)
DUEL = Match("warm", PLAYED, tuple(Team((Appearance(name, score=1.0),), place) for place, name in enumerate("ab", 1)))


def load_kernels(service: Service, loaded: set[str]) -> Iterator[str]:
    """The name of each system that a ladder is rated by, before it is loaded; the first time, it is compiled.

    loaded  those that need not be, to which the others are added
    """
    by = {ladder.rules.system.name: ladder.rules for ladder in service.ladders()}
    for name in sorted(set(by) - loaded):
        yield name
        loaded.add(name)
        try:
            Rater(by[name]).rate(DUEL)
        except InputError:  # a system that cannot rate a bare duel is loaded with its first match
            continue
