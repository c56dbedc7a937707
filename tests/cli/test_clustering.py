"""Clustering is looked at and brought about on the command line."""

from xml.etree import ElementTree


def test_overlaps_are_told_and_drawn(run, people, tmp_path):
    picture = tmp_path / "depth.svg"

    found = run("clustering", people, "--by", "city", "--picture", picture, "--json")
    assert found.code == 0
    assert (found.json["cluster_by"], found.json["blocks"], found.json["orders"][0]["constant_blocks"]) == (
        ["city"],
        10,
        10,
    )
    assert found.json["orders"][0]["depth_histogram"] == [{"depth": 2, "blocks": 10}]
    drawn = ElementTree.fromstring(picture.read_text())
    texts = [part.text for part in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "Overlaps by city (linear), 10 blocks, average depth 2.00"
    assert "along city" in texts[1]
    assert texts[-1] == "2"  # the only depth
    assert "depth 1.00 on average" in run("clustering", people, "--by", "id,name").out
    assert "zorder" in run("clustering", people, "--by", "id,name", "--method", "zorder").out


def test_what_cannot_be_looked_at_is_said(run, people, tmp_path):
    assert "no clustering key" in run("clustering", people).err
    assert run("clustering", people).code == 1
    assert "linear, zorder, hilbert" in run("clustering", people, "--by", "id,name", "--method", "snake").err
    assert run("clustering", people, "--by", "id", "--picture", tmp_path / "depth.png").code == 2


def test_a_key_is_chosen_and_given_up(run, people):
    assert run("cluster-by", people, "city, `id`", "--method", "zorder").out == "clustered by city, id (zorder)\n"
    assert run("show", people, "--json").json["cluster_by"] == ["city", "id"]
    assert run("clustering", people, "--json").json["method"] == "zorder"
    assert run("cluster-by", people, "--none", "--json").json["cluster_by"] == []
    assert run("cluster-by", people).code == 2
    assert run("cluster-by", people, "id", "--none").code == 2
    assert "did you mean" in run("cluster-by", people, "citty").err


def test_blocks_are_sorted_apart(run, people):
    assert "no clustering key" in run("recluster", people).err
    run("cluster-by", people, "name")
    told = run("recluster", people, "--depth", "1", "--step-blocks", "4", "--json")
    assert (told.code, told.json["average_depth"], told.json["blocks"]) == (0, 1.0, 10)
    assert told.json["average_depth_before"] > 2
    assert run("query", people, "--count", "--where", "name = 'name 17'").out == "1\n"
    assert run("recluster", people).out.startswith("average depth 1.00 is 1.00 after 0 steps, 10 blocks are 10")
    assert run("recluster", people, "--depth", "0").code == 2


def test_suggestions_are_told(run, people):
    told = run("suggest", people, "--json").json
    assert [(row["column"], row["advice"]) for row in told] == [("id", "none"), ("name", "none"), ("city", "cluster")]
    assert "an equality reads 20% of the blocks" in told[2]["why"]
    assert "advice" in run("suggest", people).out
