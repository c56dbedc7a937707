# A notebook whose Python has Spark Connect's client, and nothing of fuse-index. A server serves clients of its version and of
# older ones: not each version of PySpark has a client that is published by itself.
FROM python:3.11-slim-bookworm

ARG SPARK_VERSION=4.3.0
RUN pip install --no-cache-dir jupyterlab "pyspark-client>=4.0.1,<=$SPARK_VERSION"

RUN useradd --create-home notebook
USER notebook
WORKDIR /home/notebook
COPY docker/first_query.ipynb .
CMD ["jupyter", "lab", "--ip", "0.0.0.0", "--no-browser"]
