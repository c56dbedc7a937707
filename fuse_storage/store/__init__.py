"""Where do bytes live, and how is a key written only once?

In: a URL, keys, ranges of bytes. Out: the same six verbs over a folder, memory, S3, GCS and Azure; stores that count or
refuse; and a cache of what was made of bytes that never change.
"""
