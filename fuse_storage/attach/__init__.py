"""How does a table stand over files that somebody else wrote, and how does it follow them?

In: where a source's files are, and what its columns are called. Out: staged segments of blocks that are these files,
and the action by which a commit takes the table to another state of its source. Which files there are, others say.
"""
