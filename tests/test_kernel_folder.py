"""Kernels that came with the installation reach the cache of a process."""

import os

from evenmatch.kernel_folder import copy_installed_kernels


def write(path, text, time):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (time, time))


def test_missing_and_outdated_kernels_are_copied_into_the_cache(tmp_path, monkeypatch):
    installed, cache = tmp_path / "installed", tmp_path / "cache"
    monkeypatch.setenv("EVENMATCH_KERNELS", str(installed))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    write(installed / "systems" / "loop.nbi", "index", 2000)
    write(installed / "systems" / "loop.1.nbc", "code", 2000)
    write(installed / "systems" / "other.nbi", "of the installation", 2000)
    write(cache / "systems" / "loop.nbi", "older index", 1000)
    write(cache / "systems" / "other.nbi", "extended since", 3000)
    assert copy_installed_kernels() == 2
    found = {file.name: file.read_text() for file in (cache / "systems").iterdir()}
    assert found == {"loop.nbi": "index", "loop.1.nbc": "code", "other.nbi": "extended since"}
    assert copy_installed_kernels() == 0


def test_without_an_installed_folder_nothing_is_copied(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("EVENMATCH_KERNELS", str(tmp_path / "missing"))
    assert copy_installed_kernels() == 0
    monkeypatch.delenv("EVENMATCH_KERNELS")
    assert copy_installed_kernels() == 0
    assert list(tmp_path.iterdir()) == []
