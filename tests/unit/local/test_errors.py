"""The door of every command: one line for what the user can mend, a traceback only for what nobody foresaw."""

import errno

import pytest
import typer

from kubeslurm.local.errors import LocalError, told


@pytest.mark.parametrize(
    ("error", "said", "code"),
    [
        (LocalError("It is broken.", "Mend it."), "Error: It is broken. Mend it.\n", 1),
        (KeyboardInterrupt(), "Interrupted. Run the same command again: it goes on from here.\n", 130),
        (OSError(errno.ENOSPC, "full", "/x"), "Error: The disk is full, /x cannot be written. Free some space", 1),
        (OSError(errno.EDQUOT, "quota"), "Error: The disk is full. Free some space", 1),
    ],
)
def test_what_the_user_can_mend_is_one_line(
    error: BaseException, said: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as caught, told():
        raise error
    assert caught.value.exit_code == code
    assert capsys.readouterr().err.startswith(said)


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(PermissionError), told():
        raise PermissionError(errno.EPERM, "no")
