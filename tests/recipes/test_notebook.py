"""docs/recipes/notebook.ipynb, executed by Jupyter's own client in a kernel of its own."""

import json
import os
import sys
from pathlib import Path

import pages
import pytest

NOTEBOOK = pages.FOLDER / "recipes/notebook.ipynb"
CELLS = [cell.strip("\n") for cell in Path(__file__).with_name("notebook.py").read_text().split("# %%\n") if cell]


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def printed(notebook):
    """The lines that the cells print, without the table of ``show``."""
    outputs = [output for cell in code_cells(notebook) for output in cell["outputs"]]
    texts = [output["text"] for output in outputs if output["output_type"] == "stream" and output["name"] == "stdout"]
    lines = "".join(line for text in texts for line in text).splitlines()
    return "".join(f"{line}\n" for line in lines if line and line[0] not in "+|" and not line.startswith("Setting"))


def test_the_page_and_the_notebook_have_the_same_cells():
    notebook = json.loads(NOTEBOOK.read_text())
    assert ["".join(cell["source"]) for cell in code_cells(notebook)] == CELLS
    assert printed(notebook) == pages.output("batch-and-sql.md", "notebook"), "the outputs that the file keeps"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.filterwarnings("ignore")  # of Jupyter's own packages
def test_the_notebook_runs(tmp_path, monkeypatch):
    # Jupyter's packages take seconds to import, which every process of a run would spend.
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setitem(os.environ, "PYSPARK_PYTHON", sys.executable)
    monkeypatch.setitem(os.environ, "PYTHONWARNINGS", "ignore")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    for cell in code_cells(notebook):
        cell.outputs = []
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=250, kernel_name="python3", resources=resources).execute()
    assert printed(notebook) == pages.output("batch-and-sql.md", "notebook")
