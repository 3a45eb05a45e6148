import com.hazelcast.config.Config;
import com.hazelcast.core.Hazelcast;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.jet.Job;
import com.hazelcast.jet.config.JobConfig;
import com.hazelcast.jet.config.ProcessingGuarantee;
import com.hazelcast.jet.core.JobStatus;
import com.hazelcast.jet.pipeline.Pipeline;
import com.hazelcast.jet.pipeline.Sinks;
import com.hazelcast.jet.pipeline.Sources;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.TextMessage;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Enumeration;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;

/**
 * Hazelcast Jet for comparison: its JMS source with Artemis' client and protocol (CORE), to a sink that does nothing.
 *
 * Each line on standard input is a job: queue, messages, processing guarantee, parallelism. Exactly-once drops messages
 * whose id it has seen, so they need one. The client prints "ready" when the job runs, and "done" when its source has
 * returned the last message. A snapshot once a second acknowledges.
 */
public final class JetClient {
    private static final AtomicLong SEEN = new AtomicLong();
    private static final int SNAPSHOT_MILLIS = 1000;

    private JetClient() {
    }

    public static void main(String[] arguments) throws Exception {
        String url = arguments[0];
        String user = arguments[1];
        String password = System.getenv("JAVA_CLIENT_PASSWORD");
        HazelcastInstance member = Hazelcast.newHazelcastInstance(alone());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] job = line.split(" ");
            ProcessingGuarantee guarantee = ProcessingGuarantee.valueOf(job[2]);
            Pipeline pipeline = Pipeline.create();
            pipeline.readFrom(Sources.jmsQueueBuilder(() -> new ActiveMQConnectionFactory(url))
                    .connectionParams(user, password).destinationName(job[0]).maxGuarantee(guarantee)
                    .build(JetClient::read))
                .withoutTimestamps().setLocalParallelism(Integer.parseInt(job[3])).writeTo(Sinks.noop());
            SEEN.set(0);
            JobConfig config = new JobConfig().setProcessingGuarantee(guarantee)
                .setSnapshotIntervalMillis(SNAPSHOT_MILLIS);
            Job running = member.getJet().newJob(pipeline, config);
            while (running.getStatus() != JobStatus.RUNNING) {
                Thread.sleep(5);
            }
            print("ready");
            in.readLine();
            long wanted = Long.parseLong(job[1]);
            while (SEEN.get() < wanted) {
                Thread.sleep(5);
            }
            print("done");
            in.readLine();
            running.cancel();
            while (!running.getStatus().isTerminal()) {
                Thread.sleep(5);
            }
            print("ended");
        }
        member.shutdown();
    }

    private static void print(String word) {
        System.out.println(word);
        System.out.flush();
    }

    private static Config alone() {
        Config config = new Config();
        config.getJetConfig().setEnabled(true);
        config.setProperty("hazelcast.logging.type", "none");
        config.setProperty("hazelcast.phone.home.enabled", "false");
        config.getNetworkConfig().getJoin().getMulticastConfig().setEnabled(false);
        config.getNetworkConfig().getJoin().getAutoDetectionConfig().setEnabled(false);
        return config;
    }

    /** As a row of the connector: text, id, type and properties. */
    private static String read(Message message) throws JMSException {
        StringBuilder row = new StringBuilder(message instanceof TextMessage text ? text.getText() : "");
        row.append(message.getJMSMessageID()).append(message.getJMSType());
        Enumeration<?> names = message.getPropertyNames();
        while (names.hasMoreElements()) {
            row.append(message.getStringProperty((String) names.nextElement()));
        }
        SEEN.incrementAndGet();
        return row.toString();
    }
}
