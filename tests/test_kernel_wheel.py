"""A wheel with compiled kernels, installed into a fresh environment: the first rating compiles nothing."""

import os
import pickle
import subprocess
import sys
import sysconfig

import pytest

import dist

SYSTEM = "planeswalker"  # compiles fastest
SEASON = "match_id,played_at,team,player,place\n" + "".join(
    f"{match},2026-01-{1 + match % 28:02}T20:00:00Z,{place},{player},{place}\n"
    for match in range(30)
    for player, place in ((f"p{match % 5}", 1), (f"p{(match + 1 + match % 3) % 5}", 2))
)


def environment(folder, wheel):
    """A fresh environment with a wheel, which finds what evenmatch needs where this process finds it."""
    dist.run(sys.executable, "-m", "venv", "--without-pip", folder)
    site = next((folder / "lib").glob("python*")) / "site-packages"
    (site / "needed.pth").write_text(sysconfig.get_path("purelib"))
    python = folder / "bin" / "python"
    dist.run(
        dist.BIN / "uv",
        "pip",
        "install",
        "--quiet",
        "--offline",
        "--no-deps",
        "--link-mode=copy",
        "--python",
        python,
        wheel,
    )
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel with the kernels of one system."""
    folder = tmp_path_factory.mktemp("wheels")
    dist.build(dist.ROOT, folder, "wheel")
    (plain,) = folder.glob("*.whl")
    return dist.build_with_kernels(environment(folder / "venv", plain), folder, SYSTEM)


@pytest.fixture
def rate(wheel, tmp_path):
    """Runs `evenmatch rate`, or another command, with that wheel; returns its notices and the machine code saved."""
    venv, cache = environment(tmp_path / "venv", wheel), tmp_path / "cache"
    (tmp_path / "season.csv").write_text(SEASON)
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NUMBA_CPU_NAME")}

    def run(*arguments):
        command = [venv / "bin" / "evenmatch", *(arguments or ("rate", tmp_path / "season.csv", "--system", SYSTEM))]
        env = {**variables, "NUMBA_CACHE_DIR": str(cache)}
        told = subprocess.run(command, capture_output=True, text=True, check=False, env=env, cwd=tmp_path)
        assert ("compiled 1 part" if arguments else "p1") in told.stdout, told.stderr
        return told.stderr, list(cache.rglob("*.nbc"))

    run.installed = next((venv / "lib").glob("python*")) / "site-packages" / "evenmatch"
    return run


@pytest.mark.slow
def test_the_first_rating_of_an_installation_compiles_nothing(rate, wheel):
    assert f"-cp{sys.version_info.major}{sys.version_info.minor}-" in wheel.name
    assert rate() == ("", [])


@pytest.mark.slow
def test_kernels_of_another_numba_are_compiled_again_and_the_notice_names_both_versions(rate):
    for index in rate.installed.rglob("*.nbi"):
        with index.open("rb") as file:
            pickle.load(file)
            rest = file.read()
        index.write_bytes(pickle.dumps("0.61.2") + rest)  # its first value is the version that compiled it
    said, saved = rate()
    assert "for numba 0.61.2, not " in said
    assert SYSTEM in said
    assert saved
    said, _ = rate()
    assert said == ""


@pytest.mark.slow
def test_kernels_of_an_edited_source_are_compiled_again(rate):
    source = rate.installed / "systems" / "loop.py"
    source.write_text(source.read_text() + "\n# edited\n")
    said, saved = rate()
    assert said == f"evenmatch: compiling {SYSTEM}, once per installation\n"
    assert saved


@pytest.mark.slow
def test_the_command_compile_adds_machine_code_for_this_processor(rate):
    _, saved = rate("compile", SYSTEM)
    assert saved
    assert rate("compile", SYSTEM) == ("", saved)
