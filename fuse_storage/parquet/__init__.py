"""How are the rows of a block kept in a file, and how are some of them read back?

In: rows that fit a schema, or a block, columns, zones and a mask of rows. Out: the bytes of a file and what is to be
remembered of it, or the rows. Every byte that is read is checked first.

A block is one Parquet file that any engine reads. Ours has something more, between its pages and its Parquet footer:

    +------+---------------------------------------+--------------------+-----------------------------+
    | PAR1 | body: zone 0, zone 1, ...             | seal               | Parquet footer, size, PAR1  |
    |      | a zone: one column chunk a column     | pages, then their  | thrift: schema, where the   |
    |      | a chunk: [dictionary page] data pages | checksums          | column chunks lie           |
    +------+---------------------------------------+--------------------+-----------------------------+
                                                   ^ footer_offset, footer_length: read at once, in one request

- The **seal** (``pages``) has of each page the length, the rows and a checksum, and at last a checksum of itself and of
  the footer. To other readers it is a gap that nothing points to. It tells us what Parquet's footer does not: where
  pages are, so that a lookup reads some of them, and whether a page is as it was written.
- A **page subset** (``page_subset``) lets Arrow decode a few pages of a chunk, which it has no call for: the pages are
  put behind each other in memory, and a footer is forged that describes them as a file.

      block in the store    PAR1 | D a0 a1 a2 a3 | b0 b1 b2 b3 | ... | seal | footer
                                   |    |  |          |  |
      subset in memory      PAR1 | D a1 a2       | b1 b2       | forged footer | size | PAR1

  Pages are copied as they are, compressed; only the footer is ours (``thrift`` writes it). All columns of a subset
  must have pages for the same rows; ``reader`` sees to that, and filters the rows that were not asked for.

Who calls whom: ``writer`` -> ``column_encoding`` (how a column is best stored), ``footer`` -> ``pages`` -> ``thrift``;
``found_rows`` (rows of many blocks in one subset) -> ``reader`` -> ``footer``, ``sparse_file`` (what was fetched, as a
file with holes), ``page_subset`` -> ``thrift``, and ``projection`` (columns as the present schema has them).
"""
