"""JSON as Spark reads and writes it: what ``get_json_object`` finds in a document.

In come texts and paths. Out go texts or NULL, and a doubt where Java's versions differ.
"""
