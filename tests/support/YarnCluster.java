import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/** HDFS with a data node, and YARN with two node managers, in one process. Does what a line of stdin says, and answers. */
public class YarnCluster {
    private static MiniDFSCluster hdfs;
    private static MiniYARNCluster yarn;

    public static void main(String[] args) throws Exception {
        Path home = Paths.get(args[0]).toAbsolutePath();
        System.setProperty("test.build.data", home.resolve("data").toString());
        Configuration common = new YarnConfiguration();
        common.set("hadoop.tmp.dir", home.resolve("tmp").toString());
        common.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, home.resolve("hdfs").toString());
        common.setInt("dfs.replication", 1);
        common.setBoolean("dfs.permissions.enabled", false);
        hdfs = new MiniDFSCluster.Builder(common).numDataNodes(1).build();
        hdfs.waitActive();
        Configuration settings = settings(common, home);
        yarn = new MiniYARNCluster("spark", 2, 1, 1);
        yarn.init(settings);
        yarn.start();
        if (!yarn.waitForNodeManagersToConnect(120_000)) throw new IllegalStateException("a node manager did not connect");
        write(home.resolve("conf"));
        System.out.println("ready " + hdfs.getURI());
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                carryOut(line.split(" "));
                System.out.println("done " + line);
            }
        }
        yarn.stop();
        hdfs.shutdown();
    }

    private static Configuration settings(Configuration common, Path home) throws Exception {
        Configuration settings = new YarnConfiguration(common);
        settings.set("fs.defaultFS", hdfs.getURI().toString());
        settings.setInt("yarn.scheduler.minimum-allocation-mb", 256);
        settings.setInt("yarn.nodemanager.resource.memory-mb", 4096);
        settings.setInt("yarn.nodemanager.resource.cpu-vcores", 4);
        settings.setBoolean("yarn.nodemanager.pmem-check-enabled", false);
        settings.setBoolean("yarn.nodemanager.vmem-check-enabled", false);
        settings.setFloat("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", 99.5f);
        settings.setInt("yarn.nodemanager.delete.debug-delay-sec", 3_600); // the logs of containers
        settings.setInt("yarn.resourcemanager.am.max-attempts", 20); // one that cannot load its files while the name node is away counts, too
        settings.setInt("yarn.nm.liveness-monitor.expiry-interval-ms", 30_000);
        settings.setInt("yarn.am.liveness-monitor.expiry-interval-ms", 120_000);
        settings.setBoolean("yarn.resourcemanager.recovery.enabled", true);
        settings.set("yarn.resourcemanager.store.class", "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore");
        settings.set("yarn.resourcemanager.fs.state-store.uri", home.resolve("rmstore").toUri().toString()); // not on HDFS, which is restarted
        settings.setInt("yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms", 1_000);
        settings.setBoolean("yarn.minicluster.use-rpc", true); // or node managers report to the resource manager before the restart
        settings.setBoolean("yarn.minicluster.fixed.ports", true); // a restarted resource manager is where it was
        for (String name : new String[] {"", ".scheduler", ".resource-tracker", ".admin", ".webapp"})
            settings.set("yarn.resourcemanager" + name + ".address", "localhost:" + freePort());
        for (String name : new String[] {"", ".localizer", ".webapp"})
            settings.set("yarn.nodemanager" + name + ".address", "localhost:0");
        settings.set("yarn.scheduler.capacity.root.queues", "default");
        settings.setFloat("yarn.scheduler.capacity.root.default.capacity", 100);
        settings.setFloat("yarn.scheduler.capacity.maximum-am-resource-percent", 1.0f);
        return settings;
    }

    private static int freePort() throws Exception {
        try (ServerSocket free = new ServerSocket(0)) {
            return free.getLocalPort();
        }
    }

    private static void write(Path conf) throws Exception {
        Configuration settings = new Configuration(yarn.getConfig());
        settings.unset("net.topology.node.switch.mapping.impl"); // a class of the tests of Hadoop, which Spark lacks
        settings.set("fs.defaultFS", hdfs.getURI().toString());
        Files.createDirectories(conf);
        for (String name : new String[] {"core-site.xml", "yarn-site.xml", "hdfs-site.xml"})
            try (OutputStream file = Files.newOutputStream(conf.resolve(name))) {
                settings.writeXml(file);
            }
    }

    private static void carryOut(String[] words) throws Exception {
        switch (words[0]) {
            case "stop-node": // NODE, as 0
                yarn.getNodeManager(Integer.parseInt(words[1])).stop();
                break;
            case "restart-resourcemanager":
                yarn.restartResourceManager(0);
                break;
            case "restart-namenode":
                hdfs.restartNameNode(true);
                break;
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }
}
