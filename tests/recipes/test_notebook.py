"""docs/recipes/notebook.ipynb, executed by Jupyter's own client in a kernel of its own."""

import base64
import json
import os
import sys
from pathlib import Path

import pages
import pytest

PAGE = "batch-and-sql.md"
NOTEBOOK = pages.FOLDER / "recipes/notebook.ipynb"
CELLS = [cell.strip("\n") for cell in Path(__file__).with_name("notebook.py").read_text().split("# %%\n") if cell]


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def outputs(notebook):
    return [output for cell in code_cells(notebook) for output in cell["outputs"]]


def printed(notebook):
    """The lines that the cells print."""
    streams = [output for output in outputs(notebook) if output.get("name") == "stdout"]
    return "".join(line for output in streams for line in output["text"])


def shown(notebook, kind):
    """What the cells show beside text: tables of HTML, a picture."""
    return [output["data"][kind] for output in outputs(notebook) if kind in output.get("data", {})]


def test_the_page_and_the_notebook_have_the_same_cells():
    notebook = json.loads(NOTEBOOK.read_text())
    assert ["".join(cell["source"]) for cell in code_cells(notebook)] == CELLS
    assert printed(notebook) == pages.output(PAGE, "notebook"), "the outputs that the file keeps"
    assert [base64.b64decode(picture) for picture in shown(notebook, "image/png")] == [
        NOTEBOOK.with_suffix(".png").read_bytes()
    ]


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
    assert printed(notebook) == pages.output(PAGE, "notebook")
    tables = ["".join(table) for table in shown(notebook, "text/html")]
    expected = ["<th>JMSTimestamp</th>", "<td>1667</td>", "orders: 5,000 messages", "<th>properties.region</th>"]
    assert [text for text, table in zip(expected, tables, strict=True) if text not in table] == []
    assert len(shown(notebook, "image/png")) == 1
