"""The images of docker/: what they copy is there, and what they run are commands that there are."""

import json
import os
import re
import shlex
from pathlib import Path

import pytest
import yaml

from fuse_index.cli.servers.serve import serve_app

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
SERVICES = yaml.safe_load((DOCKER / "compose.yml").read_text("utf-8"))["services"]
IMAGES = sorted(DOCKER.glob("*Dockerfile"))


@pytest.mark.parametrize("image", IMAGES, ids=lambda path: path.name)
def test_an_image_copies_what_is_there(image: Path) -> None:
    copied = re.findall(r"^COPY (.+) \S+$", image.read_text("utf-8"), re.MULTILINE)

    assert copied
    assert [name for names in copied for name in names.split() if not list(ROOT.glob(name))] == []


def test_services_are_built_of_images_that_are_there_and_wait_for_services_that_there_are() -> None:
    built = {service["build"]["dockerfile"] for service in SERVICES.values() if "build" in service}

    assert built == {f"docker/{image.name}" for image in IMAGES}
    assert {name for service in SERVICES.values() for name in service.get("depends_on", [])} <= set(SERVICES)


def test_options_of_the_server_are_those_of_serve() -> None:
    import typer.main  # which mypy knows, and the program loads late

    known = {name for parameter in typer.main.get_command(serve_app).params for name in parameter.opts}
    given = shlex.split((DOCKER / "serve.sh").read_text("utf-8"), comments=True) + SERVICES["server"]["command"]

    assert {word.partition("=")[0] for word in given if word.startswith("--")} <= known


def test_both_images_have_one_version_of_spark() -> None:
    versions = {re.findall(r"SPARK_VERSION=(\S+)", image.read_text("utf-8"))[0] for image in IMAGES}

    assert len(versions) == 1


def test_s3_is_read_by_the_hadoop_of_that_version_of_spark() -> None:
    pyspark = pytest.importorskip("pyspark")
    if f"SPARK_VERSION={pyspark.__version__}\n" not in IMAGES[0].read_text("utf-8"):
        pytest.skip("another Spark is installed here")
    hadoop = next((Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")).stem.rpartition("-")[2]

    assert f"--conf=spark.jars.packages=org.apache.hadoop:hadoop-aws:{hadoop}" in SERVICES["server"]["command"]


def test_the_image_of_the_server_begins_with_a_program() -> None:
    assert os.access(DOCKER / "serve.sh", os.X_OK)


def test_cells_of_the_notebook_are_python_that_names_nothing_of_ours() -> None:
    cells = json.loads((DOCKER / "first_query.ipynb").read_text("utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]

    for cell in code:
        compile(cell, "cell", "exec")
    assert not [cell for cell in code if "import fuse" in cell or "fuse_index" in cell]
