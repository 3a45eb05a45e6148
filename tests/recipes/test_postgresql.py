"""The PostgreSQL recipe, on Artemis and on RabbitMQ, whose rows have no delivery_id."""

import getpass
import shutil
import subprocess
import tempfile
from pathlib import Path

import pages
import psycopg
import pytest
from installed_rabbit import InstalledRabbit

from pyspark_jms.tools.testing.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROGRAMS = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"))), None)


@pytest.fixture(scope="module")
def postgresql():
    """The variables of a server of the installed PostgreSQL, with a folder and a port of its own."""
    if PROGRAMS is None:
        pytest.skip("no PostgreSQL is installed (apt-get install postgresql)")
    as_user = ["runuser", "-u", "postgres", "--"] if getpass.getuser() == "root" else []  # it refuses to run as root
    port = free_port("127.0.0.1")
    with tempfile.TemporaryDirectory() as folder:  # the folders of pytest are private to its user
        if as_user:
            shutil.chown(folder, "postgres")

        def program(name, *arguments):
            command = [*as_user, str(PROGRAMS / name), "-D", f"{folder}/data", *arguments]
            subprocess.run(command, check=True, timeout=200, stdout=subprocess.DEVNULL, cwd=folder)

        program("initdb", "-U", "orders", "-A", "trust")
        program("pg_ctl", "-w", "-l", f"{folder}/log", "-o", f"-p {port} -h 127.0.0.1 -k {folder}", "start")
        try:
            yield {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "orders", "PGPASSWORD": "unused"}
        finally:
            program("pg_ctl", "-w", "-m", "immediate", "stop")


@pytest.fixture
def database(postgresql, request):
    """An empty database."""
    name = request.node.name.replace("[", "_").strip("]")
    with psycopg.connect(host="127.0.0.1", port=postgresql["PGPORT"], user="orders", dbname="postgres") as connection:
        connection.autocommit = True
        connection.execute(f'CREATE DATABASE "{name}"')
    return postgresql | {"PGDATABASE": name}


def printed(stdout):
    return "".join(f"{line}\n" for line in stdout.splitlines() if line.startswith(("order ", "a newer")))


EXPECTED = pages.output("recipes/tables.md", "postgresql_upsert.py")


def test_on_artemis(run, database):
    assert printed(run("postgresql_upsert.py", **database)) == EXPECTED


@pytest.mark.broker
@pytest.mark.skipif(not InstalledRabbit.installed(), reason="no rabbitmq-server is installed")
def test_on_rabbitmq_where_delivery_id_is_null(run, database):
    with InstalledRabbit() as rabbit:
        login = {"JMS_BROKER_USER": rabbit.user, "JMS_BROKER_PASSWORD": rabbit.password}
        assert printed(run("postgresql_upsert.py", **database, **login, JMS_BROKER_URL=rabbit.url)) == EXPECTED
