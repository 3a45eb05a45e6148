import com.ibm.ws.sib.matchspace.EvalCache;
import com.ibm.ws.sib.matchspace.Identifier;
import com.ibm.ws.sib.matchspace.MatchSpaceKey;
import com.ibm.ws.sib.matchspace.Selector;
import com.ibm.ws.sib.matchspace.impl.Matching;
import com.ibm.ws.sib.matchspace.tools.Resolver;
import com.ibm.wsspi.sib.core.SelectorDomain;
import java.lang.reflect.Proxy;
import java.util.Map;

/** Parses and evaluates as MessageProcessorMatching does, on values that are typed as JsApiMessageImpl types them. */
public final class Liberty implements Harness.Engine {
  public Harness.Condition parse(String selector) throws Exception {
    var matching = Matching.getInstance();
    var domain = SelectorDomain.JMS;
    var parsed = valid(matching.primeMatchParser(null, selector, domain.toInt()).getSelector(selector));
    var resolver = Class.forName("com.ibm.ws.sib.processor.matching.JSResolver").getDeclaredConstructor(SelectorDomain.class);
    resolver.setAccessible(true);
    var resolved = valid(Matching.getTransformer().resolve(
        parsed, (Resolver) resolver.newInstance(domain), matching.createPositionAssigner()));
    return properties -> Boolean.TRUE.equals(
        Matching.getEvaluator().eval(resolved, key(properties), EvalCache.DUMMY, null, false));
  }

  static Selector valid(Selector selector) {
    if (selector.getType() == Selector.INVALID) throw new IllegalArgumentException();
    return selector;
  }

  static MatchSpaceKey key(Map<String, Object> properties) {
    return (MatchSpaceKey) Proxy.newProxyInstance(
        Liberty.class.getClassLoader(), new Class<?>[] {MatchSpaceKey.class}, (proxy, method, given) -> {
          if (!method.getName().equals("getIdentifierValue")) return null;
          var identifier = (Identifier) given[0];
          Object value = properties.get(identifier.getName());
          return (Boolean) given[1] || hasType(value, identifier.getType()) ? value : null;
        });
  }

  static boolean hasType(Object value, int type) {
    return switch (type) {
      case Selector.UNKNOWN -> true;
      case Selector.STRING -> value instanceof String;
      case Selector.BOOLEAN -> value instanceof Boolean;
      default -> value instanceof Number;
    };
  }
}
