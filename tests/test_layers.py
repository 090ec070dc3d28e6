"""The structure of the package: who imports whom, what the pure parts never touch, and where SQL may stand."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from evenmatch.ledger import live_schema  # noqa: F401 - its tables join the others
from evenmatch.ledger.schema import METADATA

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "evenmatch"
FILES = sorted(PACKAGE.rglob("*.py"))

# The subjects of a game's operation. Each holds its use cases and, in a module named `…_sql`, its statements.
SUBJECTS = (
    *("accounts", "corrections", "jobs", "ladders", "live", "operations", "players", "queues", "recording"),
    "webhooks",
)
# What a subject may import besides the other subjects.
OF_SUBJECTS = [
    *("calibration", "experiment", "sentences", "times"),
    *("attributes", "durations", "options", "policy", "whole_file"),
    *("errors", "match", "history", "tables", "systems", "standings", "rating", "online", "matchmaking"),
    *("compile_notice", "ledger", "match_context", "stake_assumptions", "stakes"),
    "lab",  # policies of queues are fitted by simulation
]
# Each part of the package and the parts it may import; `rating` and `online` put the pure parts together.
BELOW = {
    **{subject: [*OF_SUBJECTS, *SUBJECTS] for subject in SUBJECTS},
    "durations": [],
    "options": ["errors"],
    "whole_file": ["errors"],
    "attributes": ["errors", "options"],
    "policy": ["attributes", "errors", "options", "history"],
    "calibration": ["history", "kernel_cache"],
    "experiment": ["durations", "errors", "options"],
    "__main__": ["cli"],
    "kernel_cache": [],
    "errors": [],
    "sentences": [],
    "times": ["durations", "errors"],
    "match_context": ["errors"],
    "match": ["errors", "times", "match_context"],
    "history": ["errors", "match", "times"],
    "tables": ["whole_file", "durations", "errors", "times", "match_context", "match", "history"],
    "systems": ["errors", "options", "match", "history", "kernel_cache"],
    "standings": ["durations", "errors", "options", "match", "history", "sentences", "systems"],
    "progress": [],
    "compile_notice": ["history", "progress", "systems"],
    "rating": [
        *("errors", "match", "history", "tables", "systems", "standings", "compile_notice", "progress"),
        *("lab", "online"),  # imported when a plot or the odds are asked for
    ],
    "partitioned": [
        *("errors", "times", "history", "tables", "systems", "standings", "rating", "compile_notice", "whole_file")
    ],
    "stake_assumptions": ["errors", "options"],
    "stakes": ["errors", "history", "systems", "rating", "stake_assumptions"],
    "online": [
        *("errors", "match", "history", "systems", "rating", "compile_notice"),
        *("stake_assumptions", "stakes"),
    ],
    "matchmaking": [
        "attributes",
        "durations",
        "errors",
        "options",
        "policy",
        "history",
        "kernel_cache",
        "sentences",
    ],  # tickets carry numbers: no rating system, no standings
    "lab": [
        "calibration",
        "times",
        *("attributes", "durations", "options", "policy", "whole_file"),
        *("errors", "match", "history", "tables", "systems", "standings", "rating", "online", "matchmaking"),
        *("compile_notice", "partitioned", "progress", "__version__"),
    ],
    "ledger": [
        *("durations", "errors", "times", "match_context", "match", "history", "systems", "standings", "rating"),
        "whole_file",
    ],
    "cluster": [
        *("errors", "options", "whole_file", "tables", "systems", "rating", "partitioned", "lab", "ledger", *SUBJECTS),
        "__version__",
    ],
    "http": [
        "attributes",
        "sentences",
        "calibration",
        "durations",
        "experiment",
        "errors",
        "options",
        "policy",
        "times",
        "history",
        "match",
        "history",
        "systems",
        "standings",
        "rating",
        "matchmaking",
        "match_context",
        "stake_assumptions",
        "stakes",
        *SUBJECTS,
        "__version__",
    ],
    "web": [
        "attributes",
        "durations",
        "calibration",
        "times",
        "sentences",
        *("errors", "options", "policy", "match", "history", "tables", "systems", "standings", "rating", "matchmaking"),
        *("lab", *SUBJECTS, "http"),  # of http what answers a request: the site, who asks, the log
    ],
    "discord": ["errors"],  # a client of the API, as any other
    "demo": [
        *("durations", "whole_file", "lab"),
        *("errors", "history", "tables", "systems", "standings", "rating", "online", "matchmaking"),
        *(*SUBJECTS, "http", "web"),
    ],
    "cli": [
        *("calibration", "experiment", "sentences", "times"),
        *("attributes", "durations", "options", "policy", "whole_file"),
        *("errors", "match", "history", "tables", "systems", "standings", "rating", "online", "matchmaking"),
        *("lab", *SUBJECTS, "cluster", "http", "web", "demo", "stake_assumptions", "stakes", "kernel_cache"),
        *("partitioned", "progress", "discord", "__version__"),
    ],
}
PURE = [
    "attributes",
    "sentences",
    "durations",
    "options",
    "policy",
    "errors",
    "times",
    "match",
    "history",
    "systems",
    "standings",
    "rating",
    "stake_assumptions",
    "stakes",
    "online",
    "matchmaking",
]  # and tables, but for reading files
THIRD_PARTY = {
    "durations": [],
    "options": [],
    "attributes": [],
    "policy": [],
    "whole_file": [],
    "__main__": [],
    "errors": [],
    "sentences": [],
    "times": [],
    "match_context": [],
    "match": [],
    "history": ["numpy"],
    "calibration": ["numpy", "numba"],
    "experiment": [],
    "tables": ["numpy", "pyarrow", "fsspec"],
    "systems": ["numpy", "numba", "llvmlite"],
    "standings": ["numpy"],
    "compile_notice": ["numba"],
    "progress": [],
    "kernel_cache": ["numba"],
    "rating": ["numpy", "plotly", "pyarrow"],  # plotly: a type
    "partitioned": ["numpy", "numba", "pyarrow"],
    "stake_assumptions": [],
    "stakes": ["numpy"],
    "online": ["numpy"],
    "matchmaking": ["numpy", "numba"],
    "lab": ["numpy", "numba", "pyarrow", "optuna", "plotly", "jinja2"],
    # compilers: for their versions
    "ledger": ["numpy", "numba", "llvmlite", "sqlalchemy", "alembic", "psycopg", "cryptography", "disarm"],
    **{subject: ["numpy"] for subject in SUBJECTS},
    "accounts": ["httpx", "jwt", "sqlalchemy"],
    **{subject: ["numpy", "pyarrow"] for subject in ("corrections", "ladders", "recording")},
    "webhooks": ["httpx", "numpy", "sqlalchemy"],
    "cluster": ["llvmlite", "numba", "numpy", "ray"],  # compilers: for their versions
    "http": [
        *(
            "fastapi",
            "starlette",
            "pydantic",
            "pydantic_core",
            "pydantic_settings",
            "msgspec",
            "structlog",
            "prometheus_client",
        ),
        "numpy",  # receipts are made by column
        "uvicorn",
    ],
    "web": ["authlib", "babel", "httpx2", "jinja2", "joserfc", "markupsafe", "numpy", "resvg_py", "starlette"],
    "discord": ["aiohttp", "discord", "yarl"],  # yarl: aiohttp's addresses
    "demo": ["httpx", "numpy", "starlette"],
    "cli": ["numpy", "pyarrow", "typer", "rich"],
}
WORLD = {
    "time",
    "random",
    "secrets",
    "logging",
    "io",
    "os",
    "shutil",
    "socket",
    "sqlite3",
    "subprocess",
    "tempfile",
    "uuid",
}
WORLD_CALLS = {"open", "print", "input", "now", "utcnow", "today", "default_rng", "urandom", "getenv"}
WORLD_CALLS |= {"read_text", "write_text", "write_bytes", "unlink", "mkdir"}
# Of systems/: what a rating system may import.
SHARED = {
    *("finish_order", "growing_deviation", "ladder_records", "maths", "mean_and_deviation"),
    *("message_passing", "moves", "system", "wording"),
}
CORE = {
    "__init__",
    "compiled",
    "duel",
    "fingerprint",
    "forecasts",
    "kernel_errors",
    "loop",
    *SHARED,
}  # all that are no rating systems


def part_of(file):
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def tree_of(file):
    return ast.parse(file.read_text())


@cache
def imports_of(file):
    """Every imported module, in full: `from evenmatch import rating` is evenmatch.rating."""
    imported = set()
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are written in full"
            if node.module == "evenmatch":
                imported.update(f"evenmatch.{alias.name}" for alias in node.names)
            else:
                imported.add(node.module)
    return imported


def root_of(module):
    return module.split(".")[0]


parts = [file for file in FILES if part_of(file) != "__init__"]


def test_every_part_has_its_place():
    assert {part_of(file) for file in FILES} - {"__init__"} == set(BELOW)


def test_a_part_imports_only_what_is_below_it():
    imported = [(file, module) for file in parts for module in imports_of(file) if root_of(module) == "evenmatch"]
    assert [
        f"{file} imports {module}"
        for file, module in imported
        if module.split(".")[1] not in (part_of(file), *BELOW[part_of(file)])
    ] == []


def test_a_part_uses_no_library_but_its_own():
    foreign = {file: {root_of(module) for module in imports_of(file)} - {"evenmatch"} for file in parts}
    assert {
        file: wrong
        for file, roots in foreign.items()
        if (wrong := roots - sys.stdlib_module_names - set(THIRD_PARTY[part_of(file)]))
    } == {}


def world_of(file):
    """What a file imports or calls that belongs to the world outside: the clock, chance, logs, files."""
    calls = [node.func for node in ast.walk(tree_of(file)) if isinstance(node, ast.Call)]
    names = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
    return WORLD & {root_of(module) for module in imports_of(file)} | WORLD_CALLS & names


def test_the_pure_parts_have_no_clock_no_randomness_no_logging_and_no_files():
    pure = [file for file in parts if part_of(file) in PURE]
    assert {part_of(file) for file in pure} == set(PURE)
    assert {file: wrong for file in pure if (wrong := world_of(file))} == {}


def test_a_rating_system_imports_nothing_of_ours_but_what_systems_share():
    allowed = {f"evenmatch.systems.{name}" for name in SHARED}
    for file in (PACKAGE / "systems").glob("*.py"):
        if file.stem not in CORE:
            ours = {module for module in imports_of(file) if module.startswith("evenmatch")}
            ours = {module for module in ours if not module.startswith("evenmatch.systems.experts")}  # parts of even
            assert ours <= allowed, file


def test_queues_begin_live_matches_which_know_no_queue_service():
    queue_service = "evenmatch.queues.queue_service"
    assert (PACKAGE / "queues" / "queue_service.py").exists()
    assert [file for file in (PACKAGE / "live").glob("*.py") if queue_service in imports_of(file)] == []


def runtime_imports(file):
    """The modules of ours that a file imports when it is imported itself."""
    for node in tree_of(file).body:
        if isinstance(node, ast.ImportFrom) and root_of(node.module) == "evenmatch":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module


def module_of(file):
    named = ".".join(("evenmatch", *file.relative_to(PACKAGE).with_suffix("").parts))
    return named.removesuffix(".__init__")


MODULES = {module_of(file): file for file in FILES}


def test_no_modules_import_each_other_in_a_circle():
    graph = {module: set(runtime_imports(file)) - {module} for module, file in MODULES.items()}
    assert list(TopologicalSorter(graph).static_order())


TABLES = "|".join(METADATA.tables)
STATEMENT = re.compile(r"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH|PRAGMA)\s")
FROM_TABLE = re.compile(rf"\b(FROM|JOIN|INTO|UPDATE) ({TABLES})\b")
WRITTEN = re.compile(r"\b(?:INSERT INTO|DELETE FROM|UPDATE) (?!SET\b)(\S+)")  # not `DO UPDATE SET`
OF_STORE = {"all", "among", "run", "insert", "upsert"}
OF_CONNECTION = {"execute", "executemany", "executescript", "exec_driver_sql"}
BULK = {
    "store.py",
    "sqlite_store.py",
    "postgres_store.py",
    "table_copy.py",
    "schema.py",
    "live_schema.py",
}  # of ledger/: for any table, or its definition


def texts_of(tree):
    """Every text of the source with its line; `{}` stands for each value in an f-string."""
    formatted = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    inside = {id(part) for node in formatted for part in node.values}
    for node in formatted:
        parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
        yield node.lineno, "".join(parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value


def calls_to_a_database(tree):
    """Every call that runs a statement, with its line: of a store, of its or a database's `rows`, of a connection."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner, called = ast.unparse(node.func.value), node.func.attr
            of_store = called in OF_STORE and re.search(r"\b_?store$|^Store\(.*\)$", owner)
            of_rows = re.search(r"(\b_?(store|database|connection)|^Store\(.*\))\.rows$", owner)
            if of_store or of_rows or called in OF_CONNECTION:
                yield node.lineno, f"{owner}.{called}()"


def holds_sql(file):
    """Whether statements may stand in a file: in the ledger, and in the modules of subjects that say so by name."""
    return part_of(file) == "ledger" or (part_of(file) in SUBJECTS and file.stem.endswith("_sql"))


def test_sql_stands_only_in_the_ledger_and_in_modules_named_so():
    found = []
    for file in parts:
        if not holds_sql(file):
            texts = texts_of(tree_of(file))
            told = [(line, text) for line, text in texts if STATEMENT.match(text) or FROM_TABLE.search(text)]
            found += [(file, *place) for place in (*told, *calls_to_a_database(tree_of(file)))]
    assert not found, "\n".join(f"{file}:{line}: {what}" for file, line, what in sorted(found))


def tables_written_by(file):
    """The tables that statements of a module write, or whose definitions it names, to hand them to `insert`."""
    tree = tree_of(file)
    for _, text in texts_of(tree):
        yield from WRITTEN.findall(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("schema", "live_schema"):
            yield node.attr


def test_each_table_is_written_by_one_module_of_its_own():
    writers = defaultdict(set)
    for file in filter(holds_sql, parts):
        if "migrations" not in file.parts and file.name not in BULK:
            for table in tables_written_by(file):
                writers[table].add(str(file.relative_to(PACKAGE)))
    assert writers.keys() <= METADATA.tables.keys(), "a statement that writes names its table"
    assert {table: modules for table, modules in writers.items() if len(modules) > 1} == {}
    modules = {module for modules in writers.values() for module in modules}
    assert {module for module in modules if not module.endswith(("_rows.py", "_sql.py"))} == set()
    assert METADATA.tables.keys() == writers.keys()


@pytest.mark.parametrize("module", ["evenmatch", "evenmatch.cli"])
def test_starting_up_imports_nothing_heavy(module):
    heavy = ("numba", "pyarrow", "matplotlib", "numpy") if module == "evenmatch" else ("numba", "pyarrow", "matplotlib")
    program = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_the_help_of_all_commands_imports_nothing_heavy():
    program = "import sys; from evenmatch.cli.app import application; application(); print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"evenmatch.cli.rate", "evenmatch.cli.queue"} <= set(told.stdout.split())
    assert {"numba", "pyarrow", "matplotlib", "sqlalchemy", "fastapi", "aiohttp"}.isdisjoint(told.stdout.split())


def test_a_rating_system_is_named_nowhere_else_in_the_engine():
    """Adding a system touches one file: no list of systems is kept by hand in what loads and runs them."""
    shared = [file for part in ("tables", "systems", "standings") for file in (PACKAGE / part).glob("*.py")]
    shared += [PACKAGE / "rating.py", PACKAGE / "online.py", PACKAGE / "stakes.py"]
    names = {file.stem for file in (PACKAGE / "systems").glob("*.py")} - CORE
    assert names
    for file in shared:
        code = ast.dump(tree_of(file))
        assert [name for name in names - {file.stem} if f"'{name}'" in code] == [], file
