"""Proof that an index kind is sound, for its author to inherit. Needs pytest and hypothesis.

```python
from fuse_index.testing import IndexTests

class TestBloom(IndexTests):
    index = Bloom
```

Every test of every protocol that the kind has is then collected: small worlds are enumerated, wide ones drawn, and each
vote is judged by the oracle, after the NULLs were added by the engine's own code.
"""

try:
    from fuse_index.testing.function_tests import FunctionTests
    from fuse_index.testing.suite import IndexTests
    from fuse_index.testing.worlds.small_worlds import Samples
except ModuleNotFoundError as missing:
    if missing.name not in ("pytest", "hypothesis"):
        raise
    told = "fuse_index.testing needs pytest and hypothesis: pip install pytest hypothesis"
    raise ModuleNotFoundError(told, name=missing.name) from missing

__all__ = ["FunctionTests", "IndexTests", "Samples"]
