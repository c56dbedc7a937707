package fuse_index.spark.java.sources;

import fuse_index.spark.java.rpc.*;
import java.util.*;

/** What is asked about files of a source: on which of them all conditions may be true and, of an ORDER BY with a LIMIT, which hold the first rows. */
public class VoteQuestion {
  private final String filters;
  private final String top;
  private final SourceIndex index;

  /** `filters` are conditions in our names, as JSON; `top` is what OrderedLimit writes, still open, or null. */
  VoteQuestion(SourceIndex index, String filters, Json top) {
    this.index = index;
    this.filters = index.snapshot.openQuestion(Protocol.PRUNE, filters).toString();
    this.top = top == null ? null : top.toString();
  }

  public boolean hasTop() { return top != null; }

  /** The question, in which the first rows may be promised by `whole` alone: blocks of which all rows count at the source. */
  public String text(List<Integer> whole) {
    if (top == null) return filters + "}";
    StringBuilder among = new StringBuilder();
    for (Integer block : whole) among.append(among.length() == 0 ? "" : ",").append(block);
    return filters + ",\"top\":" + top + ",\"among\":[" + among + "]}}";
  }

  public boolean equals(Object other) {
    if (!(other instanceof VoteQuestion)) return false;
    VoteQuestion that = (VoteQuestion) other;
    return index.snapshot.callbackKey.equals(that.index.snapshot.callbackKey) && filters.equals(that.filters) && Objects.equals(top, that.top);
  }

  public int hashCode() { return Objects.hash(new Object[] {filters, top}); }
}
