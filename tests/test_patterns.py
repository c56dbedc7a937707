"""No regular expression of ours goes back and back over a text: meanwhile Python would let no other thread run."""

import importlib
import pkgutil
import re
from itertools import product
from time import process_time

import fuse_index
import fuse_plugins
import fuse_storage

LENGTH = 6000
SECONDS = 0.1
"""What a pattern that looks at each letter needs is a thousandth of it; one that goes back for each takes more."""
UNITS = [*"01aT \t'\"\\.-+/`()[]{},|$_é~:%\n", "``", "''", '""', "\\a", "1.", "a.", "a ", "1 ", "00:", "a,", "e1", "[a"]
BEGINNINGS = ["", "'", '"', "`", "[", "{", "$", "1", "-", "decimal(", "ngram(", "2020-01-01 ", "AS a(", "UTC+", "T"]
ENDS = ["", "!"]


def patterns():
    """Every compiled pattern that a module keeps, by itself or in a dictionary."""
    for package in (fuse_index, fuse_storage, fuse_plugins):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(module.name)).items():
                for pattern in value.values() if isinstance(value, dict) else [value]:
                    if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
                        yield f"{module.name}.{name}", pattern


def seconds(pattern, text):
    start = process_time()
    pattern.match(text)
    pattern.fullmatch(text)
    return process_time() - start


def test_no_pattern_goes_back_and_back():
    texts = [
        beginning + unit * (LENGTH // len(unit)) + end for beginning, unit, end in product(BEGINNINGS, UNITS, ENDS)
    ]
    found = dict(patterns())
    slow = {name: text[:20] for name, pattern in found.items() for text in texts if seconds(pattern, text) > SECONDS}

    assert len(found) > 40
    assert slow == {}


def test_this_test_sees_one_that_does():
    assert seconds(re.compile(r"(?:\d+\.?\d*)x"), "0" * LENGTH + "!") > SECONDS
