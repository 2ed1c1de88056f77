from kubeslurm.build.controller import trial

CONF = """\
ClusterName=x
SlurmctldHost=x-controller-0(x-controller.ns)
StateSaveLocation=/var/spool/slurmctld/x
AccountingStorageHost=db,\\
other
MaxJobCount=10
"""


def test_the_trial_keeps_line_numbers() -> None:
    lines = trial.trial_conf(CONF, "x-controller-0").splitlines()
    assert lines[5] == "MaxJobCount=10"
    assert len(lines) > 6


def test_the_trial_touches_neither_state_nor_database_nor_address_of_the_cluster() -> None:
    text = trial.trial_conf(CONF, "x-controller-0")
    assert "/var/spool" not in text
    assert "x-controller.ns" not in text
    assert "db" not in text.replace("accounting_storage", "")
    assert "other" not in text
