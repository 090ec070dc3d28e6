"""Compiling beside the service: children that die, systems that do not work, databases that do not answer at once."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from numba.core.dispatcher import Dispatcher
from numba.core.types import IntegerLiteral

from evenmatch import rules
from evenmatch.compile_notice import is_cached
from evenmatch.errors import StoreError
from evenmatch.matchmaking.passes import make_matches
from evenmatch.operations import kernels
from evenmatch.operations.kernels import MATCHMAKER, Compilation, Kernels, load_matchmaker

PATIENCE = 20.0  # seconds


@pytest.mark.parametrize("processors", [1, 2])
def test_the_wait_for_children_that_die_at_once_ends(monkeypatch, processors):
    parts = ["elo", "wager", "prav", "trueskill", *MATCHMAKER]
    monkeypatch.setattr(kernels, "missing", list)
    monkeypatch.setattr(kernels.os, "cpu_count", lambda: processors)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with Compilation(parts) as compilation:
        waiting = threading.Thread(target=compilation.wait, daemon=True)
        waiting.start()
        waiting.join(PATIENCE)
        assert not waiting.is_alive()
        assert compilation.left == 0


@pytest.mark.parametrize("program", [sys.executable, "/bin/false"])
def test_a_child_that_has_ended_is_no_zombie_while_the_block_still_runs(monkeypatch, program):
    monkeypatch.setattr(kernels, "missing", list)
    monkeypatch.setattr(sys, "executable", program)
    before = set(psutil.Process().children())
    with Compilation(["elo"]) as compilation:
        compilation.wait()
        deadline = time.monotonic() + PATIENCE
        while left := set(psutil.Process().children()) - before:  # zombies are among them
            assert time.monotonic() < deadline, left
            time.sleep(0.05)


def test_a_system_that_does_not_work_keeps_no_other_ladder_from_being_served(tmp_path, monkeypatch):
    failed = []
    loaded = []

    def load(by, _):
        loaded.append(by.system.name)
        if by.system.name == "elo":
            raise ZeroDivisionError("float division")

    monkeypatch.setattr(kernels, "load_system", load)
    service = Kernels(lambda: {"elo": rules("elo"), "wager": rules("wager")}, failed=failed.append)
    service.load()
    assert service.ready.is_set()
    assert service.matchmaker_loaded.is_set()
    assert loaded == ["elo", "wager"]
    assert [str(error) for error in failed] == ["rating system 'elo' does not work: ZeroDivisionError: float division"]


def test_a_database_that_does_not_answer_is_asked_again_before_the_service_is_ready(monkeypatch):
    monkeypatch.setattr(kernels, "RETRY", 0.01)
    answers = iter([StoreError("the connection was refused"), StoreError("the connection was refused"), {}])
    failed = []

    def named():
        answer = next(answers)
        if isinstance(answer, StoreError):
            assert not service.ready.is_set()
            raise answer
        return answer

    service = Kernels(named, failed=failed.append)
    service.load()
    assert len(failed) == 2
    assert service.ready.is_set()


def test_what_another_processor_left_in_the_cache_does_not_count(monkeypatch):
    load_matchmaker()
    assert is_cached(make_matches)
    codegen = make_matches.targetctx.codegen()
    monkeypatch.setattr(type(codegen), "magic_tuple", lambda self: ("x86_64-unknown-linux-gnu", "i486", "+nothing"))
    assert not is_cached(make_matches)


def test_no_kernel_of_the_matchmaker_is_compiled_for_literals_too():
    load_matchmaker()
    modules = [module for name, module in sys.modules.items() if name.startswith("evenmatch.matchmaking.")]
    values = [value for module in modules for value in vars(module).values()]
    dispatchers = [value for value in values if isinstance(value, Dispatcher)]
    assert len(dispatchers) > 40
    literals = {  # of the cache on disk: one that is loaded with its caller is not among its own `signatures`
        (dispatcher.py_func.__name__, str(signature))
        for dispatcher in dispatchers
        if dispatcher.stats.cache_path is not None
        for signature, *_ in dispatcher._cache._cache_file._load_index()
        if any(isinstance(argument, IntegerLiteral) for argument in signature)
    }
    assert literals == set()


COMPILED_ONCE = """
from collections import Counter
from numba.core import event
from evenmatch.operations.kernels import compile_part, missing
from evenmatch.operations.kernels import MATCHMAKER, load_matchmaker

class Compiled(event.Listener):
    names = Counter()
    def on_start(self, begun):
        function = begun.data["dispatcher"].py_func
        if function.__module__.startswith("evenmatch."):
            self.names[function.__qualname__] += 1
    def on_end(self, ended):
        pass

event.register("numba:compile", Compiled())
for part in {parts!r}:
    compile_part(part)
before = Compiled.names.total()
if "matchmaker" in {parts!r}[0]:
    load_matchmaker()
twice = [name for name, times in Compiled.names.items() if times > 1]
print(twice, Compiled.names.total() - before, missing({parts!r}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("parts", [["elo"], list(MATCHMAKER)], ids=["elo", "matchmaker"])
def test_parts_compile_each_kernel_once_and_leave_none(parts, tmp_path):
    command = [sys.executable, "-c", COMPILED_ONCE.format(parts=parts)]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert run.stdout.strip() == "[] 0 []"


BACKTEST = """
import pathlib, sys
from evenmatch import backtest
from evenmatch.lab.backtests.evaluation import compile_measures
from evenmatch.operations.kernels import compile_part
sys.path.insert(0, {tests!r})
from elo_matches import duels_table

compile_part("planeswalker")
compile_measures()
before = set(pathlib.Path({cache!r}).rglob("*.nbc"))
for matches in (400, 4000):
    backtest(duels_table(1, matches), ["planeswalker"], workers=1)
print([path.name for path in set(pathlib.Path({cache!r}).rglob("*.nbc")) - before])
"""


@pytest.mark.slow
def test_a_backtest_compiles_nothing_after_its_system_and_the_measures(tmp_path):
    program = BACKTEST.format(tests=str(Path(__file__).parents[1]), cache=str(tmp_path))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert run.stdout.strip() == "[]", run.stderr
