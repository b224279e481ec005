"""Which language a text is in, if its script or its small words show it for certain.

Prompts name the question's language, because small models overlook *the question's language*; a
correction that changes it doesn't count. Nothing is guessed: a text that shows no language, or two, has
none. Code, addresses and quotations aren't read.
"""

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

LONGEST = 20_000
"""Characters of a text that are looked at."""
CLEAR = 2
"""Words that a language has to be ahead of every other one."""

_SCRIPTS: Mapping[str, str] = {
    "Japanese": "\u3040-\u30ff",
    "Korean": "\uac00-\ud7af\u1100-\u11ff",
    "Chinese": "\u4e00-\u9fff",
    "Greek": "\u0370-\u03ff",
    "Hebrew": "\u0590-\u05ff",
    "Thai": "\u0e00-\u0e7f",
    "Cyrillic": "\u0400-\u04ff",
    "Arabic": "\u0600-\u06ff",
    "Devanagari": "\u0900-\u097f",
}
"""Scripts; the first that a third of a text is in is its own: Japanese has Chinese signs, too."""
_SCRIPT = {name: re.compile(f"[{signs}]") for name, signs in _SCRIPTS.items()}
_SHARED = ("Cyrillic", "Arabic", "Devanagari")
"""Scripts of several languages; of those only Russian and Ukrainian have letters of their own here."""
_RUSSIAN, _UKRAINIAN = (
    re.compile("[\u044b\u044d\u042b\u042d]"),
    re.compile("[\u0456\u0457\u0454\u0406\u0407\u0404]"),
)
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_NOT_PROSE = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|\"[^\"\n]*\"|\u201c[^\u201d\n]*\u201d", re.DOTALL
)

# Small words that hardly any other language has: `die`, `in`, `war`, `on` or `la` would prove nothing.
# One that is written twice here proves twice as much.
_WORDS: Mapping[str, str] = {
    "English": (
        "the is are was were what which who whose why how does did do has have had this that "
        "these those with and of from they their there would should could it its it's i'm "
        "don't doesn't isn't can we our you your my be been not but if when where than then "
        "only about into to"
    ),
    "German": (
        "der das und ist nicht ein eine einen einem einer eines sich mit für auf den dem des "
        "von zu im zum zur wie warum wer wann wir ich sie wird werden sind haben hat "
        "kann können sollte sollen auch oder aber nur noch wenn dass bei nach über welche "
        "welcher welches gibt einen kein keine mir uns"
    ),
    "French": (
        "les des une est dans pour avec pas sur qui quel quelle quels quelles pourquoi "
        "pourquoi comment ce cette ces sont nous vous ils elle elles mais ou où au aux du "
        "leur être à plus faut quoi je c'est qu'est qu'il d'un d'une l'on n'est j'ai et"
    ),
    "Spanish": (
        "el los las una y es está son para qué cuál cuáles cuántos cuántas cuánto por cómo "
        "dónde cuándo quién pero más muy tiene tienen hay este esta estos del al ser sobre "
        "entre debemos debe mejor lo nos su sus"
    ),
    "Italian": (
        "il gli uno è che qual di nel nella della dello delle dei degli sono però perché "
        "perché come quale quali quanto quanti quante dove anche più questo questa questi ha "
        "hanno dobbiamo meglio alla allo ed"
    ),
    "Portuguese": (
        "os uma é são não em na nos nas pelo pela você qual quais quantos quantas mas mais "
        "tem têm isso esta este dos das ao à devemos melhor ou e o"
    ),
    "Dutch": (
        "is wat waarom het een niet van zijn wordt worden voor met ook maar welke hoe "
        "wij jij naar bij moeten kunnen heeft hebben deze dit dat er te"
    ),
    "Polish": (
        "jest nie się czy jak dlaczego który która które oraz dla przez ale ma są że jaka jaki jakie"
    ),
    "Swedish": ("och är att det som för inte av på vad varför hur vilken vilket ska bör eller från ett"),
    "Turkish": ("ve bir bu için ne nas\u0131l neden hangi ile de\u011fil mi m\u0131 daha olarak var"),
}
_TELLING: Mapping[str, str] = {
    "German": "warum",
    "French": "pourquoi quelle",
    "Italian": "perché qual",
    "Dutch": "waarom",
    "Polish": "dlaczego",
    "Swedish": "varför",
}
"""Words that count twice: a short question may have no other."""
_TAGS: Mapping[str, str] = {
    "English": "en", "German": "de", "French": "fr", "Spanish": "es", "Italian": "it",
    "Portuguese": "pt", "Dutch": "nl", "Polish": "pl", "Swedish": "sv", "Turkish": "tr",
    "Japanese": "ja", "Korean": "ko", "Chinese": "zh", "Greek": "el", "Hebrew": "he",
    "Thai": "th", "Russian": "ru", "Ukrainian": "uk",
}  # fmt: skip
"""Tags of languages (BCP 47)."""
_LANGUAGES: dict[str, list[str]] = {}
for _name, _words in (*_WORDS.items(), *_TELLING.items()):
    for _word in _words.split():
        _LANGUAGES.setdefault(_word, []).append(_name)


def script(text: str) -> str:
    """Return the script of a text, Latin unless a third of its letters are in another one."""
    return _script(_NOT_PROSE.sub(" ", text[:LONGEST]))


@lru_cache(maxsize=32)  # every prompt of a run asks for its question's
def language(text: str) -> str | None:
    """Return the English name of a text's language, `None` if it isn't certain."""
    prose = _NOT_PROSE.sub(" ", text[:LONGEST])
    written = _script(prose)
    if written == "Cyrillic":
        own = [
            name
            for name, letters in (("Russian", _RUSSIAN), ("Ukrainian", _UKRAINIAN))
            if letters.search(prose)
        ]
        return own[0] if len(own) == 1 else None
    if written != "Latin":
        return None if written in _SHARED else written
    votes: Counter[str] = Counter()
    for word in {each.lower().replace("\u2019", "'") for each in _WORD.findall(prose)}:
        votes.update(_LANGUAGES.get(word, ()))
    if "\u00bf" in prose or "\u00a1" in prose:
        votes["Spanish"] += CLEAR
    [(first, most), (_, next_most)] = (*votes.most_common(2), ("", 0), ("", 0))[:2]
    return first if most - next_most >= CLEAR else None


def tag(text: str) -> str | None:
    """Return the BCP 47 tag of a text's language, `None` if it isn't certain."""
    return _TAGS.get(language(text) or "")


def _script(prose: str) -> str:
    letters = sum(map(str.isalpha, prose))
    found = (name for name, signs in _SCRIPT.items() if 3 * len(signs.findall(prose)) > letters)
    return next(found, "Latin")
