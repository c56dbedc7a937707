import pytest


def named(rows, name):
    return next(row for row in rows if row["name"] == name)


def test_an_index_can_be_defined_first_and_built_later(run, people):
    run("index", "create", people, "by_city", "-k", "bloom", "-c", "city", "--no-build")
    before = named(run("index", "list", people, "--json").json, "by_city")
    refreshed = run("index", "refresh", people, "by_city", "--json").json

    assert before["blocks_indexed"] == 0
    assert (refreshed["blocks_indexed"], refreshed["blocks"]) == (10, 10)


def test_refresh_without_a_name_is_for_all_indexes(run, people):
    run("index", "create", people, "by_city", "-k", "bloom", "-c", "city", "--no-build")

    assert "by_city" in run("index", "refresh", people).out
    assert [row["name"] for row in run("index", "refresh", people, "--json").json] == ["by_name", "by_city"]
    assert [row["blocks_indexed"] for row in run("index", "list", people, "--json").json] == [10, 10]


@pytest.mark.parametrize("processes", [1, 2])
def test_rebuild_indexes_every_block_anew_and_changes_no_answer(run, people, processes):
    rebuilt = run("index", "rebuild", people, "by_name", "--processes", processes, "--json")

    assert rebuilt.json["blocks_indexed"] == 10
    assert run("query", people, "--where", "name = 'name 7'", "--count").out == "1\n"


def test_options_reach_the_kind_and_are_checked_by_it(run, people):
    assert run("index", "create", people, "fine", "-k", "bloom", "-c", "id", "-o", "fpp=0.001").code == 0
    failed = run("index", "create", people, "odd", "-k", "bloom", "-c", "id", "-o", "colour=red")

    assert failed.code == 1
    assert "colour" in failed.err


def test_show_tells_what_an_index_is_on(run, people):
    shown = run("index", "show", people, "by_name", "--json").json

    assert (shown["kind"], shown["columns"], shown["options"]["long_text"]) == ("bloom", ["name"], False)
    assert "by_name" in run("index", "show", people, "by_name").out


def test_verify_says_that_a_sound_index_is_sound(run, people):
    assert run("index", "verify", people, "by_name", "--json").json["sound"] is True
    assert "sound" in run("index", "verify", people, "by_name").out


def test_a_dropped_index_is_gone_and_queries_answer_the_same(run, people):
    assert run("index", "drop", people, "by_name").code == 0

    assert run("index", "list", people, "--json").json == []
    assert run("query", people, "--where", "name = 'name 7'", "--count").out == "1\n"


def test_what_cannot_be_is_said_in_a_line(run, people):
    for arguments, words in [
        (("index", "show", people, "by_nmae"), "by_name"),
        (("index", "drop", people, "nothing"), "nothing"),
        (("index", "create", people, "x", "-k", "blom", "-c", "name"), "bloom"),
        (("index", "create", people, "x", "-k", "bloom", "-c", "nmae"), "nmae"),
        (("index", "create", people, "by_name", "-k", "bloom", "-c", "id"), "by_name"),
    ]:
        failed = run(*arguments)

        assert failed.code == 1, arguments
        assert words in failed.err
        assert len(failed.err.splitlines()) <= 3


def test_search_prints_the_best_rows_with_their_scores(run, people):
    run("index", "create", people, "words", "-k", "full_text", "-c", "name")
    found = run("search", people, "name", "+7", "--limit", 1, "--columns", "name", "--json")

    assert found.json["name"].endswith(" 7")
    assert found.json["_score"] > 0
    twice = run("search", people, "`name` , name", "+7", "--limit", 1, "--columns", "name", "--json")
    assert twice.json["_score"] == pytest.approx(2 * found.json["_score"])
    assert "_score" in run("search", people, "name", "name 7").out
