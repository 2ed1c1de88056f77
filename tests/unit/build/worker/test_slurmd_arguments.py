"""What slurmd registers with."""

import pytest

from kubeslurm.build.worker.slurmd_arguments import conf_argument

CONF = {
    "only the name of the set": ("", "'Features=gpu'"),
    "features are sorted and unique": ("Features=h100,gpu Feature=a", "'Features=a,gpu,h100'"),
    "pairs are sorted": ("Weight=2 Gres=gpu:8", "'Features=gpu Gres=gpu:8 Weight=2'"),
    "keys are title case": ("memSpecLimit=1 GRES=gpu:1", "'Features=gpu Gres=gpu:1 Memspeclimit=1'"),
    "repeated keys accumulate": ("Gres=gpu:4 gres=mps:2", "'Features=gpu Gres=gpu:4,mps:2'"),
    "a token without a value is left out": ("nonsense Weight=2", "'Features=gpu Weight=2'"),
    "a value may hold an equals sign": ("Extra=a=b", "'Extra=a=b Features=gpu'"),
    "a topology of the user's stays": ("Topology=t:s1", "'Features=gpu Topology=t:s1'"),
}


@pytest.mark.parametrize(("extra", "argument"), CONF.values(), ids=CONF)
def test_what_slurmd_registers_with(extra: str, argument: str) -> None:
    assert conf_argument("gpu", extra) == argument
