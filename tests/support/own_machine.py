"""A machine of its own for a driver: what the driver writes there is lost with its last process.

A mount namespace makes the machine: every file system is read-only in it, except a new tmpfs as the disk, another one
at /dev/shm, and the folders that machines share. Linux removes a tmpfs with its namespace.
"""

from pathlib import Path

from standalone import may_hide

_LAY_OUT = """
set -e
disk=$1; shift
for shared in $SHARED; do mount --bind "$shared" "$shared"; done
for at in $(cut -d" " -f5 /proc/self/mountinfo); do mount -o remount,bind,ro "$at" 2> /dev/null || true; done
for shared in $SHARED; do mount -o remount,bind,rw "$shared"; done
mount -t tmpfs none "$disk"
mount -t tmpfs none /dev/shm
for at in "$disk/.." "$HOME" /tmp /var/tmp; do
  if [ -w "$at" ]; then echo "$at can be written"; exit 1; fi
done
mkdir "$disk/home" "$disk/tmp" "$disk/spark"
cd "$disk"
exec env HOME="$disk/home" TMPDIR="$disk/tmp" SPARK_LOCAL_DIRS="$disk/spark" "$@"
"""


class Machine:
    """``command`` begins the command of a process on this machine; ``java_options`` are for a Java of it."""

    def __init__(self, disk, *shared):
        """``disk``: an empty folder with a short path (Spark's sockets are on it). For all others it stays empty."""
        self.disk = Path(disk)
        self.command = [*may_hide(), "sh", "-c", _LAY_OUT, "sh", str(self.disk)]
        self.environment = {"SHARED": " ".join(map(str, shared))}
        self.java_options = f"-Djava.io.tmpdir={self.disk}/tmp"

    def files(self, pid):
        """The files on the disk, as this process of the machine sees them."""
        return [path for path in Path(f"/proc/{pid}/root{self.disk}").rglob("*") if path.is_file()]


def mounts_of(pid):
    """The mount namespace of a process; None if the process has ended."""
    try:
        return Path(f"/proc/{pid}/ns/mnt").readlink()
    except OSError:
        return None


def with_mounts(namespace):
    """The ids of the processes in a mount namespace."""
    return [int(each.name) for each in Path("/proc").glob("[0-9]*") if mounts_of(each.name) == namespace]
