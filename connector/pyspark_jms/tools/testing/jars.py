"""Downloads the broker's jars with the resolver that Spark uses for ``spark.jars.packages``.

The resolver uses the same settings as Spark. The class path is cached, so only the first start on a machine needs a
registry.
"""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from py4j.protocol import Py4JError, Py4JJavaError

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.tools.testing.java import JavaMachine, spark_jars, tail

__all__ = [
    "ARTEMIS_PACKAGES",
    "ARTEMIS_VERSION",
    "CLASSIC_PACKAGES",
    "CLASSIC_VERSION",
    "QPID_PACKAGES",
    "QPID_VERSION",
    "ResolverSettings",
    "cache_directory",
    "resolve",
]

ARTEMIS_VERSION = "2.55.0"
"""The newest version whose server, protocol and client jars are all published."""

CLASSIC_VERSION = "6.3.1"

QPID_VERSION = "2.7.0"
"""Of Qpid JMS, the Java client that speaks AMQP 1.0."""

ARTEMIS_PACKAGES = (
    f"org.apache.artemis:artemis-server:{ARTEMIS_VERSION}",
    f"org.apache.artemis:artemis-stomp-protocol:{ARTEMIS_VERSION}",
    f"org.apache.artemis:artemis-amqp-protocol:{ARTEMIS_VERSION}",
    f"org.apache.artemis:artemis-jakarta-client:{ARTEMIS_VERSION}",
    "jakarta.jms:jakarta.jms-api:3.1.0",  # Ivy alone selects 2.0.3, which lacks classes of the client
    "org.slf4j:slf4j-jdk14:2.0.17",
)

# Ivy omits some of these; xstream and jettison are for the STOMP transformations of map messages.
CLASSIC_PACKAGES = (
    *(
        f"org.apache.activemq:activemq-{module}:{CLASSIC_VERSION}"
        for module in ("broker", "client", "jaas", "stomp", "amqp", "kahadb-store")
    ),
    "jakarta.jms:jakarta.jms-api:3.1.0",
    "com.thoughtworks.xstream:xstream:1.4.21",
    "org.codehaus.jettison:jettison:1.5.4",
    "org.slf4j:slf4j-jdk14:2.0.17",
)

QPID_PACKAGES = (
    f"org.apache.qpid:qpid-jms-client:{QPID_VERSION}",
    "jakarta.jms:jakarta.jms-api:3.1.0",
    "org.slf4j:slf4j-jdk14:2.0.17",
)

_RESOLVE_SECONDS = 600
"""A download of 49 jars took 25 s. A slow connection may need minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolverSettings:
    """Three settings of Spark. An environment variable overrides ``spark-defaults.conf``; None is Spark's default."""

    ivy: str | None = None
    """``spark.jars.ivy``, PYSPARK_JMS_IVY: the folder for the jars."""

    ivy_settings: str | None = None
    """``spark.jars.ivySettings``, PYSPARK_JMS_IVY_SETTINGS: an Ivy settings file."""

    repositories: str | None = None
    """``spark.jars.repositories``, PYSPARK_JMS_REPOSITORIES: more repositories, comma-separated."""

    @classmethod
    def from_environment(cls) -> "ResolverSettings":
        get = os.environ.get
        return cls(
            ivy=get("PYSPARK_JMS_IVY"),
            ivy_settings=get("PYSPARK_JMS_IVY_SETTINGS"),
            repositories=get("PYSPARK_JMS_REPOSITORIES"),
        )


class _Packages(NamedTuple):
    names: tuple[str, ...]
    exclusions: tuple[str, ...]


def cache_directory() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyspark-jms"


def resolve(
    packages: tuple[str, ...],
    settings: ResolverSettings | None = None,
    cache: Path | None = None,
    exclusions: tuple[str, ...] = (),
) -> list[str]:
    """Return the jars of ``packages`` and their dependencies. Run Ivy only if they are not in ``cache``.

    Without ``settings`` those of the environment count, without ``cache`` it is that of the user.
    """
    settings, cache = settings or ResolverSettings.from_environment(), cache or cache_directory()
    wanted = _Packages(packages, exclusions)
    digest = hashlib.sha256(repr((wanted, settings)).encode()).hexdigest()[:16]
    listing = cache / f"{digest}.classpath"
    if jars := _read_cached(listing):
        return jars
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / "resolve.lock"):
        if jars := _read_cached(listing):  # another process has resolved them meanwhile
            return jars
        jars = _run_ivy(wanted, settings, cache / "resolve.log")
        unfinished = listing.with_suffix(".tmp")
        unfinished.write_text("\n".join(jars))
        unfinished.replace(listing)
    return jars


def _read_cached(listing: Path) -> list[str]:
    try:
        jars = listing.read_text().splitlines()
    except FileNotFoundError:
        return []
    return jars if all(Path(jar).exists() for jar in jars) else []


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock, because Ivy's cache does not support concurrent resolvers."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run_ivy(wanted: _Packages, settings: ResolverSettings, log: Path) -> list[str]:
    log.unlink(missing_ok=True)
    machine = JavaMachine([str(spark_jars() / "*")], log=log)
    try:
        with machine.killed_after(_RESOLVE_SECONDS):
            return _resolve_in(machine.connect().jvm, wanted, settings)
    except Py4JError as error:
        cause = (
            error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else "the Java virtual machine ended"
        )
        raise EmbeddedBrokerError(
            f"The broker's jars could not be downloaded: {cause}.",
            "The first start needs a package registry. Check network and proxy, or set another registry with "
            f"PYSPARK_JMS_IVY_SETTINGS or PYSPARK_JMS_REPOSITORIES. {tail(log)}",
        ) from None
    finally:
        machine.kill()


def _resolve_in(jvm: Any, wanted: _Packages, settings: ResolverSettings) -> list[str]:
    defaults = _spark_defaults(jvm)
    ivy_settings = settings.ivy_settings or defaults.getProperty("spark.jars.ivySettings")
    paths = jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies(
        True,  # with dependencies  # noqa: FBT003
        ",".join(wanted.exclusions),
        ",".join(wanted.names),
        settings.repositories or defaults.getProperty("spark.jars.repositories"),
        settings.ivy or defaults.getProperty("spark.jars.ivy"),
        jvm.scala.Option.apply(ivy_settings),
    )
    return str(paths.mkString("\n")).splitlines()


def _spark_defaults(jvm: Any) -> Any:
    """Read ``spark-defaults.conf``, which is a Java properties file."""
    properties = jvm.java.util.Properties()
    conf = os.environ.get("SPARK_CONF_DIR") or Path(os.environ.get("SPARK_HOME", "")) / "conf"
    path = Path(conf) / "spark-defaults.conf"
    if path.is_file():
        reader = jvm.java.io.FileReader(str(path))
        properties.load(reader)
        reader.close()
    return properties
