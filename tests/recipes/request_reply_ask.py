import os

from pyspark_jms.testing import JmsClient  # a Java program: the JMS client of Artemis, driven from Python

with JmsClient(os.environ.get("JMS_BROKER_URL", "stomp://localhost:61613"), "artemis", "artemis") as java:
    answers = java.temporary_queue()
    for number, request in enumerate(['{"quantity": 3, "price": 4.5}', "what does it cost?"]):
        java.send("prices", request, reply_to=answers, correlation_id=f"request {number}")
        answer = java.receive(answers, 120)
        print(f"{answer.correlation_id}: {answer.body}")
