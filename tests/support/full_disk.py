"""A broker whose disk is full: Artemis takes no message then, and sends and acknowledges what it has."""

import contextlib

_MONITOR = "org.apache.activemq.artemis.core.server.files.FileStoreMonitor"
_ALL, _NOTHING = 1.0, 0.0


@contextlib.contextmanager
def full_disk(broker):
    """For the broker, any use of its disk is above ``max-disk-usage`` inside, by its own monitor."""
    server, jvm = broker.server, broker.jvm
    loader = server.getClass().getClassLoader()
    kinds = jvm.java.lang.Class.forName(f"{_MONITOR}$FileStoreMonitorType", True, loader).getEnumConstants()
    kind = next(kind for kind in kinds if kind.toString() == "MaxDiskUsage")
    seconds = jvm.java.util.concurrent.TimeUnit.SECONDS
    monitor = jvm.org.apache.activemq.artemis.core.server.files.FileStoreMonitor(
        server.getScheduledPool(), server.getExecutorFactory().getExecutor(), 1, seconds, _ALL, None, kind
    )
    monitor.addStore(jvm.java.io.File(str(broker.directory)))
    paging = server.getPagingManager()
    paging.injectMonitor(monitor)
    monitor.setMaxUsage(_NOTHING).tick()
    assert paging.isDiskFull()
    try:
        yield
    finally:
        monitor.setMaxUsage(_ALL).tick()
        assert not paging.isDiskFull()
