"""What context columns are worth: the same matches without them, with each alone, and with a ladder for each value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from evenmatch.history import History, ladder_indices
from evenmatch.lab.backtests import scoring
from evenmatch.lab.backtests.match_cells import MatchCells
from evenmatch.lab.backtests.scoring import Resamples, ScoredVariant, Variant
from evenmatch.tables import MatchTable

CONTEXT = pa.schema(
    {
        **scoring.NAMED,
        "matches": scoring.TEXT,
        **dict.fromkeys(("log_loss", "difference", "low", "high"), pa.float64()),
    }
)
Judge = Callable[[Variant, History], ScoredVariant]


def compare(
    matches: MatchTable, results: Sequence[ScoredVariant], judge: Judge, cells: MatchCells, drawn: Resamples
) -> pa.Table:
    """Table of the log loss of each system that reads context, with its defaults, on other forms of the same matches.

    judge  replays a history with a variant
    Columns: system, variant, matches (the form), log_loss, its difference to that with all columns, and the interval of
    the difference. Empty without context columns.
    """
    rows = []
    for whole in results if matches.context else ():
        if whole.variant.variant != "default" or whole.variant.rules.system.offset is None:
            continue
        forms = {"with " + ", ".join(column.name for column in matches.context): whole}
        forms |= {name: judge(whole.variant, history) for name, history in other_forms(matches)}
        differences = scoring.against(list(forms.values()), whole, cells, drawn).to_pylist()
        for (name, result), difference in zip(forms.items(), differences, strict=True):
            rows.append({**difference, "matches": name, "log_loss": scoring.mean_log_loss(result, cells)})
    return pa.Table.from_pylist(rows, schema=CONTEXT)


def other_forms(matches: MatchTable) -> Iterator[tuple[str, History]]:
    """The same matches without context columns, with one alone, and with a ladder for each value of a column."""
    history, count = matches.history, len(matches.context)
    c, nothing = history.columns, np.empty(0, np.int32)
    context, offset = c.context.reshape(-1, count), c.offset.reshape(-1, count)
    yield "without context", History(c._replace(context=nothing, offset=nothing))
    for number, column in enumerate(matches.context if count > 1 else ()):
        only = c._replace(context=context[:, number], offset=offset[:, number])
        yield f"with {column.name} alone", History(only)
    for number, column in enumerate(matches.context):
        apart = c._replace(player=offset[:, number], ladder=ladder_indices(context[:, number]))
        yield f"a ladder for each {column.name}", History(apart._replace(context=nothing, offset=nothing))
