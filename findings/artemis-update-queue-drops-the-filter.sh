#!/usr/bin/env bash
# Believed: updateQueue of the management changes what its JSON names, and a JSON with the name alone changes nothing.
# So (Artemis 2.55.0): it returns the settings of the queue, the only request that shows whether an existing queue is
#   non-destructive, and deletes the queue's filter. listQueues and the attributes of the queue do not show that setting.
# Why it matters here: a check that asks so would let a queue collect messages that its filter kept away.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.artemis</groupId><artifactId>artemis-server</artifactId><version>2.55.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.impl.ActiveMQServerImpl;

public class Finding {
  public static void main(String[] args) throws Exception {
    var server = new ActiveMQServerImpl(new ConfigurationImpl().setPersistenceEnabled(false).setSecurityEnabled(false));
    server.start();
    System.out.println("version " + server.getVersion().getFullVersion());
    server.createQueue(QueueConfiguration.of("eu").setRoutingType(RoutingType.ANYCAST).setNonDestructive(true)
        .setFilterString("region = 'eu'"));
    var control = server.getActiveMQServerControl();
    System.out.println("listQueues shows the setting: " + control.listQueues("", 1, 10).toLowerCase().contains("destructive"));
    System.out.println("filter before: " + server.locateQueue("eu").getFilter().getFilterString());
    String shown = control.updateQueue("{\"name\": \"eu\"}");
    System.out.println("updateQueue shows the setting: " + shown.contains("\"non-destructive\":true"));
    System.out.println("filter after: " + server.locateQueue("eu").getFilter());
    server.stop();
    System.exit(0);
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java | tee out

diff - out <<'OUT'
version 2.55.0
listQueues shows the setting: false
filter before: region = 'eu'
updateQueue shows the setting: true
filter after: null
OUT
echo "as stated"
