"""Backtests, tuning and jobs on a real Ray cluster of two worker nodes: the results of one machine, bit for bit."""

import pytest

pytest.importorskip("ray", reason="Ray has no wheel for this version of Python or this system")

from elo_matches import duels_table
from evenmatch import backtest
from evenmatch.cluster.connection import connect
from evenmatch.cluster.tasks import executor_of

pytestmark = [pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster(ray_cluster):
    with connect(ray_cluster.address, ["elo", "glicko2", "wager"]) as connected:
        yield connected


def without_seconds(found):
    return found.drop_columns(["seconds"])


def test_a_backtest_on_the_cluster_equals_that_of_threads(cluster):
    matches = duels_table(4, 2000, players=30)
    alone = backtest(matches, ["elo", "glicko2", "wager"])
    with executor_of(cluster) as workers:
        found = backtest(matches, ["elo", "glicko2", "wager"], workers=workers)
    assert without_seconds(found.scores).equals(without_seconds(alone.scores))
    for table in ("segments", "reliability", "against_best", "against_best_default"):
        assert getattr(found, table).equals(getattr(alone, table)), table
    assert found.scores.num_rows > 3
