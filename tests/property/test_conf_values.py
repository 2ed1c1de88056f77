"""Whatever value is written into a file of Slurm is read back from it."""

from hypothesis import given
from hypothesis import strategies as st

from kubeslurm.slurm import conf

# A leading single quote is read as one by Slurm, and as the begin of a quotation by the lint.
VALUES = st.text(st.characters(codec="ascii"), min_size=1).filter(lambda value: not value.startswith("'"))


@given(value=VALUES)
def test_a_written_value_is_read_back(value: str) -> None:
    text = conf.written(value)
    if text is not None:
        assert conf.values(conf.parse(f"Before=1\nStoragePass={text}\nAfter=2\n")) == {
            "before": "1",
            "storagepass": value,
            "after": "2",
        }
