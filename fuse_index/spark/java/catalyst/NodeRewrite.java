package fuse_index.spark.java.catalyst;

import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * What Spark's `transformDown` applies to each node of a tree, a plan or an expression.
 *
 * Janino drops type arguments and makes no bridge methods, so that only a type variable overrides what Scala declares with one.
 */
public abstract class NodeRewrite<N> extends AbstractPartialFunction<N, N> {
  /** What takes the place of `node`; null if it stays. */
  protected abstract Object rewrite(Object node);

  public boolean isDefinedAt(N node) { return rewrite(node) != null; }

  @SuppressWarnings("unchecked")
  public <A extends N, B> B applyOrElse(A node, Function1<A, B> otherwise) {
    Object rewritten = rewrite(node);
    return rewritten == null ? otherwise.apply(node) : (B) rewritten;
  }
}
