"""Imported by the process that children are forked from, so that each of them starts at once."""

from crash.child_tasks import warm_up

warm_up()
