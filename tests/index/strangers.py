"""Running a program that has strangers' plugins installed: in a process of its own, with a folder of distributions on
its path.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ACME = Path(__file__).parents[1] / "acme"
BROKEN = ACME / "broken"


def run(program: str, *folders: Path, arguments: tuple[str, ...] = ()) -> Any:
    """What the program printed last, as JSON; what it wrote to stderr is under "stderr" if it printed an object."""
    path = os.pathsep.join([*map(str, folders), *(entry for entry in sys.path if entry)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "default"}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return {**found, "stderr": done.stderr} if isinstance(found, dict) else found
