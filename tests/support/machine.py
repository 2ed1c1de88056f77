"""Makes a machine ready for the tests: installs and builds what their clusters need; pytest would hide the progress."""

import sys

from kubeslurm.cli.up import images
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import doctor
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.tasks import Tasks
from kubeslurm.local.images import artifacts


def main() -> None:
    with Progress() as progress:
        try:
            doctor.require(progress)
            artifacts.prepare(progress=progress, kwok=True)
            images.build(images.groups(), tasks=Tasks(), progress=progress)
        except LocalError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
