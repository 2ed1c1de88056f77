"""Makes a machine ready for the tests: installs and builds what their clusters need; pytest would hide the progress."""

import sys

from kubeslurm.cli import recipes
from kubeslurm.local import artifacts, doctor
from kubeslurm.local.errors import LocalError
from kubeslurm.local.progress import Progress


def main() -> None:
    with Progress() as progress:
        try:
            doctor.require(progress)
            artifacts.prepare(progress=progress, kwok=True)
            recipes.build(progress)
        except LocalError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
