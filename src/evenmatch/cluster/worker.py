"""The functions that run on the nodes of a cluster. Their code is sent, so they work whatever is installed there.

Only the standard library is imported at the top, so that a node without evenmatch, or with another version, can still
report that.
"""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Mapping, Sequence
from typing import Any

DONE, REFUSED, FAILED = "done", "refused", "failed"
Outcome = tuple[str, Any]


def facts_of(systems: Sequence[str]) -> dict[str, str]:
    """Facts that results depend on in this process: versions, processor, and a fingerprint of each system."""
    facts = {"Python": "{}.{}.{}".format(*sys.version_info)}
    try:
        facts |= importlib.import_module("evenmatch.cluster.connection").node_facts(systems)
    except ImportError as error:
        facts["evenmatch"] = f"cannot be imported ({error})"
    except Exception as error:
        facts["evenmatch"] = f"fails with {type(error).__name__}: {error}"
    return facts


def run(expected: Mapping[str, str], systems: Sequence[str], task: bytes, shared: Sequence[Any]) -> Outcome:
    """Run one task in a worker process, or refuse it if the process differs from the expected facts.

    task    pickled function and arguments, which only the right version can read
    shared  references to values in the object store, which follow the arguments
    Returns DONE and the result, REFUSED and the facts of this process, or FAILED and the error.
    """
    facts = facts_of(systems)
    if facts != dict(expected):
        return REFUSED, facts
    import ray

    errors = importlib.import_module("evenmatch.errors")
    function, arguments = pickle.loads(task)
    try:
        return DONE, function(*arguments, *(ray.get(list(shared)) if shared else ()))
    except errors.EvenmatchError as error:
        return FAILED, error
    except OSError as error:  # a full disk or an unreadable file
        named = f" {error.filename}:" if error.filename else ""
        return FAILED, errors.ClusterError(f"{named} {error.strerror or error}".strip())
