# %%
from pyspark.sql import SparkSession

from pyspark_jms.testing import EmbeddedArtemis

spark = SparkSession.builder.getOrCreate()
broker = EmbeddedArtemis()
broker.start()
access = {"brokerUrl": broker.url, "user": broker.user, "password": broker.password, "queue": "orders"}

# %%
names = spark.createDataFrame([("ada",), ("bob",), ("ada",)], "text STRING")
names.write.format("jms").mode("append").options(**access).save()

# %%
spark.read.format("jms").options(**access).load().select("sequence", "text", "properties").show()

# %%
print(broker.message_count("orders"), "on the queue")

# %%
messages = spark.readStream.format("jms").options(**access).load()
query = messages.writeStream.format("memory").queryName("orders").trigger(availableNow=True).start()
query.awaitTermination()
print({row.text: row["count"] for row in spark.table("orders").groupBy("text").count().orderBy("text").collect()})

# %%
print(broker.message_count("orders"), "on the queue")
broker.stop()
spark.stop()
