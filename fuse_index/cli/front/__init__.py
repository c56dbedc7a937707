"""What is known of commands before one is run: their names by task, examples, and what the shell completes.

In: the words of a command line. Out: the module of the one command that is meant, loaded; help and completions.
"""
