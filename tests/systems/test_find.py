"""Finding rating systems by name."""

import pkgutil

from evenmatch import systems


def test_the_folder_of_systems_is_listed_once(monkeypatch):
    systems.find("wager")
    monkeypatch.setattr(pkgutil, "iter_modules", lambda *_: 1 / 0)
    assert systems.find("elo").name == "elo"
    assert {"wager", "scorefactor", "prav", "battlepoints", "even"} <= set(systems.names())
