"""Build the wheel and the source archive into dist/, and try both: `make dist`.

Checks that the version stands in CHANGELOG.md, that the wheel holds every file of the package and nothing else, that
the source archive builds the same wheel, and that the wheel runs in an environment of its own with all extras. Lists
what that environment consists of (SBOM).
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
BIN = Path(sys.executable).parent
TRIED = ("--version", "systems", "policies", "serve --help")  # commands of the installed wheel
MODULES = ("web.app", "lab.backtests.report", "demo.demo_server")
IMPORTED = ", ".join([*(f"evenmatch.{module}" for module in MODULES), "psycopg", "matplotlib"])


def fail(line: str) -> NoReturn:
    print(f"dist: {line}", file=sys.stderr)
    sys.exit(1)


def run(*command: str | Path) -> str:
    """What a command prints; ends with its output where it fails."""
    done = subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        fail(f"{' '.join(map(str, command))} failed\n{done.stdout}{done.stderr}")
    return done.stdout


def version_of(archive: Path) -> str:
    return archive.name.removeprefix("evenmatch-").partition("-py3")[0].removesuffix(".tar.gz")


def build(source: Path, folder: Path, *targets: str) -> None:
    """Build in a source tree, by its own pyproject.toml."""
    chosen = [word for target in targets for word in ("-t", target)]
    done = subprocess.run(
        [BIN / "hatchling", "build", *chosen, "-d", folder], cwd=source, capture_output=True, text=True, check=False
    )
    if done.returncode:
        fail(f"hatchling build failed\n{done.stdout}{done.stderr}")


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


def main() -> None:
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
    for made in (wheel, archive, components):
        digest = hashlib.sha256(made.read_bytes()).hexdigest()
        print(f"{made.relative_to(ROOT)}  {made.stat().st_size / 1000:,.0f} kB  sha256 {digest}")


if __name__ == "__main__":
    main()
