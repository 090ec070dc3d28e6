"""Honest play, which every behaviour is compared with."""

from __future__ import annotations

from evenmatch.lab.behaviours import Behaviour

BEHAVIOUR = Behaviour
