"""`python -m benchmarks.two wager`: rate two matches, as the processes do that benchmarks/start.py times.

Packages that numba and pyarrow import where they happen to be installed, though evenmatch needs none of them, are
hidden, so that the time is that of evenmatch and what it depends on.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from importlib.machinery import ModuleSpec
from types import ModuleType

HIDDEN = ("pandas", "scipy")


class Hide(importlib.abc.MetaPathFinder):
    """Lets the hidden packages seem not to be installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Nothing for any other package, so that the next finder is asked."""
        if fullname in HIDDEN:
            raise ModuleNotFoundError(f"{fullname} is hidden", name=fullname)
        return None


def main(system: str) -> None:
    """A duel and a 2v2, with scores and seconds."""
    import evenmatch  # noqa: PLC0415 - after the packages are hidden
    from evenmatch import Appearance, Match, Team  # noqa: PLC0415

    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    ada, bob, cyd, dee = (
        Appearance(name, score, 600) for name, score in zip(("a", "b", "c", "d"), range(4), strict=True)
    )
    matches = [
        Match("1", noon, (Team((ada,), 1), Team((bob,), 2))),
        Match("2", noon + timedelta(hours=1), (Team((ada, bob), 2), Team((cyd, dee), 1))),
    ]
    evenmatch.rate(evenmatch.from_matches(matches), evenmatch.rules(system))


if __name__ == "__main__":
    sys.meta_path.insert(0, Hide())
    main(sys.argv[1])
