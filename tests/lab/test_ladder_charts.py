"""The chart of waits: its time axis covers the waits, and nothing after them."""

import json

import pytest

from evenmatch.lab.ladder.charts import PartyWait, waits_over_time

DAY = 86_400_000_000


@pytest.mark.parametrize("hours", [0, 5, 24, 24 * 90])
def test_a_time_axis_has_at_least_a_day_and_ends_with_its_last_point(hours):
    """An axis that continues after the latest match shows the future."""
    last = 100 * DAY
    times = [last - hours * DAY // 24, last]
    figure = json.loads(waits_over_time([PartyWait(at, 12.0, 50.0) for at in times]).to_json())
    since, until = figure["layout"]["xaxis"]["range"]
    first, last_ms = (at // 1000 for at in times)
    assert until - since >= 86_400_000
    assert since < first
    assert last_ms < until <= last_ms + (until - since) / 40
