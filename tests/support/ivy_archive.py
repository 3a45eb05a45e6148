"""A file of an artifact that is not a jar, from the registry that Spark's resolver uses."""

import functools
import tempfile
import zipfile
from pathlib import Path

from pyspark_jms.tools.testing.jars import ResolverSettings
from pyspark_jms.tools.testing.java import JavaMachine, spark_jars


@functools.cache
def archive(organisation, module, version, classifier=None, extension="zip"):
    """The open file MODULE-VERSION-CLASSIFIER.zip."""
    with tempfile.TemporaryDirectory() as logs:
        machine = JavaMachine([str(spark_jars() / "*")], log=Path(logs) / "ivy.log")
        try:
            with machine.killed_after(300):
                jvm = machine.connect().jvm
                parts, settings = jvm.org.apache.ivy.core.module, _settings(jvm)
                wanted = parts.id.ModuleRevisionId.newInstance(organisation, module, version)
                asking = parts.descriptor.DefaultModuleDescriptor.newDefaultInstance(
                    parts.id.ModuleRevisionId.newInstance("tests", "tests", "1")
                )
                dependency = parts.descriptor.DefaultDependencyDescriptor(asking, wanted, False, False, False)
                dependency.addDependencyConfiguration("default", "default")
                attributes = jvm.java.util.HashMap()
                if classifier:
                    attributes.put("classifier", classifier)
                artifact = parts.descriptor.DefaultDependencyArtifactDescriptor(
                    dependency, module, extension, extension, None, attributes
                )
                dependency.addDependencyArtifact("default", artifact)
                asking.addDependency(dependency)
                report = jvm.org.apache.ivy.Ivy.newInstance(settings).resolve(
                    asking, jvm.org.apache.ivy.core.resolve.ResolveOptions().setTransitive(False)
                )
                assert not report.hasError(), list(report.getAllProblemMessages())
                return zipfile.ZipFile(str(report.getAllArtifactsReports()[0].getLocalFile()))
        finally:
            machine.kill()


def _settings(jvm):
    given, option = ResolverSettings.from_environment(), jvm.scala.Option.apply
    tools = jvm.org.apache.spark.util.MavenUtils
    others = option(given.repositories), option(given.ivy)
    if given.ivy_settings:
        return tools.loadIvySettings(given.ivy_settings, *others, jvm.java.lang.System.err)
    return tools.buildIvySettings(*others, True, jvm.java.lang.System.err)
