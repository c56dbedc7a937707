"""Cannot be imported."""

raise RuntimeError("no licence file")
