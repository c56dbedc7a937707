"""Both sides of the border to the JVM say the same words and keep to the same limits."""

import json
import re
from importlib import resources

from fuse_index.spark import protocol

CONSTANT = re.compile(r'public static final \w+ (\w+) = (\d+|"[^"]*");')


def test_java_has_the_names_and_values_of_python() -> None:
    text = (resources.files("fuse_index.spark") / "java" / "rpc" / "Protocol.java").read_text("utf-8")
    java = {name: json.loads(value) for name, value in CONSTANT.findall(text)}
    constants = {name: value for name, value in vars(protocol).items() if isinstance(value, int | str)}
    python = {name: value for name, value in constants.items() if name in protocol.__annotations__}

    assert len(java) == text.count("static final")
    assert java == python | {change.name: change.value for change in protocol.Change}
