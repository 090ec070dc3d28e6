"""An audit on a real Ray cluster finds what processes and threads of one machine find."""

import pytest

pytest.importorskip("ray", reason="Ray has no wheel for this version of Python or this system")

from evenmatch.cluster.connection import connect
from evenmatch.cluster.tasks import executor_of
from evenmatch.lab.backtests.workers import Processes
from evenmatch.lab.fairness.audit import AuditPlan, Contestant, audit
from evenmatch.lab.seasons.settings import SeasonSettings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_an_audit_on_the_cluster_equals_that_of_processes(ray_cluster):
    plan = AuditPlan(
        contestants=(Contestant("elo"), Contestant("wager", None, (("stake", 0.1),))),
        behaviours=("rage_quitter", "smurf"),
        settings=SeasonSettings(players=40, matches=100, weeks=1.0, culprits=0.2),
        game="duel",
        search=(1,),
        measured=(101, 102),
    )
    with Processes(2) as processes:
        alone = audit(plan, processes)
    with connect(ray_cluster.address, ["elo", "wager"]) as cluster, executor_of(cluster) as workers:
        found = audit(plan, workers)
    assert len(found.cells) == 4
    assert found == alone
