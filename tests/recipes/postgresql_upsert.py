import os

import psycopg
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from pyspark_jms.functions import jms_text

access = {
    "brokerUrl": os.environ.get("JMS_BROKER_URL", "stomp://localhost:61613"),
    "user": os.environ.get("JMS_BROKER_USER", "artemis"),
    "password": os.environ.get("JMS_BROKER_PASSWORD", "artemis"),
}
# psycopg reads PGHOST, PGPORT, PGDATABASE, PGUSER and PGPASSWORD itself.
jdbc = "jdbc:postgresql://{PGHOST}:{PGPORT}/{PGDATABASE}".format(**os.environ)
login = {"user": os.environ["PGUSER"], "password": os.environ["PGPASSWORD"], "driver": "org.postgresql.Driver"}
ORDER = "id BIGINT, version INT, customer STRING, amount DECIMAL(10,2)"
TABLE = "CREATE TABLE IF NOT EXISTS orders (id BIGINT PRIMARY KEY, version INT, customer TEXT, amount NUMERIC(10,2))"
UPSERT = """
    INSERT INTO orders SELECT id, version, customer, amount FROM orders_batch
    ON CONFLICT (id) DO UPDATE
    SET version = EXCLUDED.version, customer = EXCLUDED.customer, amount = EXCLUDED.amount
    WHERE orders.version < EXCLUDED.version
"""
spark = SparkSession.builder.config("spark.jars.packages", "org.postgresql:postgresql:42.7.14").getOrCreate()


def upsert(batch, number):
    """The newest version of each order, whatever was delivered how often and in which order."""
    orders = batch.select(F.from_json(jms_text(batch), ORDER).alias("order")).select("order.*").where("id IS NOT NULL")
    newest = Window.partitionBy("id").orderBy(F.desc("version"))
    orders = orders.withColumn("rank", F.row_number().over(newest)).where("rank = 1").drop("rank")
    orders.write.jdbc(jdbc, "orders_batch", mode="overwrite", properties=login)
    with psycopg.connect() as connection:  # one transaction
        connection.execute(UPSERT)


def send(*orders):
    rows = spark.createDataFrame([(order,) for order in orders], "text STRING").coalesce(1)
    writer = rows.write.format("jms").mode("append").options(**access, queue="orders.upsert")
    writer.option("transaction", "none").save()  # RabbitMQ confirms rows one by one


def run():
    orders = spark.readStream.format("jms").options(**access, queue="orders.upsert").load()
    query = orders.writeStream.foreachBatch(upsert).option("checkpointLocation", os.path.abspath("checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    with psycopg.connect() as connection:
        for row in connection.execute("SELECT * FROM orders ORDER BY id").fetchall():
            print("order {} version {}: {} {}".format(*row))


with psycopg.connect() as connection:
    connection.execute(TABLE)
ada = '{"id": 1, "version": 1, "customer": "ada", "amount": 10.00}'
send(ada, '{"id": 2, "version": 1, "customer": "bob", "amount": 20.00}', ada)
run()
print("a newer version, and a duplicate of the old one behind it")
send('{"id": 1, "version": 2, "customer": "ada", "amount": 11.00}', ada)
run()
