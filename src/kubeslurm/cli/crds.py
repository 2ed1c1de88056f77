"""`kubeslurm crds`: prints the CustomResourceDefinitions."""

from pathlib import Path
from typing import Annotated

import typer

from kubeslurm.api.crds import crds, to_yaml

app = typer.Typer()


@app.command("crds")
def print_crds(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write one file per kind to this directory instead.", file_okay=False),
    ] = None,
) -> None:
    """Print the CustomResourceDefinitions, ready for `kubectl apply --server-side -f -`."""
    if output is None:
        typer.echo("---\n".join(to_yaml(crd) for crd in crds().values()), nl=False)
        return
    output.mkdir(parents=True, exist_ok=True)
    for name, crd in crds().items():
        (output / f"{name}.yaml").write_text(to_yaml(crd), encoding="utf-8")
