import os

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyspark_jms.functions import jms_text

access = {
    "brokerUrl": os.environ.get("JMS_BROKER_URL", "stomp://localhost:61613"),
    "user": "artemis",
    "password": "artemis",
}
REQUEST = "quantity INT, price DECIMAL(10,2)"
spark = SparkSession.builder.appName("prices").getOrCreate()

requests = spark.readStream.format("jms").options(**access, queue="prices").load()
request = F.from_json(jms_text(requests), REQUEST)
total = request["quantity"] * request["price"]
answers = requests.select(
    F.col("JMSReplyTo").alias("destination"),  # a row without one goes to option queue
    F.coalesce("JMSCorrelationID", "JMSMessageID").alias("JMSCorrelationID"),
    F.coalesce(F.concat(F.lit("total: "), total), F.lit("a request is JSON with quantity and price")).alias("text"),
    F.lit(60_000).alias("time_to_live"),  # milliseconds
)
sink = answers.writeStream.format("jms").options(**access, queue="prices.unanswered")
sink.option("checkpointLocation", os.path.abspath("checkpoint")).start().awaitTermination()
