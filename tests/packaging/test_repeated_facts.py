"""Facts that pyproject.toml, jobs/Dockerfile and docker-compose.yml repeat: each has the same value."""

import re
import tomllib
from pathlib import Path

import pytest

from pyspark_jms.tools.testing.jars import CLASSIC_VERSION

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "jobs/Dockerfile").read_text()
COMPOSE = (ROOT / "docker-compose.yml").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_image_installs_every_dependency_but_the_spark_it_has():
    (line,) = re.findall(r"^RUN python3 -m pip install --no-cache-dir ('.*)$", DOCKERFILE, re.MULTILINE)
    assert re.findall(r"'(.*?)'", line) == [one for one in PROJECT["dependencies"] if not one.startswith("pyspark")]


@pytest.mark.parametrize("argument", ["SPARK_IMAGE", "PYTHON_IMAGE"])
def test_compose_and_the_dockerfile_start_from_the_same_images(argument):
    (image,) = re.findall(rf"^ARG {argument}=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert f"${{{argument}:-{image}}}" in COMPOSE


def test_the_classic_in_a_container_is_the_embedded_one():
    assert f"apache/activemq-classic:{CLASSIC_VERSION}" in COMPOSE


def test_every_port_is_this_machines_only():
    ports = re.findall(r'^ +- "(.*:\d+)"$', COMPOSE, re.MULTILINE)
    assert len(ports) == 8
    assert all(port.startswith("127.0.0.1:${") for port in ports)


def test_the_python_of_the_image_is_one_that_the_project_names():
    (version,) = re.findall(r"PYTHON_IMAGE=python:(\d+\.\d+)-", DOCKERFILE)
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]
