"""Columns are changed on the command line."""


def names(run, table):
    return [column["name"] for column in run("show", table, "--json").json["columns"]]


def test_columns_come_go_and_change(run, people):
    assert (
        run("add-column", people, "height", "decimal(5,2)", "--default", "1.75", "--not-null", "--after", "id").code
        == 0
    )
    assert run("change-type", people, "height", "decimal(7,2)").code == 0
    assert run("rename-column", people, "name", "called").out == "name is now called\n"
    assert run("drop-column", people, "city", "--json").code == 0
    assert run("move-column", people, "called", "--first").code == 0
    assert run("set-nullable", people, "height").out == "height may be NULL\n"
    assert run("set-nullable", people, "called", "--not-null").out == "called is NOT NULL\n"

    assert names(run, people) == ["called", "id", "height"]
    assert run("query", people, "--where", "height = 1.75 AND called = 'name 7'", "--json").json_lines == [
        {"called": "name 7", "id": 7, "height": "1.75"}
    ]


def test_a_default_is_for_rows_that_come(run, people, tmp_path):
    assert run("add-column", people, "height", "decimal(5,2)", "--default", "1.75").code == 0
    assert run("set-default", people, "height", "1.5").out == "the default of height is 1.5\n"
    (tmp_path / "more.csv").write_text("id,name\n900,ann\n")
    assert run("ingest", people, str(tmp_path / "more.csv")).code == 0
    assert run("set-default", people, "height", "--none").out == "height has no default\n"
    found = run("query", people, "--where", "id IN (7, 900)", "--columns", "id,height", "--json").json_lines
    assert sorted(found, key=lambda row: row["id"]) == [{"id": 7, "height": "1.75"}, {"id": 900, "height": "1.50"}]
    assert run("set-default", people, "height", "tall").code == 1
    assert "did you mean" in run("set-default", people, "heigt", "1").err
    assert run("set-default", people, "height").code == 2
    assert run("set-default", people, "height", "1", "--none").code == 2


def test_what_is_in_the_way_is_named(run, people):
    refused = run("drop-column", people, "name")
    assert refused.code == 1
    assert "index 'by_name'" in refused.err
    assert run("drop-column", people, "name", "--indexes", "drop").code == 0
    assert run("add-column", people, "x", "int", "--default", "seven").code == 1
    assert run("change-type", people, "id", "int").code == 1
