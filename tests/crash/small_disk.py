"""Scenes on a filesystem of their own, small enough to be filled.

`python small_disk.py SCENE FOLDER` plays one and prints what happened as JSON; a test mounts the folder where nobody
else sees it, starts this, and says what should have happened.
"""

import json
import os
import sys
from pathlib import Path
from random import Random

from asgi_client import Asking
from crash.child_tasks import SYSTEM, correct_player, refusal_of
from crash.numbered_matches import LADDER, numbered_matches
from evenmatch import rules, tables
from evenmatch.http.app import application
from evenmatch.http.options import Options
from evenmatch.http.server import site_over
from evenmatch.operations.service import Service
from postgres import Postgres

Told = dict[str, object]


def full_disk(folder: Path) -> Told:
    """SQLite fills the disk."""
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(4_000_000))
    return fill_and_go_on(str(folder / "ladders.db"), ballast)


def full_server(folder: Path) -> Told:
    """PostgreSQL fills its disk; its own files take about 50 MB of it."""
    os.environ["TMPDIR"] = str(folder)
    with Postgres() as server:
        url = server.fresh_database()
        with Service.open(url) as service:  # makes the tables and their partitions
            with service.database.write() as store:  # room in the log for all that follows: without, the server ends
                store.all("SELECT 1 FROM pg_switch_wal()")
            service.create_ladder("spare", SYSTEM, rules(SYSTEM))
        ballast = folder / "ballast"
        space = os.statvfs(folder)
        ballast.write_bytes(bytes(space.f_bavail * space.f_bsize - 3_000_000))
        return fill_and_go_on(url, ballast)


def fill_and_go_on(url: str, ballast: Path) -> Told:
    """Record until there is no room, try other things, make room, send again what was refused."""
    told: Told = {}
    with Service.open(url) as service:
        service.create_ladder(LADDER, SYSTEM, rules(SYSTEM))
        told["ready before"] = readiness_of(service)  # its row is there then, and needs no more room
        acknowledged = 0
        while "record" not in told and acknowledged < 20_000:
            matches = numbered_matches(acknowledged, acknowledged + 50)
            said = refusal_of(lambda sent=matches: service.record_many(LADDER, sent))  # type: ignore[misc]
            if said is None:
                acknowledged += 50
            else:
                told["record"] = said
        many = tables.from_matches(numbered_matches(90_000, 95_000))
        told["import"] = refusal_of(lambda: service.import_matches(LADDER, many))
        # Every line anew: a rebuild that changes none is so small that SQLite may have room for it in its log.
        told["rebuild"] = refusal_of(lambda: service.change_rules(LADDER, SYSTEM, rules(SYSTEM, start=1400.0)))
        told["ready"] = readiness_of(service)
        told["standings"] = len(service.view(LADDER).snapshot.board)
        told["differences"] = list(service.verify(LADDER).differences)
        told["kept"] = service.ladder(LADDER).matches
        ballast.unlink()
        told["ready after"] = readiness_of(service)
        service.record_many(LADDER, numbered_matches(acknowledged - 50, acknowledged + 50))
        correct_player(service, "player 1", Random(1))
    with Service.open(url) as service:
        told["equal"] = service.verify(LADDER).is_equal
        told["kept after"] = service.ladder(LADDER).matches
    return {**told, "acknowledged": acknowledged}


def readiness_of(service: Service) -> list[object]:
    """Status and detail that /readyz answers."""
    site = site_over(service, Options(matchmaker=False))
    site.kernels.ready.set()
    asking = Asking(application(site))
    answer = asking.get("/readyz")
    asking.close()
    site.threads.shutdown(wait=True)
    return [answer.status_code, answer.json().get("detail")]


SCENES = {scene.__name__: scene for scene in (full_disk, full_server)}

if __name__ == "__main__":
    print(json.dumps(SCENES[sys.argv[1]](Path(sys.argv[2]))))
