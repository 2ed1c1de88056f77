import errno

import pytest
import typer

from kubeslurm.local.errors import LocalError, exit_on_error


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (LocalError("It is broken.", "Fix it."), "Error: It is broken. Fix it.\n", 1),
        (KeyboardInterrupt(), "Interrupted. Run the same command again to continue.\n", 130),
        (OSError(errno.ENOSPC, "full", "/x"), "Error: The disk is full, /x cannot be written. Free some space", 1),
        (OSError(errno.EDQUOT, "quota"), "Error: The disk is full. Free some space", 1),
    ],
)
def test_an_error_that_the_user_can_fix_is_printed_as_one_line(
    error: BaseException, message: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as caught, exit_on_error():
        raise error
    assert caught.value.exit_code == code
    assert capsys.readouterr().err.startswith(message)


def test_other_errors_are_raised() -> None:
    with pytest.raises(PermissionError), exit_on_error():
        raise PermissionError(errno.EPERM, "no")
