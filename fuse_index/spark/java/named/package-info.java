/** Which class of ours does Spark find by its name? It knows no others of ours, as another loader has them. */
package fuse_index.spark.java.named;
