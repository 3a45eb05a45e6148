import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.URLDecoder;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * Asks one engine which messages a selector selects. Lines come in, of fields that are URL-encoded and separated by
 * tabs: {@code message name kind value …}, and {@code selector text}, which is evaluated on all messages before it.
 * For each selector, a line goes out with a letter for each message.
 */
public final class Harness {
  interface Engine {
    /** Parse the selector. Any exception means that the engine refuses it. */
    Condition parse(String selector) throws Exception;
  }

  interface Condition {
    boolean selects(Map<String, Object> properties) throws Exception;
  }

  /** A header that each message has, or what a producer leaves there. Headers stand among the properties. */
  static Object header(Map<String, Object> properties, String name) {
    Object found = properties.get(name);
    if (found != null) return found;
    return switch (name) {
      case "JMSPriority" -> 4;
      case "JMSTimestamp" -> 0L;
      case "JMSDeliveryMode" -> "PERSISTENT";
      default -> null;
    };
  }

  static boolean isHeader(String name) {
    return name.startsWith("JMS") && !name.startsWith("JMS_") && !name.startsWith("JMSX");
  }

  static final char SELECTED = 'T', NOT_SELECTED = 'F', REFUSED = 'P', THROWN = 'X';

  public static void main(String[] args) throws Exception {
    var engine = (Engine) Class.forName(args[0]).getDeclaredConstructor().newInstance();
    var in = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    var out = new PrintStream(System.out, true, UTF_8);
    System.setOut(new PrintStream(OutputStream.nullOutputStream())); // engines print
    List<Map<String, Object>> messages = new ArrayList<>();
    for (String line; (line = in.readLine()) != null; ) {
      String[] fields = line.split("\t", -1);
      for (int i = 1; i < fields.length; i++) fields[i] = URLDecoder.decode(fields[i], UTF_8);
      switch (fields[0]) {
        case "message" -> messages.add(properties(fields));
        case "selector" -> out.println(verdicts(engine, fields[1], messages));
        default -> messages.clear();
      }
    }
    System.exit(0); // engines have threads
  }

  static String verdicts(Engine engine, String selector, List<Map<String, Object>> messages) {
    var found = new StringBuilder();
    Condition condition = null;
    try {
      condition = engine.parse(selector);
    } catch (LinkageError missing) {
      throw missing;
    } catch (Exception | Error refused) { // parsers made by JavaCC throw an Error
    }
    for (var properties : messages) found.append(condition == null ? REFUSED : verdict(condition, properties));
    return found.toString();
  }

  static char verdict(Condition condition, Map<String, Object> properties) {
    try {
      return condition.selects(properties) ? SELECTED : NOT_SELECTED;
    } catch (Exception thrown) {
      return THROWN;
    }
  }

  static Map<String, Object> properties(String[] fields) {
    Map<String, Object> found = new LinkedHashMap<>();
    for (int i = 1; i < fields.length; i += 3) found.put(fields[i], value(fields[i + 1], fields[i + 2]));
    return found;
  }

  static Object value(String kind, String text) {
    return switch (kind) {
      case "boolean" -> Boolean.valueOf(text);
      case "byte" -> Byte.valueOf(text);
      case "short" -> Short.valueOf(text);
      case "int" -> Integer.valueOf(text);
      case "long" -> Long.valueOf(text);
      case "float" -> Float.valueOf(text);
      case "double" -> Double.valueOf(text);
      default -> text;
    };
  }
}
