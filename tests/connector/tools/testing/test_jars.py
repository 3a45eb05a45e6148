"""Ivy is real here; what it resolves from is a repository of two tiny jars in a temporary folder."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.tools.testing.jars import (
    ARTEMIS_PACKAGES,
    ARTEMIS_VERSION,
    ResolverSettings,
    cache_directory,
    resolve,
)
from pyspark_jms.tools.testing.ports import free_port

_THING = ("org.example:thing:1.0",)


def _publish(root, name, version, depends_on=""):
    folder = root / "org/example" / name / version
    folder.mkdir(parents=True)
    (folder / f"{name}-{version}.pom").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId>"
        f"<artifactId>{name}</artifactId><version>{version}</version>{depends_on}</project>"
    )
    with zipfile.ZipFile(folder / f"{name}-{version}.jar", "w") as jar:
        jar.writestr("hello.txt", name)


def _ivy_settings(folder, root):
    path = folder / "ivysettings.xml"
    path.write_text(
        '<ivysettings><settings defaultResolver="only"/>'
        f'<resolvers><ibiblio name="only" m2compatible="true" root="{root}"/></resolvers></ivysettings>'
    )
    return str(path)


@pytest.fixture
def repository(tmp_path):
    """Settings that know one repository, which holds ``thing`` and what it depends on."""
    root = tmp_path / "repository"
    other = "<groupId>org.example</groupId><artifactId>other</artifactId><version>2.0</version>"
    _publish(root, "other", "2.0")
    _publish(root, "thing", "1.0", f"<dependencies><dependency>{other}</dependency></dependencies>")
    return ResolverSettings(ivy=str(tmp_path / "ivy"), ivy_settings=_ivy_settings(tmp_path, root.as_uri() + "/"))


def test_jars_are_resolved_with_dependencies_and_cached(repository, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    jars = resolve(_THING, repository, cache)
    assert sorted(Path(jar).name for jar in jars) == ["org.example_other-2.0.jar", "org.example_thing-1.0.jar"]
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert resolve(_THING, repository, cache) == jars, "cached jars need no Java"
    Path(jars[0]).unlink()
    with pytest.raises(EmbeddedBrokerError, match=r"\[JMS_EMBEDDED_BROKER\].* PATH"):
        resolve(_THING, repository, cache)


@pytest.mark.deep
def test_settings_are_read_from_spark_defaults(repository, tmp_path, monkeypatch):
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(
        f"spark.jars.ivy {repository.ivy}\nspark.jars.ivySettings  {repository.ivy_settings}\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(conf))
    assert len(resolve(_THING, ResolverSettings(), tmp_path / "cache")) == 2


def test_settings_are_read_from_the_environment(monkeypatch):
    monkeypatch.setenv("PYSPARK_JMS_IVY", "a")
    monkeypatch.setenv("PYSPARK_JMS_IVY_SETTINGS", "b")
    monkeypatch.setenv("PYSPARK_JMS_REPOSITORIES", "c")
    expected = ResolverSettings(ivy="a", ivy_settings="b", repositories="c")
    assert ResolverSettings.from_environment() == expected


@pytest.mark.deep
def test_concurrent_first_starts_resolve_once(repository, tmp_path):
    program = (
        "import pathlib, sys\n"
        "from pyspark_jms.tools.testing import jars\n"
        "run_ivy = jars._run_ivy\n"
        "def counting(*arguments):\n"
        "    print('asked', flush=True)\n"
        "    return run_ivy(*arguments)\n"
        "jars._run_ivy = counting\n"
        f"settings = jars.{repository!r}\n"
        f"print(len(jars.resolve({_THING!r}, settings, pathlib.Path({str(tmp_path / 'cache')!r}))))\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    text = sorted(process.communicate(timeout=60)[0].split() for process in both)
    assert text == [["2"], ["asked", "2"]]


@pytest.mark.deep
def test_an_unreachable_registry_is_an_error_with_its_remedy(tmp_path):
    dead = f"http://localhost:{free_port('127.0.0.1')}/"
    settings = ResolverSettings(ivy=str(tmp_path / "ivy"), ivy_settings=_ivy_settings(tmp_path, dead))
    with pytest.raises(EmbeddedBrokerError) as caught:
        resolve(_THING, settings, tmp_path / "cache")
    text = str(caught.value)
    assert text.startswith("[JMS_EMBEDDED_BROKER]")
    assert "org.example#thing;1.0" in text
    assert "PYSPARK_JMS_IVY_SETTINGS" in text
    assert not list((tmp_path / "cache").glob("*.classpath"))


def test_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "pyspark-jms"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert cache_directory() == Path("/home/somebody/.cache/pyspark-jms")


@pytest.mark.broker
def test_the_brokers_jars_are_of_one_version():
    artemis = [Path(jar).name for jar in resolve(ARTEMIS_PACKAGES) if "org.apache.artemis" in jar]
    assert any("stomp-protocol" in name for name in artemis)
    assert all(ARTEMIS_VERSION in name for name in artemis if "artemis-" in name)


def test_container_and_embedded_broker_are_the_same_version():
    compose = Path(__file__).parents[4] / "docker-compose.yml"
    assert f"/artemis:{ARTEMIS_VERSION}-" in compose.read_text()
