"""Build the wheel and the source archive into dist/, and try both: `make dist`.

Checks that the version stands in CHANGELOG.md, that the wheel holds every file of the package and nothing else, that
the source archive builds the same wheel, and that the wheel runs in an environment of its own with all extras. Lists
what that environment consists of (SBOM). `make dist ARGS=kernels` also builds a wheel with compiled kernels for this
version of Python and this platform.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

from kernel_wheel import KERNELS

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
BIN = Path(sys.executable).parent
TRIED = ("--version", "systems", "policies", "serve --help")  # commands of the installed wheel
MODULES = ("web.app", "lab.backtests.report", "demo.demo_server")
IMPORTED = ", ".join([*(f"evenmatch.{module}" for module in MODULES), "psycopg"])


def fail(line: str) -> NoReturn:
    print(f"dist: {line}", file=sys.stderr)
    sys.exit(1)


def run(*command: str | Path, folder: Path = ROOT, variables: Mapping[str, str] = MappingProxyType({})) -> str:
    """What a command prints; ends with its output where it fails."""
    env = {**os.environ, **variables}
    done = subprocess.run([*map(str, command)], cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        fail(f"{' '.join(map(str, command))} failed\n{done.stdout}{done.stderr}")
    return done.stdout


def version_of(archive: Path) -> str:
    return archive.name.removeprefix("evenmatch-").partition("-py3")[0].removesuffix(".tar.gz")


def build(source: Path, folder: Path, *targets: str, variables: Mapping[str, str] = MappingProxyType({})) -> None:
    """Build in a source tree, by its own pyproject.toml."""
    chosen = [word for target in targets for word in ("-t", target)]
    run(BIN / "hatchling", "build", *chosen, "-d", folder, folder=source, variables=variables)


def build_with_kernels(venv: Path, folder: Path, *parts: str) -> Path:
    """Compile the kernels of an installed evenmatch for every processor of the architecture, and build their wheel.

    parts  as for `evenmatch compile`; none: everything
    """
    python, generic = venv / "bin" / "python", {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": ""}
    run(venv / "bin" / "evenmatch", "compile", *parts, folder=venv, variables=generic)
    package = run(python, "-c", "import evenmatch; print(*evenmatch.__path__)", folder=venv).strip()
    build(ROOT, folder, "wheel", variables={"HATCH_BUILD_HOOK_ENABLE_CUSTOM": "true", KERNELS: package})
    return next(wheel for wheel in folder.glob("*.whl") if not wheel.name.endswith("-any.whl"))


def contents(wheel: Path) -> dict[str, str]:
    """The digest of each file of a wheel, without the list of files, which holds dates of nothing."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def check_files(wheel: Path) -> None:
    """The wheel holds what git tracks of the package, and its own metadata."""
    tracked = {line.removeprefix("src/") for line in run("git", "ls-files", "src/evenmatch").splitlines()}
    packed = {name for name in contents(wheel) if ".dist-info/" not in name}
    if tracked != packed:
        fail(f"{wheel.name} lacks {sorted(tracked - packed)} and should not have {sorted(packed - tracked)}")


def check_source(archive: Path, wheel: Path, folder: Path) -> None:
    """The source archive builds a wheel of the same contents."""
    shutil.unpack_archive(archive, folder / "source", filter="data")
    build(next((folder / "source").iterdir()), folder / "again", "wheel")
    if contents(next((folder / "again").iterdir())) != contents(wheel):
        fail(f"{archive.name} builds another wheel than {wheel.name}")


def check_installed(wheel: Path, folder: Path) -> None:
    """The wheel is installed with all extras, at the locked versions, and begins to run."""
    python = folder / "venv" / "bin" / "python"
    run(BIN / "uv", "venv", "--quiet", "--python", sys.executable, folder / "venv")
    install = (BIN / "uv", "pip", "install", "--quiet", "--python", python)
    run(*install, "--require-hashes", "-r", "requirements/run.txt")
    run(*install, "--no-deps", wheel)
    run(python, "-c", f"import {IMPORTED}")
    for command in TRIED:
        run(python.parent / "evenmatch", *command.split())


def write_components(wheel: Path, folder: Path) -> Path:
    """List what the installed wheel consists of, with versions and licences (SBOM, CycloneDX)."""
    listing = DIST / f"evenmatch-{version_of(wheel)}.cdx.json"
    run(BIN / "uv", "venv", "--quiet", "--python", sys.executable, folder / "tools")
    install = (BIN / "uv", "pip", "install", "--quiet", "--python", folder / "tools" / "bin" / "python")
    run(*install, "--require-hashes", "-r", "requirements/sbom.txt")
    run(
        *(folder / "tools" / "bin" / "cyclonedx-py", "environment", folder / "venv"),
        *("--output-reproducible", "--of", "JSON", "-o", listing),
    )
    return listing


def main(*options: str) -> None:
    if unknown := set(options) - {"kernels"}:
        fail(f"unknown argument {min(unknown)}; expected 'kernels' or nothing")
    shutil.rmtree(DIST, ignore_errors=True)
    build(ROOT, DIST, "wheel", "sdist")
    (wheel,), (archive,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    version = version_of(wheel)
    if not re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE):
        fail(f"CHANGELOG.md has no heading '## {version}'; say there what changed")
    check_files(wheel)
    with tempfile.TemporaryDirectory(prefix="evenmatch-dist-") as folder:
        check_source(archive, wheel, Path(folder))
        check_installed(wheel, Path(folder))
        components = write_components(wheel, Path(folder))
        compiled = [build_with_kernels(Path(folder) / "venv", DIST)] if options else []
    for made in (wheel, *compiled, archive, components):
        digest = hashlib.sha256(made.read_bytes()).hexdigest()
        print(f"{made.relative_to(ROOT)}  {made.stat().st_size / 1000:,.0f} kB  sha256 {digest}")


if __name__ == "__main__":
    main(*sys.argv[1:])
