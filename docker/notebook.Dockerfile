# A notebook whose Python has Spark Connect's client, and nothing of fuse-index. The minor version is the server's.
FROM python:3.11-slim-bookworm

ARG SPARK_VERSION=4.3.0
RUN pip install --no-cache-dir jupyterlab "pyspark-client==$SPARK_VERSION"

RUN useradd --create-home notebook
USER notebook
WORKDIR /home/notebook
COPY docker/first_query.ipynb .
CMD ["jupyter", "lab", "--ip", "0.0.0.0", "--no-browser"]
