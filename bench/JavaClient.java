import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.activemq.artemis.api.jms.ActiveMQJMSConstants;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * A Java application for comparison, as a consumer and as a producer: Artemis' JMS client with its own protocol (CORE),
 * or Qpid JMS with AMQP if the URL begins with amqp.
 *
 * Each line on standard input is a job. The client prepares the job and prints "ready". At the next line it runs the job
 * and prints "done".
 */
public final class JavaClient {
    private static final int CONNECTIONS = 2;
    private static final int TRANSACTED = 1000;
    private static final int DIFFERENT = 256;
    private static final String[] REGIONS = {"north", "south", "east", "west"};

    private final ConnectionFactory factory;
    private final String orders;
    private final BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    private long seen;

    private JavaClient(String url, String user, String password, String orders) {
        this.orders = orders;
        if (url.startsWith("amqp")) {
            factory = new JmsConnectionFactory(user, password, url);
        } else {
            ActiveMQConnectionFactory core = new ActiveMQConnectionFactory(url, user, password);
            core.setConsumerWindowSize(-1);
            factory = core;
        }
    }

    public static void main(String[] arguments) throws Exception {
        String orders = Files.readString(Path.of(arguments[2]));
        new JavaClient(arguments[0], arguments[1], System.getenv("JAVA_CLIENT_PASSWORD"), orders).serve();
    }

    private void serve() throws Exception {
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] job = line.split(" ");
            if (job[0].equals("drain")) {
                drain(job[1], Integer.parseInt(job[2]), job[3].equals("transacted"));
            } else {
                send(job[1], Integer.parseInt(job[2]), Integer.parseInt(job[3]), Integer.parseInt(job[4]),
                    Boolean.parseBoolean(job[5]));
            }
            print("done");
        }
    }

    private static void print(String word) {
        System.out.println(word);
        System.out.flush();
    }

    private void awaitGo() throws Exception {
        print("ready");
        in.readLine();
    }

    /** One session. Each message is read completely and acknowledged individually, or 1,000 messages with one commit. */
    private void drain(String queue, int messages, boolean transacted) throws Exception {
        int mode = transacted ? Session.SESSION_TRANSACTED : ActiveMQJMSConstants.INDIVIDUAL_ACKNOWLEDGE;
        try (Connection connection = factory.createConnection();
             Session session = connection.createSession(transacted, mode)) {
            MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
            awaitGo();
            connection.start();
            for (int i = 1; i <= messages; i++) {
                Message message = consumer.receive(60_000);
                if (message == null) {
                    throw new IllegalStateException(messages - i + 1 + " messages did not arrive");
                }
                read(message);
                if (!transacted) {
                    message.acknowledge();
                } else if (i % TRANSACTED == 0 || i == messages) {
                    session.commit();
                }
            }
        }
    }

    private void read(Message message) throws JMSException {
        if (message instanceof TextMessage text) {
            seen += text.getText().length();
        } else if (message instanceof BytesMessage bytes) {
            seen += bytes.getBodyLength();
        }
        for (var names = message.getPropertyNames(); names.hasMoreElements();) {
            seen += message.getStringProperty((String) names.nextElement()).length();
        }
    }

    /** Transactions on two connections at a time. Each COMMIT returns before the next transaction begins. */
    private void send(String queue, int messages, int perTransaction, int bodyBytes, boolean persistent)
            throws Exception {
        List<Connection> connections = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        List<Throwable> failures = new ArrayList<>();
        for (int number = 0; number < CONNECTIONS; number++) {
            Connection connection = factory.createConnection();
            connections.add(connection);
            Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
            MessageProducer producer = session.createProducer(session.createQueue(queue));
            producer.setDeliveryMode(persistent ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
            int share = number;
            threads.add(new Thread(() -> {
                try {
                    sendShare(session, producer, share, messages, perTransaction, bodyBytes);
                } catch (Exception failure) {
                    synchronized (failures) {
                        failures.add(failure);
                    }
                }
            }));
        }
        awaitGo();
        for (Thread thread : threads) {
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        for (Connection connection : connections) {
            connection.close();
        }
        if (!failures.isEmpty()) {
            throw new IllegalStateException(failures.get(0));
        }
    }

    private void sendShare(Session session, MessageProducer producer, int share, int messages, int perTransaction,
            int bodyBytes) throws JMSException {
        for (int first = share * perTransaction; first < messages; first += CONNECTIONS * perTransaction) {
            for (int i = first; i < Math.min(messages, first + perTransaction); i++) {
                TextMessage message = session.createTextMessage(String.format("%012d", i) + textAt(i, bodyBytes - 12));
                message.setStringProperty("customer", "C" + i % 1000);
                message.setStringProperty("region", REGIONS[i % 4]);
                message.setStringProperty("amount", (long) i * 7 % 100_000 + ".50");
                message.setStringProperty("created", "2026-01-01T12." + i % 60);
                message.setStringProperty("note", "path " + i);
                producer.send(message);
            }
            session.commit();
        }
    }

    /** As text_at of bench/job.py. */
    private String textAt(int number, int size) {
        int at = number % DIFFERENT * (orders.length() / DIFFERENT);
        if (at + size <= orders.length()) {
            return orders.substring(at, at + size);
        }
        return (orders.substring(at) + orders.repeat(size / orders.length() + 1)).substring(0, size);
    }
}
