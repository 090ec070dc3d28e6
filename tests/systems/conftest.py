"""Tests of numbers run twice: for the package's systems, and for their slow twins in plain Python."""

import importlib

import pytest

from package_systems import Fast


@pytest.fixture(params=["package", "twin"])
def implementation(request, monkeypatch):
    """Put the package's systems, then their twins, into the test module under each of its NAMES."""
    for name in request.module.NAMES:
        chosen = Fast(name) if request.param == "package" else importlib.import_module(f"reference.{name}")
        monkeypatch.setattr(request.module, name, chosen)
    return request.param
