#!/usr/bin/env bash
# Believed: after MiniYARNCluster.restartResourceManager its node managers report to the resource manager that is there now.
# So (Hadoop 3.5.0): by default they keep the one before the restart, which they call without a socket: the new one has no
#   node, and no container starts any more, without an error. With yarn.minicluster.use-rpc they come back. Fixed ports
#   (yarn.minicluster.fixed.ports) alone do not help.
# Why it matters here: a query whose containers run goes on, so a test of a restart passes; the first container that
#   dies afterwards is never replaced, and the application waits as ACCEPTED.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-client-minicluster</artifactId><version>3.5.0</version></dependency>
<dependency><groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter-api</artifactId><version>5.13.4</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-reload4j</artifactId><version>1.7.36</version></dependency>
<dependency><groupId>org.bouncycastle</groupId><artifactId>bcpkix-jdk18on</artifactId><version>1.82</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import java.net.ServerSocket;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

public class Finding {
  public static void main(String[] args) throws Exception {
    for (boolean rpc : new boolean[] {false, true}) {
      var settings = new YarnConfiguration();
      settings.setBoolean("yarn.minicluster.use-rpc", rpc);
      settings.setBoolean("yarn.minicluster.fixed.ports", true);
      for (var name : new String[] {"", ".scheduler", ".resource-tracker", ".admin", ".webapp"})
        settings.set("yarn.resourcemanager" + name + ".address", "localhost:" + freePort());
      for (var name : new String[] {"", ".localizer", ".webapp"})
        settings.set("yarn.nodemanager" + name + ".address", "localhost:0");
      settings.set("yarn.scheduler.capacity.root.queues", "default");
      settings.setFloat("yarn.scheduler.capacity.root.default.capacity", 100);
      settings.setFloat("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", 99.9f);
      var cluster = new MiniYARNCluster("rpc-" + rpc, 2, 1, 1);
      cluster.init(settings);
      cluster.start();
      String before = nodes(cluster);
      cluster.restartResourceManager(0);
      System.out.println("use-rpc=" + rpc + ": " + before + " before the restart, " + nodes(cluster) + " after it");
      cluster.stop();
    }
    System.exit(0);
  }

  /** How many nodes the resource manager knows within 30 s. */
  static String nodes(MiniYARNCluster cluster) throws Exception {
    for (int waited = 0; waited < 300 && count(cluster) < 2; waited++) Thread.sleep(100);
    return count(cluster) + " nodes";
  }

  static int count(MiniYARNCluster cluster) {
    return cluster.getResourceManager().getRMContext().getRMNodes().size();
  }

  static int freePort() throws Exception {
    try (var free = new ServerSocket(0)) { return free.getLocalPort(); }
  }
}
JAVA
timeout 300 java -cp 'lib/*' Finding.java 2> log | tee out || { grep -m3 -A3 "Exception\|Error" log; exit 1; }

diff - out <<'OUT'
use-rpc=false: 2 nodes before the restart, 0 nodes after it
use-rpc=true: 2 nodes before the restart, 2 nodes after it
OUT
echo "as stated"
