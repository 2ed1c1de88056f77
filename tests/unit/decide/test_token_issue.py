import pytest

from kubeslurm.decide.token import Facts, Issue, decide
from kubeslurm.slurm.tokens import Claims


def facts(claims: Claims | None, *, refresh: bool = True, lifetime: int = 1000, user: str = "ann") -> Facts:
    return Facts(exists=claims is not None, claims=claims, user=user, lifetime=lifetime, refresh=refresh)


YOUNG = Claims(sun="ann", iat=0, exp=1000)


@pytest.mark.parametrize(
    ("given", "now", "issue"),
    [
        (facts(None), 0, Issue.NEW),
        (facts(None, refresh=False), 0, Issue.NEW),
        (facts(YOUNG), 799, Issue.KEEP),
        (facts(YOUNG), 800, Issue.NEW),
        (facts(YOUNG), 5000, Issue.NEW),
        (facts(YOUNG, refresh=False), 5000, Issue.KEEP),
        (facts(YOUNG, user="bob"), 1, Issue.NEW),
        (facts(YOUNG, lifetime=600), 1, Issue.NEW),
    ],
)
def test_when_a_token_is_issued(given: Facts, now: float, issue: Issue) -> None:
    assert decide(given, now)[0] is issue


def test_a_token_is_looked_at_again_when_a_fifth_of_its_life_is_left() -> None:
    assert decide(facts(YOUNG), 100)[1] == pytest.approx(700)


def test_a_token_that_is_not_refreshed_is_looked_at_when_it_has_expired_and_then_no_more() -> None:
    assert decide(facts(YOUNG, refresh=False), 100)[1] == pytest.approx(901)
    assert decide(facts(YOUNG, refresh=False), 2000)[1] is None
