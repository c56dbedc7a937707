"""What Python and Spark's JVM say to each other: names and limits, questions, requests, and replies.

``words`` has what both sides spell alike, and ``java/rpc/Protocol.java`` has it too. ``questions`` are what Spark's
planner asks, ``requests`` what statements ask of a catalogue, ``changes`` the columns in them; ``replies`` are the
answers, with their bytes. A member that is missing, misspelt or of another type is refused by its name. Knows no table.
"""
