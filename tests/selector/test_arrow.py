import subprocess
import sys

import pyarrow as pa

from jms_selector import arrow


def test_the_arrow_target_has_a_public_name():
    batch = pa.RecordBatch.from_pydict({"weight": pa.array([1, 3000, None])})
    assert arrow.exact("weight > 2500", batch).to_pylist() == [False, True, None]


def test_only_the_import_of_this_module_imports_pyarrow():
    loaded = "print('pyarrow' in sys.modules)"
    code = f"import sys, jms_selector; {loaded}; import jms_selector.arrow; {loaded}"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert found.split() == ["False", "True"]
