"""Where sentences end, and which language a text is in where that is certain."""

import re
from pathlib import Path

from council.text import language, language_tag, script, sentence_ends, sentences
from tests.pairs import data, rows

KNOWN = [
    ("English", "What is the capital of Australia?"),
    ("English", "Is plain SHA-256 fine for storing passwords? Say yes or no, and why."),
    ("English", "Should we shard now or buy a bigger machine?"),
    ("English", 'What does "Der Himmel ist blau und die Sonne ist warm" mean?'),
    ("German", "Was ist die Hauptstadt der Schweiz, und an welchem Fluss liegt sie?"),
    ("German", "Warum ist der Himmel blau? Antworte in zwei Sätzen."),
    ("German", "Sollen wir Postgres oder MySQL nehmen?"),
    ("German", "Wie viele Stunden hat eine Woche?"),
    ("French", "Pourquoi le ciel est-il bleu ?"),
    ("French", "Faut-il une seule base pour les deux services ?"),
    ("Spanish", "¿Cuántos minutos tiene un día y cuántos tiene una semana?"),
    ("Spanish", "Explica por qué la luz es más rápida."),
    ("Italian", "Qual è la capitale della Francia?"),
    ("Portuguese", "Quais são as vantagens e por que não usar uma só?"),
    ("Dutch", "Wat is de hoofdstad van Nederland?"),
    ("Polish", "Jaka jest stolica Polski?"),
    ("Swedish", "Vad är huvudstaden i Sverige?"),
    ("Japanese", "日本の首都はどこですか？"),
    ("Chinese", "法国的首都是哪里？"),
    ("Korean", "프랑스의 수도는 어디입니까?"),
    ("Greek", "Ποια είναι η πρωτεύουσα;"),
    ("Russian", "Почему небо голубое, и какой у него был бы цвет на Марсе? Объясни."),
    ("Ukrainian", "Яка столиця України і чому?"),
]
UNKNOWN = [
    "Postgres or MySQL?",
    "monorepo",
    "",
    "42",
    "```\nder die das und ist\n```",
    "Какая столица?",
    "C++ vs. Rust",
    "Warum nicht?",
    "Pourquoi? Comment?",
    "\u00bfPor qué?",
]


@rows(("name", "text"), KNOWN)
def test_a_language_shows_in_a_short_question(name: str, text: str) -> None:
    """By its script or its small words."""
    assert language(text) == name


def test_every_language_that_is_told_has_a_tag_and_english_is_never_mistaken() -> None:
    """A third of the letters decides the script."""
    assert len({language_tag(text) for _, text in KNOWN}) == len({name for name, _ in KNOWN})
    assert language_tag("Warum ist der Himmel blau? Antworte in zwei Sätzen.") == "de"
    assert language_tag("Postgres or MySQL?") is None
    pages = [Path("README.md"), Path("CHANGELOG.md"), *Path("docs").rglob("*.md")]
    said = [each for page in pages for each in re.split(r"(?<=[.!?])\s+|\n", page.read_text())]
    assert len(said) > 1_000
    assert {language(each) for each in said} == {"English", None}
    assert script("Nutze PostgreSQL.") == "Latin"
    assert script("使用 PostgreSQL 数据库即可") == "Chinese"
    assert script("ใช้ PostgreSQL ได้เลย") == "Thai"


@rows("text", UNKNOWN)
def test_nothing_is_guessed(text: str) -> None:
    """Words common to many languages decide nothing."""
    assert language(text) is None


@rows(("text", "expected"), data(__file__, "a_text_is_divided_into_its_sentences"))
def test_a_text_is_divided_into_its_sentences(text: str, expected: list[str]) -> None:
    """A mark ends a sentence unless a small letter follows, or it abbreviates, or dates."""
    assert sentences(text) == expected


@rows(("limit", "expected"), [(3, []), (4, [4]), (8, [4]), (9, [4, 9]), (99, [4, 9])])
def test_only_ends_within_a_limit_count(limit: int, expected: list[int]) -> None:
    """A sentence that ends exactly at the limit fits; what is beyond decides whether a mark ends one."""
    assert [*sentence_ends("One. Two.", limit)] == expected
    assert [*sentence_ends("One. two.", limit)] == ([9] if limit >= 9 else [])
