"""Commands that run until a signal ends them. In: places and ports. Out: servers for clients that lack us."""
