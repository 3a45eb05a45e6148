"""docker-compose.yml as a user starts it: the same file, and the same names where no registry is in reach."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import urllib.request
import uuid
from pathlib import Path
from types import SimpleNamespace

import containers
import own_process
import pytest
import spark_images
from rawstomp import RawStomp
from waiting import wait_until

from pyspark_jms.tools.testing.ports import free_port

pytestmark = [pytest.mark.container, pytest.mark.broker]

FILE = Path(__file__).parents[2] / "docker-compose.yml"
PORTS = ("STOMP_PORT", "AMQP_PORT", "CONSOLE_PORT", "SPARK_MASTER_PORT", "SPARK_JOB_PORT")
WITHOUT = "neither `docker compose` nor `docker-compose`: docker-compose.yml was not tried"


@pytest.fixture(scope="session")
def compose():
    """The command: the plugin of Docker, or the program of its own that was before it."""
    plugin = subprocess.run(["docker", "compose", "version"], capture_output=True, timeout=60, check=False)
    if plugin.returncode == 0:
        return ["docker", "compose"]
    if shutil.which("docker-compose") is None:
        (pytest.fail if os.environ.get("PYSPARK_JMS_REQUIRE_DOCKER") else pytest.skip)(WITHOUT)
    return ["docker-compose"]


class Project:
    """What one ``up`` starts, on ports of its own."""

    def __init__(self, command, profile=None):
        self.ports = {variable: free_port("127.0.0.1") for variable in PORTS}
        self.broker = SimpleNamespace(
            url=f"stomp://127.0.0.1:{self.ports['STOMP_PORT']}", user="composed", password="compose-secret"
        )
        self._name = f"pyspark-jms-{uuid.uuid4().hex[:8]}"
        self._command = [*command, "--file", str(FILE), "--project-name", self._name]
        self._command += ["--profile", profile] if profile else []

    def run(self, *arguments, seconds=200):
        own_process.run([*self._command, *arguments], seconds=seconds, env=os.environ | self._variables())

    def _variables(self):
        access = {"JMS_BROKER_USER": self.broker.user, "JMS_BROKER_PASSWORD": self.broker.password}
        ports = {variable: str(port) for variable, port in self.ports.items()}
        return {"SPARK_JMS_IMAGE": "pyspark-jms/spark:test", **access, **ports}

    def services(self, *, health):
        label = f"label=com.docker.compose.project={self._name}"
        shown = '{{.Label "com.docker.compose.service"}}'
        command = ["docker", "ps", "--filter", label, "--filter", f"health={health}", "--format", shown]
        return sorted(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split())

    def depth(self, queue):
        """The broker reports it: it ends a consumer that sends nothing for a minute."""
        command = [str(Path(sys.executable).with_name("pyspark-jms")), "check", "--broker-url", self.broker.url]
        command += ["--user", self.broker.user, "--password-env", "COMPOSED", "--queue", queue, "--json"]
        environment = os.environ | {"COMPOSED": self.broker.password}
        reason = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
        found = {finding["name"]: finding for finding in json.loads(reason.stdout)["findings"]}
        return found["queue"].get("details", {}).get("messages", 0)


@contextlib.contextmanager
def started(command, *arguments, profile=None):
    project = Project(command, profile)
    try:
        project.run("up", "--detach", *arguments, seconds=400)
        yield project
    finally:
        project.run("down", "--volumes")


def test_without_a_profile_there_is_a_healthy_artemis_and_nothing_else(compose):
    containers.image()
    with started(compose) as project:
        wait_until(lambda: project.services(health="healthy") == ["artemis"], 60, "a healthy artemis")
        assert project.services(health="none") == []
        with RawStomp(project.broker) as client:
            client.send("kept", [([], "over a restart")])
        project.run("restart", "artemis")
        wait_until(lambda: project.services(health="healthy") == ["artemis"], 60, "a healthy artemis after a restart")
        with RawStomp(project.broker) as client:
            assert [message.body for message in client.read("kept", wanted=1)] == [b"over a restart"]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_profile_spark_has_two_workers_and_a_job_that_routes_every_order(compose, report):
    containers.image()
    containers.there(spark_images.named("SPARK_IMAGE"), spark_images.build_spark)
    containers.there(spark_images.named("PYTHON_IMAGE"), spark_images.build_python)
    orders = [{"order": n, "country": "DE", "quantity": n, "price": 10.0} for n in range(2000)]
    with started(compose, profile="spark") as project:
        assert project.services(health="none") == ["spark-job", "spark-worker", "spark-worker"]
        with RawStomp(project.broker) as client:
            client.send("orders", [([("n", str(order["order"]))], json.dumps(order)) for order in orders])
        wanted = {"orders.europe": 100, "orders.review": 1900, "orders": 0}
        wait_until(lambda: {queue: project.depth(queue) for queue in wanted} == wanted, 300, "every order in its queue")
        with urllib.request.urlopen(f"http://127.0.0.1:{project.ports['SPARK_MASTER_PORT']}/json/") as page:
            assert json.load(page)["aliveworkers"] == 2
        project.run("stop", "spark-job")
        with RawStomp(project.broker) as client:
            routed = [*client.read("orders.europe"), *client.read("orders.review")]
            assert client.read("orders") == []
        assert sorted(int(message.headers["n"]) for message in routed) == list(range(2000))
    report("docker-compose.yml, profile spark: 2000 orders through a job on two workers, 0 lost, 0 twice")
