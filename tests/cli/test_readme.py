"""The README's commands run as they are printed, on a few flights."""

import contextlib
import re
import shlex
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_commands_of_the_readme_run_one_after_the_other(run, tmp_path):
    commands = [shlex.split(line) for line in re.findall(r"^fuse-index (.*)$", README, re.MULTILINE)]
    rows = [f"2013-01-01T{hour:02}:00:00Z,N14228,{['IAH', 'NA'][hour % 2]},{hour * 10}" for hour in range(24)]
    (tmp_path / "flights.csv").write_text("\n".join(["time_hour,tailnum,dest,dep_delay", *rows]) + "\n")

    with contextlib.chdir(tmp_path):
        done = [run(*(argument.replace("/tmp/", f"{tmp_path}/") for argument in command)) for command in commands]

    assert len(done) == 7
    assert [each.code for each in done] == [0] * 7
    assert "IAH" in done[3].out
