"""Namespaces, within each other, with what is said of them."""

import uuid

import pytest

import fuse_index as fuse
from fuse_index import AlreadyExists, Catalog, InvalidArgument, NotEmpty, NotFound

SCHEMA = "id BIGINT"


@pytest.fixture
def catalog() -> Catalog:
    return fuse.catalog(f"memory://{uuid.uuid4().hex}", create=True)


def test_namespaces_are_made_and_listed_level_by_level(catalog: Catalog) -> None:
    for name in ("b", "a", "a.x", ("a", "y"), "a.x.deep"):
        catalog.create_namespace(name)

    assert catalog.list_namespaces() == [("a",), ("b",)]
    assert catalog.list_namespaces("a") == [("a", "x"), ("a", "y")]
    assert catalog.list_namespaces(("A", "X")) == [("a", "x", "deep")]
    assert catalog.namespace_exists("a.x.deep")
    assert not catalog.namespace_exists("a.z")
    with pytest.raises(NotFound, match="no namespace 'c'"):
        catalog.list_namespaces("c")
    with pytest.raises(NotFound, match="no namespace 'c'"):
        catalog.list_tables("c")


def test_a_namespace_needs_the_one_around_it(catalog: Catalog) -> None:
    with pytest.raises(NotFound, match="no namespace 'a'"):
        catalog.create_namespace("a.b")


def test_a_namespace_is_made_once(catalog: Catalog) -> None:
    catalog.create_namespace("Sales")

    with pytest.raises(AlreadyExists, match="there is a namespace 'Sales' already"):
        catalog.create_namespace("sales")
    catalog.create_namespace_if_not_exists("sales", {"comment": "unheard"})
    catalog.create_namespace_if_not_exists("other", {"comment": "heard"})
    assert catalog.load_namespace_properties("sales") == {}
    assert catalog.load_namespace_properties("other") == {"comment": "heard"}


def test_properties_are_set_and_removed(catalog: Catalog) -> None:
    catalog.create_namespace("a", {"comment": "one", "owner": "ann"})

    assert catalog.update_namespace_properties("a", ["owner", "none"], {"comment": "two", "x": ""}) == {
        "comment": "two",
        "x": "",
    }
    with pytest.raises(NotFound, match="no namespace 'b'"):
        catalog.load_namespace_properties("b")
    with pytest.raises(InvalidArgument, match="at most 10000 characters"):
        catalog.update_namespace_properties("a", updates={"x": "y" * 10_001})


def test_a_namespace_that_holds_something_is_not_dropped_by_accident(catalog: Catalog) -> None:
    catalog.create_namespace("a")
    catalog.create_namespace("a.b")
    with pytest.raises(NotEmpty, match=r"namespace 'a' holds namespace 'a\.b'"):
        catalog.drop_namespace("a")
    catalog.create_table("a.b.t", SCHEMA)
    with pytest.raises(NotEmpty, match=r"namespace 'a\.b' holds table 'a\.b\.t'"):
        catalog.drop_namespace("a.b")

    catalog.drop_namespace("a", cascade=True)

    assert catalog.list_namespaces() == []
    with pytest.raises(NotFound, match=r"no namespace 'a\.b'"):
        catalog.undrop_table("a.b.t")
    catalog.undrop_table("a.b.t", to="t")
    assert catalog.list_tables() == [("t",)]


def test_an_empty_namespace_is_dropped_and_made_anew_without_what_was_said_of_it(catalog: Catalog) -> None:
    catalog.create_namespace("a", {"comment": "old"})
    catalog.drop_namespace("A")
    with pytest.raises(NotFound, match="no namespace 'a'"):
        catalog.drop_namespace("a")

    catalog.create_namespace("a")

    assert catalog.load_namespace_properties("a") == {}


def test_a_namespace_and_a_table_may_share_a_name(catalog: Catalog) -> None:
    catalog.create_namespace("a")
    catalog.create_table("a", SCHEMA)
    catalog.drop_table("a")

    assert catalog.namespace_exists("a")
