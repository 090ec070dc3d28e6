"""Batch work on a real Ray cluster of two nodes: the results of one machine, bit for bit, whatever is lost."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("ray", reason="Ray has no wheel for this version of Python or this system")

import evenmatch
from elo_matches import duels_table
from evenmatch import backtest, from_frame, rules, systems
from evenmatch.cluster.backtests import backtest_on_cluster
from evenmatch.cluster.connection import connect
from evenmatch.cluster.ladders import rate_ladders
from evenmatch.cluster.maintenance import rebuild_ladders
from evenmatch.cluster.tasks import NamedTask, executor_of, run_jobs
from evenmatch.errors import ClusterError, InputError, UsageError
from evenmatch.lab.backtests.streamed import backtest_partitions
from evenmatch.lab.backtests.tune import tune
from evenmatch.operations.service import Service
from evenmatch.partitioned import rate_partitions
from evenmatch.queues.queue_rules import QueueRules
from evenmatch.queues.queue_service import QueueService
from evenmatch.tables.partitions import find_partitions
from partitioned_history import write_partitions
from run_command import run_command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LADDERS = tuple(f"ladder {number}" for number in range(12))
SYSTEMS = ["elo", "glicko2", "wager"]
PASSWORD = "a-password-that-no-log-may-have"
SOURCES = Path(evenmatch.__file__).parent
# A filesystem that only one process and its children see, as in tests/crash/test_files.py
MOUNTERS = (("unshare", "--user", "--map-root-user", "--mount"), ("unshare", "--mount"))
MOUNT = 'mount -t tmpfs -o mode=777,size=64k tmpfs "$0" && exec "$@"'


@pytest.fixture(scope="module", autouse=True)
def store_before_nodes(request):
    """Nodes inherit the variables of the object store, so it is started first, where it can be."""
    with suppress(pytest.skip.Exception):
        request.getfixturevalue("object_store")


@pytest.fixture(scope="module")
def season(tmp_path_factory):
    """Twelve ladders of 2,000 duels, each in a folder of its own with three files."""
    table = duels_table(7, 24_000, k=20.0, spread=200.0, draws=0.1, players=400, ladders=LADDERS, hours=0.1)
    return write_partitions(table, tmp_path_factory.mktemp("season") / "in", files=3, by_ladder=True)


@pytest.fixture(scope="module")
def rated_here(season, tmp_path_factory):
    """The folder of ratings and journal as this process makes them."""
    folder = tmp_path_factory.mktemp("here")
    rated = rate_partitions(
        find_partitions(str(season)), rules("elo"), out=str(folder / "out"), journal=str(folder / "journal")
    )
    assert rated.matches == 24_000
    return folder


class Connection:
    """A connection that tests share: a process has one at a time, and workers start again with each."""

    def __init__(self, address):
        self.address, self.stack, self.cluster = address, ExitStack(), None

    def open(self):
        if self.cluster is None:
            self.cluster = self.stack.enter_context(connect(self.address, SYSTEMS))
        return self.cluster

    def close(self):
        self.stack.close()
        self.cluster = None


@pytest.fixture(scope="module")
def connection(ray_cluster):
    connection = Connection(ray_cluster.address)
    yield connection
    connection.close()


@pytest.fixture
def cluster(connection):
    """The cluster, connected."""
    return connection.open()


@pytest.fixture
def address(connection):
    """The address of the cluster, for commands that connect."""
    connection.close()
    return connection.address


def files_below(folder):
    """The contents of all files by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def has_manifest(folder):
    return (folder / "manifest.json").exists()


def test_ladders_rate_as_on_one_machine_although_a_worker_is_killed(cluster, ray_cluster, season, rated_here, tmp_path):
    with ray_cluster.one_task_killed() as killed:
        rated = rate_ladders(
            cluster,
            find_partitions(str(season)),
            rules("elo"),
            out=str(tmp_path / "out"),
            journal=str(tmp_path / "journal"),
        )
    assert len(killed) == 1
    assert (rated.matches, [ladder.name for ladder in rated.ladders]) == (24_000, sorted(LADDERS))
    made, expected = files_below(tmp_path), files_below(rated_here)
    assert made.keys() == expected.keys()
    assert [name for name in made if made[name] != expected[name]] == []


def test_a_backtest_on_the_cluster_equals_that_of_threads(cluster):
    matches = duels_table(4, 2000, players=30)
    alone = backtest(matches, SYSTEMS)
    with executor_of(cluster) as workers:
        found = backtest(matches, SYSTEMS, workers=workers)
        tuned = tune(matches, systems.find("elo"), 1e9, most=8, workers=workers)
    assert found.scores.num_rows > len(SYSTEMS)
    assert found.scores.drop_columns(["seconds"]).equals(alone.scores.drop_columns(["seconds"]))
    for table in ("segments", "reliability", "against_best", "against_best_default"):
        assert getattr(found, table).equals(getattr(alone, table)), table
    # What is proposed depends on which trial ends first; what a trial finds does not.
    for trial in tuned.trials:
        again = loss_of(matches, json.loads(trial["parameters"]))
        assert trial["log_loss"] == again, trial
    assert len(tuned.trials) == 8


def test_partitions_are_backtested_as_on_one_machine_although_a_worker_is_killed(cluster, ray_cluster, season):
    partitions = find_partitions(f"{season}/ladder=ladder 3")
    alone = backtest_partitions(partitions, SYSTEMS, name="season")
    shares = []
    with ray_cluster.one_task_killed() as killed:
        found = backtest_on_cluster(
            cluster, partitions, SYSTEMS, name="season", progress=lambda *told: shares.append(told)
        )
    assert len(killed) == 1
    assert found.scores.num_rows > len(SYSTEMS)
    assert found.scores.drop_columns(["seconds"]).equals(alone.scores.drop_columns(["seconds"]))
    for table in ("segments", "reliability", "against_best", "against_best_default"):
        assert getattr(found, table).equals(getattr(alone, table)), table
    judging = [share for what, share in shares if what == f"judging {found.scores.num_rows} variants"]
    assert (judging, judging[-1]) == (sorted(judging), 1.0)


def test_a_command_backtests_partitions_on_the_cluster(address, season):
    command = ("backtest", f"{season}/ladder=ladder 2", "--systems", "elo,wager", "--param", "elo.k=20", "--json")
    documents = [json.loads(run_command(*command, *more).out) for more in ((), ("--cluster", address))]
    for document in documents:
        for score in document["scores"]:
            del score["seconds"]
    assert documents[0] == documents[1]
    assert {score["variant"] for score in documents[1]["scores"] if score["system"] == "elo"} >= {"default", "given"}


def test_a_partition_that_is_missing_when_workers_read_it_is_named(cluster, season, tmp_path):
    folder = shutil.copytree(f"{season}/ladder=ladder 1", tmp_path / "in")

    def remove_a_file(what, share):
        if what.startswith("judging"):
            (folder / "2.parquet").unlink(missing_ok=True)

    with pytest.raises(UsageError, match=r"^(elo|glicko2|wager) [a-z]+.*: .*/2\.parquet: is missing"):
        backtest_on_cluster(cluster, find_partitions(str(folder)), SYSTEMS, name="season", progress=remove_a_file)


def loss_of(matches, values):
    """The log loss of one set of parameters, by threads."""
    from evenmatch.lab.backtests.tune import LEARNED, trial_loss  # noqa: PLC0415

    cell = np.where(np.arange(len(matches)) < int(len(matches) * LEARNED), -1, 0).astype(np.int32)
    return trial_loss(systems.find("elo"), values, (matches.history, cell))[0]


def test_a_task_that_kills_its_worker_each_time_is_given_up_by_name(cluster):
    with pytest.raises(ClusterError, match=r"ladder 'duel': its worker was lost 4 times"):
        run_jobs(cluster, signal.raise_signal, [NamedTask("ladder 'duel'", (signal.SIGKILL,))])


def test_a_torn_partition_is_named_and_leaves_no_whole_result(cluster, season, tmp_path):
    torn = shutil.copytree(season, tmp_path / "in") / "ladder=ladder 5" / "1.parquet"
    torn.write_bytes(torn.read_bytes()[:-1000])
    partitions = find_partitions(str(tmp_path / "in"))
    with pytest.raises(InputError) as told:
        rate_ladders(cluster, partitions, rules("elo"), out=str(tmp_path / "out"))
    assert str(told.value).startswith(f"ladder 'ladder 5': {torn.as_posix()}: not readable as Parquet, torn or damaged")
    assert not has_manifest(tmp_path / "out")


def test_a_partition_that_is_missing_on_a_worker_is_named(cluster, season, tmp_path):
    folder = shutil.copytree(season, tmp_path / "in")
    partitions = find_partitions(str(folder))
    (folder / "ladder=ladder 7" / "2.parquet").unlink()
    with pytest.raises(UsageError, match=r"ladder 'ladder 7': .*/ladder=ladder 7/2\.parquet: is missing"):
        rate_ladders(cluster, partitions, rules("elo"), out=str(tmp_path / "out"))
    assert not has_manifest(tmp_path / "out")


def may_mount(alone):
    tried = [*alone, "sh", "-c", 'mount -t tmpfs tmpfs "$0"', tempfile.gettempdir()]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


def test_a_full_disk_on_a_worker_is_named_and_leaves_no_whole_result(address, ray_cluster, season, tmp_path):
    alone = next(filter(may_mount, MOUNTERS), None)
    if alone is None:
        pytest.skip("no filesystem can be mounted here: neither in a user namespace nor, as root, outside of a chroot")
    out = tmp_path / "out"
    out.mkdir()
    node = ray_cluster.add_node(prefix=(*alone, "sh", "-c", MOUNT, str(out)), workers=2)
    ray_cluster.wait_for_workers(3)
    try:
        with (
            connect(address, ["elo"]) as cluster,
            pytest.raises((UsageError, ClusterError), match=r"ladder 'ladder [0-9]+': .*No space left on device"),
        ):
            rate_ladders(cluster, find_partitions(str(season)), rules("elo"), journal=str(out))
    finally:
        ray_cluster.remove(node)
        ray_cluster.wait_for_workers(2)
    assert not has_manifest(out)


@pytest.fixture
def changed_sources(tmp_path):
    """A copy of evenmatch in which a draw counts less for Elo than it should, as a folder for PYTHONPATH."""
    copy = tmp_path / "sources" / "evenmatch"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    elo = copy / "systems" / "elo.py"
    text = elo.read_text()
    changed = text.replace("result + 0.5 * games", "result + 0.25 * games")
    assert changed != text
    elo.write_text(changed)
    return copy.parent


def test_a_node_with_other_kernels_or_another_version_is_refused(
    address, ray_cluster, changed_sources, season, tmp_path
):
    path = os.pathsep.join((str(changed_sources), os.environ.get("PYTHONPATH", "")))
    node = ray_cluster.add_node({"PYTHONPATH": path})
    ray_cluster.wait_for_workers(3)
    rate = ("rate", season, "--system", "elo", "--out", tmp_path / "out", "--cluster", address)
    try:
        told = run_command(*rate)
        assert told.code == 4
        assert "some workers could compute different results; install the same versions on all nodes" in told.err
        assert "127.0.0.1: kernels of elo " in told.err
        init = changed_sources / "evenmatch" / "__init__.py"
        init.write_text(init.read_text().replace(f'"{evenmatch.__version__}"', '"0.0.9"'))
        told = run_command(*rate)  # Ray starts new processes for each connection
        assert told.code == 4
        assert f"127.0.0.1: evenmatch 0.0.9, here {evenmatch.__version__}" in told.err
    finally:
        ray_cluster.remove(node)
        ray_cluster.wait_for_workers(2)
    assert not (tmp_path / "out").exists()


def test_ladders_in_an_object_store_rate_as_on_a_disk(object_store, address, season, rated_here):
    import s3fs  # noqa: PLC0415

    store = s3fs.S3FileSystem()
    store.put(f"{season}/", "seasons/in/", recursive=True)
    told = run_command(
        *("rate", "s3://seasons/in", "--system", "elo", "--out", "s3://seasons/out", "--cluster", address)
    )
    assert told.code == 0, told.err
    for ladder in LADDERS:
        name = f"ladder={ladder}/ratings.parquet"
        with store.open(f"seasons/out/{name}") as file:
            assert file.read() == (rated_here / "out" / name).read_bytes()
    with store.open("seasons/out/manifest.json") as file:
        assert json.load(file) == json.loads((rated_here / "out" / "manifest.json").read_text())


@pytest.fixture(scope="module")
def database(postgres, season):
    """Four ladders in PostgreSQL, whose URL has a password."""
    url = postgres.fresh_database().replace("postgres@", f"postgres:{PASSWORD}@")
    with Service.open(url) as service:
        for ladder in LADDERS[:4]:
            service.create_ladder(ladder, "elo", rules("elo"))
            rows = [pq.ParquetFile(part.address).read() for part in find_partitions(f"{season}/ladder={ladder}")]
            service.import_matches(ladder, from_frame(pa.concat_tables(rows)))
            QueueService(service).set_queue(ladder, "ranked", {"preset": "quick"}, QueueRules())
    return url


def test_ladders_of_a_database_are_rebuilt_although_a_worker_is_killed(cluster, ray_cluster, database):
    before = standings_of(database)
    with ray_cluster.one_task_killed() as killed:
        rebuilt = rebuild_ladders(cluster, database, LADDERS[:4], whole=True)
    assert [(result.since, result.matches, result.changed) for result in rebuilt] == [(1, 2000, 0)] * 4
    assert len(killed) == 1
    assert standings_of(database) == before
    assert [path for path in ray_cluster.folder.rglob("*.*") if path.is_file() and PASSWORD in read_log(path)] == []


def test_a_database_is_verified_on_the_cluster(address, database):
    alone = run_command("verify", "--json", "--db", database)
    assert json.loads(alone.out)["equal"] is True
    assert run_command("verify", "--json", "--db", database, "--cluster", address).out == alone.out


def test_queues_of_a_database_are_audited_on_the_cluster(address, database):
    until = ("--until", "2027-01-01", "--json", "--db", database)
    alone = run_command("queue", "audit", *until)
    assert [audit["ladder"] for audit in json.loads(alone.out)] == list(LADDERS[:4])
    assert run_command("queue", "audit", *until, "--cluster", address).out == alone.out


def standings_of(url):
    with Service.open(url) as service:
        return [pickle.dumps(service.view(ladder, as_of="last").snapshot.board) for ladder in LADDERS[:4]]


def read_log(path):
    return path.read_text(errors="replace")
