import os

from pyspark.sql import SparkSession

access = {
    "brokerUrl": os.environ.get("JMS_BROKER_URL", "stomp://localhost:61613"),  # as the server sees it
    "user": "artemis",
    "password": "artemis",
}
spark = SparkSession.builder.remote(os.environ.get("SPARK_REMOTE", "sc://localhost:15002")).getOrCreate()

rows = spark.range(5).coalesce(1).selectExpr("concat('greeting ', id) AS text")  # one task: in this order
rows.write.format("jms").mode("append").options(**access, queue="greetings").save()

messages = spark.readStream.format("jms").options(**access, queue="greetings").load()
table = messages.select("sequence", "text").writeStream.format("memory").queryName("greetings")
table.trigger(availableNow=True).start().awaitTermination()
for row in spark.table("greetings").orderBy("sequence").collect():
    print(row.sequence, row.text)
