"""A container image of Artemis, made of what the machine has: its Java, its bash, and the jars of the embedded broker.

For machines that reach no image registry. It answers to the official image's name, variables, ports and volume
(https://github.com/apache/artemis-images), so docker-compose.yml and the tests take either; it has no console.

    python tests/support/artemis_image.py [NAME]
"""

import contextlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyspark_jms.testing.config import Acceptor, AddressSettings, User, broker_xml
from pyspark_jms.testing.jars import ARTEMIS_VERSION, broker_classpath

NAME = f"apache/artemis:{ARTEMIS_VERSION}-alpine"
"""The one docker-compose.yml names."""

INSTANCE = "/var/lib/artemis-instance"
PROGRAMS = ("bash", "mkdir", "cat", "sleep", "id", "ls")

# What the official image does too: the variables count at the first start, when the instance is made.
ENTRY = f"""#!/bin/bash
set -eu
if [ ! -e {INSTANCE}/etc/broker.xml ]; then
  mkdir -p {INSTANCE}/etc
  cat /opt/artemis/broker.xml > {INSTANCE}/etc/broker.xml
  echo "$ARTEMIS_USER = $ARTEMIS_PASSWORD" > {INSTANCE}/etc/users.properties
  echo "amq = $ARTEMIS_USER" > {INSTANCE}/etc/roles.properties
fi
[ ! -e {INSTANCE}/etc-override/broker.xml ] || cat {INSTANCE}/etc-override/broker.xml > {INSTANCE}/etc/broker.xml
cat {INSTANCE}/etc/broker.xml > {INSTANCE}/broker.xml
exec /opt/java/bin/java -Xmx512m -XX:+UseSerialGC -cp '/opt/artemis/lib/*' \\
  -Djava.util.logging.config.file=/opt/artemis/logging.properties \\
  -Djava.security.auth.login.config=/opt/artemis/login.config ${{EXTRA_ARGS:-}} \\
  org.apache.activemq.artemis.core.server.embedded.Main {INSTANCE}
"""

LOGIN = f"""activemq {{
  org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule required
    baseDir="{INSTANCE}/etc"
    org.apache.activemq.jaas.properties.user="users.properties"
    org.apache.activemq.jaas.properties.role="roles.properties";
}};
"""

LOGGING = """handlers=java.util.logging.ConsoleHandler
.level=WARNING
org.apache.activemq.artemis.core.server.level=INFO
java.util.logging.ConsoleHandler.level=ALL
java.util.logging.SimpleFormatter.format=%1$tF %1$tT.%1$tL %4$s [%3$s] %5$s%6$s%n
"""


def build(name: str = NAME) -> None:
    """Import the root file system as image ``name``. About 15 s."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        _lay_out(root)
        _import(root, name)


def configuration(data: Path) -> str:
    """broker.xml of a broker that keeps its messages in ``data``."""
    domain = {"securityDomain": "activemq"}  # the entry of login.config
    stomp = Acceptor(name="stomp", host="0.0.0.0", port=61613, options={"protocols": "STOMP", **domain})
    core = Acceptor(name="artemis", host="0.0.0.0", port=61616, options={"protocols": "CORE", **domain})
    settings = AddressSettings(match="#", dead_letter_address="DLQ", expiry_address="ExpiryQueue")
    return broker_xml(data, [core, stomp], [User("amq", "")], [settings])


def present(name: str = NAME) -> bool:
    return subprocess.run(["docker", "image", "inspect", name], capture_output=True, check=False).returncode == 0


def _lay_out(root: Path) -> None:
    java = _java(root / "opt/java")
    binaries = [*_programs(root / "bin"), *java]
    for library in _libraries(binaries):
        target = root / library.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library.resolve(), target)
    (root / "usr").mkdir()
    (root / "usr/bin").symlink_to("../bin")
    for empty in ("tmp", "proc", "dev", "root", INSTANCE[1:]):
        (root / empty).mkdir(parents=True)
    _etc(root / "etc")
    _artemis(root / "opt/artemis")


def _java(target: Path) -> list[Path]:
    """A runtime of the modules that a broker needs; the whole one where the machine has no jlink."""
    home = Path(_output("java", "-XshowSettings:properties", "-version").split("java.home = ")[1].splitlines()[0])
    if (home / "bin/jlink").exists() and (home / "jmods").is_dir():
        modules = "java.se,jdk.unsupported,jdk.naming.dns,jdk.crypto.ec,jdk.security.auth,jdk.management,jdk.zipfs"
        lean = ["--strip-debug", "--no-header-files", "--no-man-pages"]
        _output(str(home / "bin/jlink"), "--add-modules", modules, *lean, "--output", str(target))
    else:
        shutil.copytree(home, target, ignore=shutil.ignore_patterns("jmods", "src.zip", "man", "demo"))
    return [target / "bin/java", *target.rglob("*.so")]


def _programs(folder: Path) -> Iterator[Path]:
    folder.mkdir(parents=True)
    for program in PROGRAMS:
        found = shutil.which(program)
        if found is None:
            raise SystemExit(f"{program} is not on this machine; the image needs it.")
        yield Path(shutil.copy(Path(found).resolve(), folder / program))
    (folder / "sh").symlink_to("bash")


def _libraries(binaries: Iterable[Path]) -> set[Path]:
    """What ldd names, the loader included, and what the C library loads to look up hosts."""
    found = {Path(path) for binary in binaries for path in re.findall(r"(/\S+) \(0x", _output("ldd", str(binary)))}
    outside = {path for path in found if "/opt/java/" not in str(path)}
    beside = {path.parent for path in outside if path.name.startswith("libc.so")}
    lookups = ("libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2")
    return outside | {path for folder in beside for name in lookups if (path := folder / name).exists()}


def _etc(folder: Path) -> None:
    folder.mkdir()
    (folder / "passwd").write_text(f"root:x:0:0:root:/root:/bin/sh\nartemis:x:1001:1001::{INSTANCE}:/bin/sh\n")
    (folder / "group").write_text("root:x:0:\nartemis:x:1001:\n")
    (folder / "nsswitch.conf").write_text("hosts: files dns\n")


def _artemis(folder: Path) -> None:
    library = folder / "lib"
    library.mkdir(parents=True)
    for jar in broker_classpath():
        shutil.copy(jar, library)
    (folder / "broker.xml").write_text(configuration(Path(INSTANCE) / "data"))
    (folder / "login.config").write_text(LOGIN)
    (folder / "logging.properties").write_text(LOGGING)
    entry = folder / "entry"
    entry.write_text(ENTRY)
    entry.chmod(0o755)


def _import(root: Path, name: str) -> None:
    changes = [
        'ENTRYPOINT ["/opt/artemis/entry"]',
        "ENV ARTEMIS_USER=artemis ARTEMIS_PASSWORD=artemis PATH=/opt/java/bin:/bin",
        f"VOLUME {INSTANCE}",
        f"WORKDIR {INSTANCE}",
        "EXPOSE 61613 61616",
        "USER 1001",
    ]
    options = [word for change in changes for word in ("--change", change)]
    command = ["docker", "import", *options, "-", name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as importing:
        assert importing.stdin is not None
        with contextlib.closing(importing.stdin) as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
            tar.add(root, arcname="/", filter=_owned)
    if importing.returncode:
        raise SystemExit(f"docker import ended with {importing.returncode}")


def _owned(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Everything is root's, but for the instance, which the broker's user writes."""
    mine = 1001 if f"/{entry.name}".startswith(INSTANCE) else 0
    entry.uid = entry.gid = mine
    entry.uname = entry.gname = ""
    if entry.name.strip("/") == "tmp":
        entry.mode = 0o777 | stat.S_ISVTX
    return entry


def _output(*command: str) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"LC_ALL": "C"})
    return ended.stdout + ended.stderr


if __name__ == "__main__":
    build(*sys.argv[1:])
