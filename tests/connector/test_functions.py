import subprocess
import sys

from pyspark_jms import functions
from pyspark_jms.spark import functions as spark_functions


def test_the_functions_have_a_public_name():
    assert functions.__all__ == ["SELECTOR_SCHEMA", "convert", *spark_functions.__all__]
    assert all(getattr(functions, name) is getattr(spark_functions, name) for name in spark_functions.__all__)
    assert functions.convert("7", "byte", "long") == 7


def test_pyspark_comes_with_the_import_of_this_module_only():
    loaded = "print('pyspark' in sys.modules)"
    code = f"import sys, pyspark_jms; {loaded}; import pyspark_jms.functions; {loaded}"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert found.split() == ["False", "True"]
