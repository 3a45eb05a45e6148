SPARK_HOME=$(python -c 'import pyspark; print(pyspark.__path__[0])')
bash "$SPARK_HOME/sbin/start-connect-server.sh" --wait
