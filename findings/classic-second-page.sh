#!/usr/bin/env bash
# Believed: a broker delivers to a consumer as many messages as its prefetch allows, whether or not it acknowledges them.
# So (Classic 6.3.1): of 300 messages a consumer with a prefetch of 1,000 that acknowledges each by itself often gets the
#   200 of the first page (maxPageSize), and nothing more for seconds. The rest comes after it has acknowledged one, or
#   when the broker next looks for expired messages, every 30 s.
# Why it matters here: a silence is not the end of a queue, and who looks at messages without acknowledging them sees 200.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.activemq</groupId><artifactId>activemq-broker</artifactId><version>6.3.1</version></dependency>
<dependency><groupId>org.apache.activemq</groupId><artifactId>activemq-stomp</artifactId><version>6.3.1</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Broker.java <<'JAVA'
import org.apache.activemq.broker.BrokerService;

public class Broker {
  public static void main(String[] args) throws Exception {
    var broker = new BrokerService();
    broker.setPersistent(false);
    broker.setUseJmx(false);
    var connector = broker.addConnector("stomp://127.0.0.1:0");
    broker.start();
    broker.waitUntilStarted();
    System.out.println(connector.getConnectUri().getPort() + " " + BrokerService.class.getPackage().getImplementationVersion());
    System.in.read();
    System.exit(0);
  }
}
JAVA

cat > consume.py <<'PYTHON'
import socket, subprocess, time

broker = subprocess.Popen(["java", "-cp", "lib/*", "Broker.java"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
port, version = broker.stdout.readline().split()
print("version", version)


def frames(connection, seconds):
    """The frames that come until nothing comes for so long."""
    connection.settimeout(seconds)
    data = b""
    try:
        while part := connection.recv(1 << 16):
            data += part
    except TimeoutError:
        pass
    return [frame.lstrip(b"\n") for frame in data.split(b"\0")[:-1]]


def connect():
    connection = socket.create_connection(("127.0.0.1", int(port)))
    connection.sendall(b"CONNECT\naccept-version:1.2\nhost:h\nheart-beat:0,0\n\n\0")
    frames(connection, 0.5)
    return connection


one_page, after_ack = 0, set()
for queue in range(8):
    connection = connect()
    send = f"SEND\ndestination:/queue/q{queue}\n\n".encode() + b"x" * 1000 + b"\0"
    connection.sendall(send * 300 + b"SEND\ndestination:/queue/last\nreceipt:r\n\n\0")
    frames(connection, 0.5)
    head = f"SUBSCRIBE\nid:1\ndestination:/queue/q{queue}\nack:client-individual\nactivemq.prefetchSize:1000\n\n\0"
    connection.sendall(head.encode())
    first = frames(connection, 3.0)
    if len(first) < 300:
        one_page += len(first) == 200
        ack = next(line for line in first[0].split(b"\n") if line.startswith(b"ack:"))[4:]
        connection.sendall(b"ACK\nid:" + ack + b"\n\n\0")
        after_ack.add(len(first) + len(frames(connection, 3.0)))
    connection.close()
print("a consumer that acknowledges nothing got one page:", "in some of 8 runs" if one_page else "in none of 8 runs")
print("after its first acknowledgement it had", *sorted(after_ack))
broker.stdin.close()
broker.wait(30)
PYTHON
timeout 240 python3 consume.py | tee out

diff - out <<'OUT'
version 6.3.1
a consumer that acknowledges nothing got one page: in some of 8 runs
after its first acknowledgement it had 300
OUT
echo "as stated"
