"""The notebooks of the docs: their cells run in order, in plain Python, and are stored without output."""

import json
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
MOST_CELLS = 12


def cells_of(notebook, kind):
    return [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == kind]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_the_cells_of_a_notebook_run_in_order(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {"__name__": "__main__"}
    for number, cell in enumerate(cells_of(notebook, "code"), 1):
        exec(compile("".join(cell["source"]), f"{notebook.name}, code cell {number}", "exec"), scope)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_is_short_stored_without_output_and_linked(notebook):
    document = json.loads(notebook.read_text())
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert len(document["cells"]) <= MOST_CELLS
    assert len({cell["id"] for cell in document["cells"]}) == len(document["cells"])
    assert [(cell["outputs"], cell["execution_count"]) for cell in cells_of(notebook, "code")] == [
        ([], None) for _ in cells_of(notebook, "code")
    ]
    assert f"(notebooks/{notebook.name})" in (DOCS / "README.md").read_text()


def test_there_are_notebooks_for_the_three_tasks_of_an_analyst():
    assert [notebook.stem for notebook in NOTEBOOKS] == ["simulate-a-queue", "tune-and-report", "which-system-fits"]
