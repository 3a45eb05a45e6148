# %%
import json
import os
import subprocess
import sys

import pandas as pd
from pyspark.sql import SparkSession

from pyspark_jms.monitoring import metrics_of
from pyspark_jms.testing import EmbeddedArtemis

spark = SparkSession.builder.config("spark.ui.showConsoleProgress", False).getOrCreate()
broker = EmbeddedArtemis()
broker.start()
access = {"brokerUrl": broker.amqp_url, "user": broker.user, "password": broker.password, "queue": "orders"}

# %%
order = "to_json(named_struct('id', id, 'amount', id / 4))"
rows = spark.range(5000).selectExpr(f"{order} AS text", "map('region', if(id % 3 = 0, 'eu', 'us')) AS properties")
rows.coalesce(1).write.format("jms").mode("append").options(**access).save()

# %%
columns = "text STRING, region STRING, JMSTimestamp TIMESTAMP"
messages = spark.read.format("jms").options(**access).schema(columns).load()
messages.limit(5).toPandas()

# %%
messages.groupBy("region").count().orderBy("region").toPandas()


# %%
def lines(*command):
    """What a command of pyspark-jms prints as JSON."""
    login = ["--broker-url", broker.amqp_url, "--user", broker.user, "--password-env", "JMS_PASSWORD", "--json"]
    environment = os.environ | {"JMS_PASSWORD": broker.password}
    command = [sys.executable, "-m", "pyspark_jms", *command, "--queue", "orders", *login]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False).stdout


pd.DataFrame(json.loads(lines("check"))["findings"])[["name", "verdict", "value"]]

# %%
pd.json_normalize([json.loads(line) for line in lines("peek", "--max", "3").splitlines()])

# %%
orders = spark.readStream.format("jms").options(**access, maxMessagesPerTrigger=500).load()
query = orders.writeStream.format("noop").trigger(processingTime="1 second").start()
query.processAllAvailable()
print(sum(progress["numInputRows"] for progress in query.recentProgress), "messages were read")

# %%
points = [
    (pd.Timestamp(progress["timestamp"]), progress["processedRowsPerSecond"], metrics.lag)
    for progress in query.recentProgress
    for metrics in metrics_of(progress)
]
rate = pd.DataFrame(points, columns=["time", "messages a second", "lag"]).set_index("time")
axes = rate.plot(subplots=True, figsize=(8, 4), marker=".")

# %%
query.stop()
print(broker.message_count("orders"), "on the queue")
broker.stop()
spark.stop()
