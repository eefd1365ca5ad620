import pytest

from bringup.explain.sentence import Narrator, joined
from bringup.findings import Finding, Premise


def finding(*premises: str, therefore: str = "C") -> Finding:
    because = tuple(Premise(text, "x") for text in premises)
    return Finding("R1", "kind", "error", "import", "subject", because, therefore)


def test_reads_from_premises_to_conclusion() -> None:
    one = finding("A", "B")
    assert Narrator([one]).say(one) == "Because A and B, C."


def test_a_finding_without_premises_is_its_conclusion() -> None:
    one = finding(therefore="libcuda is absent")
    assert Narrator([one]).say(one) == "libcuda is absent."


def test_a_shared_premise_is_said_once_and_cited() -> None:
    first, second, third = finding("A", "B"), finding("A", "D", therefore="E"), finding("A", therefore="F")
    narrator = Narrator([first, second, third])
    assert [narrator.say(one) for one in (first, second, third)] == [
        "Because A (1) and B, C.",
        "Because of (1), and because D, E.",
        "Because of (1), F.",
    ]


def test_a_premise_repeated_within_one_finding_is_said_once_without_a_number() -> None:
    one = finding("A", "A", "B")
    assert Narrator([one]).say(one) == "Because A and B, C."


def test_the_same_words_from_another_source_are_another_premise() -> None:
    first = Finding("R1", "k", "error", "import", "s", (Premise("A", "x"),), "C")
    second = Finding("R1", "k", "error", "import", "s", (Premise("A", "y"),), "D")
    narrator = Narrator([first, second])
    assert [narrator.say(first), narrator.say(second)] == ["Because A, C.", "Because A, D."]


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        (["A"], "A"),
        (["A", "B"], "A and B"),
        (["A, too", "B"], "A, too, and B"),
        (["A", "B", "D"], "A, and B, and D"),
    ],
)
def test_clauses_stay_apart(clauses: list[str], expected: str) -> None:
    assert joined(clauses) == expected
