import subprocess
import sys

from pyspark_jms import monitoring
from pyspark_jms.spark import metrics, prometheus


def test_the_names_are_public():
    assert monitoring.JmsListener is metrics.JmsListener
    assert monitoring.PrometheusExporter is prometheus.PrometheusExporter
    assert (monitoring.metrics_of, monitoring.SourceMetrics) == (metrics.metrics_of, metrics.SourceMetrics)
    assert all(hasattr(monitoring, name) for name in monitoring.__all__)


def test_prometheus_client_is_imported_by_an_exporter_only():
    code = "import sys, pyspark_jms.monitoring; print('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "False\n"
