#!/usr/bin/env bash
# Believed: an escaped percent sign in a LIKE pattern stands for itself (JMS 3.1 §3.8.1.1), wherever it is: '%!%%' ESCAPE
#   '!' selects the texts with a percent sign.
# So (JORAM 5.10.0): directly after a wildcard it is one too, and so is an escaped underscore: the pattern selects every
#   text. '!%%' ESCAPE '!' and '50!%' ESCAPE '!' are as the specification has them.
# Why it matters here: a generated pattern that looks for a percent sign selects all messages there, without an error.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"

cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.ow2.joram</groupId><artifactId>joram-shared</artifactId><version>5.10.0</version></dependency>
</dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib

cat > Finding.java <<'JAVA'
import org.objectweb.joram.shared.messages.Message;
import org.objectweb.joram.shared.selectors.Selector;

public class Finding {
  public static void main(String[] args) throws Exception {
    var message = new Message();
    message.properties = new fr.dyade.aaa.common.stream.Properties();
    message.setProperty("q", "plain");
    for (String pattern : new String[] {"%!%%", "%!%", "%!_%", "!%%", "pla!%"})
      System.out.println(pattern + ": " + Selector.matches(message, "q LIKE '" + pattern + "' ESCAPE '!'"));
  }
}
JAVA
timeout 120 java -cp 'lib/*' Finding.java 2> log | tee out

diff - out <<'OUT'
%!%%: true
%!%: true
%!_%: true
!%%: false
pla!%: false
OUT
echo "as stated"
