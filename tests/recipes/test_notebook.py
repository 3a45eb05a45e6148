"""docs/recipes/notebook.ipynb, executed by Jupyter's own client in a kernel of its own."""

import os
import sys
from pathlib import Path

import nbformat
import pages
import pytest
from nbclient import NotebookClient

NOTEBOOK = pages.FOLDER / "notebook.ipynb"
CELLS = [cell.strip("\n") for cell in Path(__file__).with_name("notebook.py").read_text().split("# %%\n") if cell]


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(notebook):
    """The lines that the cells print, without the table of ``show``."""
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs if output.output_type == "stream"]
    lines = "".join(output.text for output in outputs if output.name == "stdout").splitlines()
    return "".join(f"{line}\n" for line in lines if line and line[0] not in "+|" and not line.startswith("Setting"))


def test_the_page_and_the_notebook_have_the_same_cells():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert [cell.source for cell in code_cells(notebook)] == CELLS
    assert printed(notebook) == pages.output("interactive.md", "notebook"), "the outputs that the file keeps"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.filterwarnings("ignore")  # of Jupyter's own packages
def test_the_notebook_runs(tmp_path, monkeypatch):
    monkeypatch.setitem(os.environ, "PYSPARK_PYTHON", sys.executable)
    monkeypatch.setitem(os.environ, "PYTHONWARNINGS", "ignore")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in code_cells(notebook):
        cell.outputs = []
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=250, kernel_name="python3", resources=resources).execute()
    assert printed(notebook) == pages.output("interactive.md", "notebook")
