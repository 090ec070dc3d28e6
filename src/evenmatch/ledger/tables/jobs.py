"""Rows of table `job`: background jobs and their progress."""

from __future__ import annotations

from evenmatch.ledger.store import Store


def read_contents(store: Store, ladder: str) -> list[tuple[str, str]]:
    """(job, content as JSON) of the jobs of a ladder, in no particular order."""
    return [(job, content) for job, content in store.all("SELECT job, told FROM job WHERE ladder_name = ?", ladder)]


def set_content(store: Store, job: str, content: str) -> None:
    """Replace the content of a job, a JSON text."""
    store.run("UPDATE job SET told = ? WHERE job = ?", content, job)
