"""Shell scripts that run in pods, one file each.

Their text is in the spec of running pods: another byte restarts daemons. Comments at the top of a file are not part of
it.
"""

from importlib import resources
from itertools import dropwhile


def read(name: str) -> str:
    """The script without the comments at its top."""
    lines = (resources.files(__name__) / name).read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(dropwhile(lambda line: line.startswith("#"), lines))
