"""deploy/kubernetes: every manifest is valid for its schema, names what exists, and its job compiles."""

import importlib
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
DRIVERS = ("StatefulSet", "Deployment")
VERSIONS = ("1.30", "1.37")
"""The oldest and the newest Kubernetes whose schemas are compared."""


def objects(*names):
    for name in names:
        yield from yaml.safe_load_all((FOLDER / name).read_text())


FILES = sorted(path.name for path in FOLDER.glob("*.yaml"))
QUERIES = [name for name in FILES if name != "base.yaml"]
OBJECTS = [(name, found) for name in FILES for found in objects(name)]


def driver(name):
    """The pod of the query's driver, and its one container."""
    (found,) = [each for each in objects(name) if each["kind"] in DRIVERS]
    return found, found["spec"]["template"]["spec"], found["spec"]["template"]["spec"]["containers"][0]


def settings(container):
    return dict(word.removeprefix("--conf=").split("=", 1) for word in container["args"] if word.startswith("--conf="))


@pytest.fixture(scope="module")
def schemas():
    """The module that compares with the schemas. Its import takes seconds."""
    return importlib.import_module("kubernetes_validate")


@pytest.mark.deep
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("file", "found"), OBJECTS, ids=[f"{file}-{each['kind']}" for file, each in OBJECTS])
def test_a_manifest_is_valid(schemas, file, found, version):
    schemas.validate(found, version, strict=True)


@pytest.mark.deep
def test_the_schema_tool_finds_a_wrong_field(schemas):
    (role, *_) = [each for each in objects("base.yaml") if each["kind"] == "Role"]
    with pytest.raises(schemas.ValidationError):
        schemas.validate(role | {"rulez": []}, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_names_what_exists(name):
    made = {(each["kind"], each["metadata"]["name"]) for each in objects("base.yaml", name)}
    deployed, pod, container = driver(name)
    assert ("ServiceAccount", pod["serviceAccountName"]) in made
    for volume in pod["volumes"]:
        if "configMap" in volume:
            assert ("ConfigMap", volume["configMap"]["name"]) in made
        if "secret" in volume:
            assert ("Secret", volume["secret"]["secretName"]) in made
    templates = deployed["spec"].get("volumeClaimTemplates", [])
    volumes = {volume["name"] for volume in pod["volumes"]} | {each["metadata"]["name"] for each in templates}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes


@pytest.mark.parametrize("name", QUERIES)
def test_executors_find_the_driver(name):
    (service,) = [each for each in objects(name) if each["kind"] == "Service"]
    deployed, _, container = driver(name)
    labels = deployed["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert deployed["spec"]["selector"]["matchLabels"] == labels
    conf = settings(container)
    meta = service["metadata"]
    assert conf["spark.driver.host"] == f"{meta['name']}.{meta['namespace']}.svc"
    ports = {str(port["port"]) for port in service["spec"]["ports"]}
    assert {conf["spark.driver.port"], conf["spark.driver.blockManager.port"]} == ports
    assert {str(port["containerPort"]) for port in container["ports"]} == ports
    assert conf["spark.kubernetes.container.image"] == container["image"]


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_has_one_driver_at_a_time_that_may_end_in_peace(name):
    deployed, pod, _ = driver(name)
    assert deployed["spec"]["replicas"] == 1
    assert deployed["kind"] == "StatefulSet" or deployed["spec"]["strategy"]["type"] == "Recreate"
    assert pod["terminationGracePeriodSeconds"] >= 60


@pytest.mark.parametrize("name", QUERIES)
def test_the_job_is_python_and_reads_variables_that_are_set(name):
    (job,) = [each for each in objects(name) if each["kind"] == "ConfigMap"]
    ((file, text),) = job["data"].items()
    compile(text, file, "exec")
    _, _, container = driver(name)
    assert container["args"][-1] == f"/opt/job/{file}"
    given = {each["name"] for each in container["env"]}
    assert {word.split('"')[1] for word in text.split("environ[")[1:]} <= given
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    (secret,) = [each["value"] for each in container["env"] if each["name"] == "JMS_PASSWORD_FILE"]
    assert Path(secret).parent == Path(mounts["jms"])


def test_the_journal_is_on_the_volume_of_the_stateful_set():
    deployed, pod, container = driver("journal.yaml")
    (claim,) = deployed["spec"]["volumeClaimTemplates"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    values = {each["name"]: each.get("value") for each in container["env"]}
    assert mounts[claim["metadata"]["name"]] == values["DATA"]
    assert deployed["spec"]["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    assert pod["securityContext"]["runAsUser"] == pod["securityContext"]["fsGroup"] == 185


def test_executors_of_a_sink_get_the_password():
    _, _, container = driver("no-volume.yaml")
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert settings(container)["spark.kubernetes.executor.secrets.jms"] == mounts["jms"]
