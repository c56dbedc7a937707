"""What a JSONPath is, the standard says (RFC 9535): what is read here means the same, the rest is refused in words."""

import json
import os
from itertools import product
from pathlib import Path

import pytest

from fuse_plugins.json_path.paths import parse_pattern
from fuse_plugins.json_path.standard import read_standard_path

DOCUMENT = {
    "a": [3, 5, 1, 2, 4, 6, {"b": "j"}, {"b": "k"}, {"b": {}}, {"b": "kilo"}],
    "o": {"p": 1, "q": 2, "r": 3, "s": 5, "t": {"u": 6}},
    "e": "f",
    "": "empty",
    "b c": {"d'e": {'"': 1, "\\": 2, "/": 3, "\n": 4, "☺": 5, "😀": 6, "*": 7, ",": 8, "u0061": 9}},
    "none": None,
    "true": [True, False, None, "", 0, -1, 1.5, 1e3],
}
SPECIAL = "$['b c']['d\\'e']"

FOUND = {
    "$": [DOCUMENT],
    "$.e": ["f"],
    "$ .e": ["f"],
    "$\n['e']": ["f"],
    "$[ 'e' ]": ["f"],
    '$["e"]': ["f"],
    "$['']": ["empty"],
    "$.missing": [],
    "$.a[0]": [3],
    "$.a[-1]": [{"b": "kilo"}],
    "$.a[-11]": [],
    "$.a[10]": [],
    "$.e[0]": [],
    "$.none": [None],
    "$.none.x": [],
    "$.true[0]": [True],
    "$.o.*": [1, 2, 3, 5, {"u": 6}],
    "$.o[*]": [1, 2, 3, 5, {"u": 6}],
    "$.a[1:3]": [5, 1],
    "$.a[5:]": [6, {"b": "j"}, {"b": "k"}, {"b": {}}, {"b": "kilo"}],
    "$.a[1:5:2]": [5, 2],
    "$.a[5:1:-2]": [6, 2],
    "$.a[::-1]": DOCUMENT["a"][::-1],
    "$.a[: 2]": [3, 5],
    "$.a[0, 1]": [3, 5],
    "$.a[0,0]": [3, 3],
    "$.o['p','q']": [1, 2],
    "$..u": [6],
    "$..['u']": [6],
    "$..b": ["j", "k", {}, "kilo"],
    "$..[0]": [3, True],
    "$.a[?@.b]": [{"b": "j"}, {"b": "k"}, {"b": {}}, {"b": "kilo"}],
    "$.a[?(@.b)]": [{"b": "j"}, {"b": "k"}, {"b": {}}, {"b": "kilo"}],
    "$.a[?@.b == 'kilo']": [{"b": "kilo"}],
    '$.a[?@.b == "kilo"]': [{"b": "kilo"}],
    "$.a[?@['b']=='kilo']": [{"b": "kilo"}],
    "$.a[?@.b == '\\u006Bilo']": [{"b": "kilo"}],
    "$.a[?@>3.5]": [5, 4, 6],
    "$.a[?@ >= 4 && @ < 6 || @ == 1]": [5, 1, 4],
    "$.a[?(@ == 1 || @ == 2) && @ > 1]": [2],
    "$.a[?!@.b]": [3, 5, 1, 2, 4, 6],
    "$.a[?@ == $.o.p]": [1],
    "$.o[?@ > 1 && @ < 4]": [2, 3],
    "$.true[?@ == true]": [True],
    "$.true[?@ == false]": [False],
    "$.true[?@ == null]": [None],
    "$.true[?@ == '']": [""],
    "$.true[?@ == 0]": [0],
    "$.true[?@ == 15e-1]": [1.5],
    "$.true[?@ == 1E+3]": [1000.0],
    "$.true[?@ != null]": [True, False, "", 0, -1, 1.5, 1000.0],
    "$.true[?@ == @.x]": [],
    "$[?@.p]": [DOCUMENT["o"]],
    "$[?@.*][0]": [3, True],
    "$[?@[?@.b == 'k']][0]": [3],
    f"{SPECIAL}['\"']": [1],
    f'{SPECIAL}["\\""]': [1],
    f"{SPECIAL}['\\\\']": [2],
    f"{SPECIAL}['\\/']": [3],
    f"{SPECIAL}['\\n']": [4],
    f"{SPECIAL}['\\u263a']": [5],
    f"{SPECIAL}['☺']": [5],
    f"{SPECIAL}.☺": [5],
    f'{SPECIAL}["\\uD83D\\uDE00"]': [6],
    f"{SPECIAL}['*']": [7],
    f"{SPECIAL}[',']": [8],
    f"{SPECIAL}['\\u0075\\u0030061']": [9],
    '$["b c"]["d\'e"].u0061': [9],
}


@pytest.mark.parametrize("path", FOUND)
def test_what_is_read_means_what_the_standard_says(path):
    assert list(parse_pattern(path).matches(DOCUMENT)) == FOUND[path]


NO_PATHS = """
|a|.a|@.a|$.|$..|$a|$.1|$.a-b|$.&|$['a'|$[a]|$[']|$["a']|$[01]|$[-0]|$[-01]|$[1.0]|$[1e3]|$[9007199254740992]
$[0:1:2:3]|$[:|$[,]|$['a',]|$[]|$[?]|$[?()]|$[?true]|$[?null]|$[?1]|$[?'a']|$[?@.a = 1]|$[?@.a == tru]|$[?@.a == True]
$[?@.a == 01]|$[?@.a == 1.]|$[?@.a == .5]|$[?@.a == +1]|$[?@.a == a]|$[?@.* == 1]|$[?@..a == 1]|$[?@[0,1] == 1]
$[?@[1:2] == 1]
$[?@.a == @.*]|$[?@.a &&]|$[?@.a & @.b]|$[?@.a and @.b]|$[?(@.a]|$[?@.a)]|$[?@.a == 1 == 2]|$[?!@.a == 1]|$[?.a]|$.['a']
$...a|$.. a|$. a|$['\\a']|$["\\'"]|$['\\"']|$['\\u12']|$['\\ud800']|$['\\udc00\\ud800']|$[?@.a == '\\x']|$.a.|$ | $
$.a |$.*a|$.`len`|$.a.`parent`|$[\\a]|$[/a]|$.a + 1|$[?@.a =~ 'x']|$.a where b|$..a[01]|$[?@.a[01]]|$.a,b
"""
LEFT_OUT = """
$[?length(@.a) > 1]|$[?count(@.*) == 1]|$[?match(@.a, 'x')]|$[?search(@.a, '(a*)*b')]|$[?value(@..a) == 1]|$[?1 == @.a]
$..a..b|$..*..*|$[?@..a && @..b]|$..[?@..a]|$[?$..a]|$[?$.*]|$['a', 1]|$[*, 1]|$[?@.a, ?@.b]|$[0, 1:2]|$[?!(@.a)]
"""


def listed(text):
    return [path.replace("\\\\", "\\") for line in text.strip("\n").split("\n") for path in line.split("|")]


@pytest.mark.parametrize("path", [*listed(NO_PATHS), "$['a\nb']", "$[?@.a == 'a\tb']", "$\u00a0.a"])
def test_what_is_no_path_is_refused_with_its_place(path):
    with pytest.raises(ValueError, match=r"is no JSON path at \d+: "):
        parse_pattern(path)


@pytest.mark.parametrize("path", listed(LEFT_OUT))
def test_what_is_left_out_is_refused_with_its_place(path):
    with pytest.raises(ValueError, match=r"is no JSON path at \d+: "):
        parse_pattern(path)


def test_long_and_deep_paths_are_refused_or_read_without_recursion():
    assert len(read_standard_path("$" + ".a" * 10_000).steps) == 10_000
    for path in ("$..a" + ".a" * 1000, "$[?" + "(" * 1000 + "@.a" + ")" * 1000 + "]", "$" + "[?@" * 1000 + "]" * 1000):
        with pytest.raises(ValueError, match=r"64 are the most|more than 16 filters"):
            parse_pattern(path)


def test_every_name_is_found_however_it_is_spelled():
    letters = [
        "a",
        "'",
        '"',
        "\\",
        "/",
        "\b",
        "\f",
        "\n",
        "\r",
        "\t",
        "\0",
        "é",
        "☺",
        "😀",
        "*",
        ",",
        "]",
        "$",
        "@",
        " ",
    ]
    for name in map("".join, product(letters, repeat=2)):
        escaped = json.dumps(name)
        spellings = [f"$[{escaped}]", f"$[{json.dumps(name, ensure_ascii=False)}]"]
        spellings.append("$['" + escaped[1:-1].replace('\\"', '"').replace("'", "\\'") + "']")
        for path in spellings:
            assert list(parse_pattern(path).matches({name: 1, "other": 2})) == [1], path
            assert list(parse_pattern(f"$.x[?@{path[1:]} == {escaped}]").matches({"x": [{name: name}]})) == [
                {name: name}
            ]


@pytest.mark.skipif("JSONPATH_COMPLIANCE_SUITE" not in os.environ, reason="JSONPATH_COMPLIANCE_SUITE names no cts.json")
def test_the_compliance_suite_of_the_standard_finds_nothing_wrong():
    cases = json.loads(Path(os.environ["JSONPATH_COMPLIANCE_SUITE"]).read_text("utf-8"))["tests"]
    read = 0
    for case in cases:
        try:
            pattern = parse_pattern(case["selector"])
        except ValueError:
            continue
        assert "invalid_selector" not in case, case
        assert list(pattern.matches(case["document"])) in case.get("results", [case.get("result")]), case
        read += 1
    assert read > 300
