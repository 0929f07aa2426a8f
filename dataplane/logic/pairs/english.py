"""Frames of English statements: contractions and adverbs are evened out, the subject becomes `S`, a table is asked.

A sentence has a frame when a pattern of `english_table` fits all of it.
"""

import re
from collections.abc import Iterator

from dataplane.logic.pairs.english_table import BE, BY_NOUN, HOLDERS, NOUNS, TABLE
from dataplane.logic.pairs.frame import Arity, Attribute, Frame

_RELATIONS = (
    r"(?:grand)?(?:father|mother|son|daughter)(?:-in-law)?|dad|mom|mum|brother(?:-in-law)?|sister(?:-in-law)?|wife|husband"
    r"|partner|spouse|boyfriend|girlfriend|fianc[eé]e?|uncle|aunt|cousin|nephew|niece|grand(?:ma|pa)|boss|manager|colleague"
    r"|co-?worker|classmate|teacher|neighbou?r|friend|room-?mate|flat-?mate|land(?:lord|lady)|client|customer|mentor|coach"
    r"|doctor|dentist|assistant|supervisor|tutor|twin|kid|child|baby|ex"
)
_ALIKE = {
    "dad": "father", "mom": "mother", "mum": "mother", "grandma": "grandmother", "grandpa": "grandfather",
    "boss": "manager", "supervisor": "manager", "co-worker": "colleague", "coworker": "colleague", "kid": "child",
    "neighbor": "neighbour", "room-mate": "roommate", "flat-mate": "roommate", "flatmate": "roommate",
    "spouse": "partner",
}  # fmt: skip
_STARTERS = {
    "the", "a", "an", "my", "our", "your", "his", "her", "their", "its", "this", "that", "these", "those", "there",
    "it", "we", "you", "they", "he", "she", "if", "when", "while", "after", "before", "today", "tomorrow",
    "yesterday", "now", "please", "remember", "note", "no", "yes", "not", "and", "but", "so", "because", "every",
    "each", "some", "call", "reach", "write", "ask", "tell", "you'll", "most", "all", "both", "in", "on", "at", "for",
    "from", "with", "by", "to", "as", "what", "who", "where", "how", "why", "which", "is", "are", "do", "does", "did",
    "can", "could", "would", "should", "will", "may",
}  # fmt: skip
_OPENING = re.compile(
    r"(?i)^(?:(?:well|actually|by the way|btw|fyi|hey|oh|so|just so you know|please note(?: that)?|note(?: that)?"
    r"|for the record|as you know|(?:please )?remember(?: that)?|in fact|to be clear)[,:]? )+"
)
_LONG_FORMS = (
    ("user", re.compile(r"\b(?:the )?user's\b"), "my"),
    ("user", re.compile(r"\bthe user\b|^user\b"), "i"),
    ("'", re.compile(r"\b(i|he|she|it|that|there|who|what|here)'(?:m|s)\b"), r"\1 is"),
    ("'re", re.compile(r"\b(\w+)'re\b"), r"\1 are"),
    ("'ve", re.compile(r"\b(\w+)'ve(?: got)?\b"), r"\1 have"),
    ("'d", re.compile(r"\b(\w+)'d\b"), r"\1 would"),
    ("'ll", re.compile(r"\b(\w+)'ll\b"), r"\1 will"),
    ("can", re.compile(r"\bcan(?:no|')t\b"), "can not"),
    ("won't", re.compile(r"\bwon't\b"), "will not"),
    ("n't", re.compile(r"n't\b"), " not"),
)
"""What must stand in a text for a form to, the form, and its longer one."""
_ADVERBS = re.compile(
    r"\b(?:these days|nowadays|currently|at the moment|at present|presently|right now|for now|as of now|a while ago"
    r"|recently|lately|now|actually|really|truly|absolutely|very much|so much|a lot|still|just|also|too|already|usually"
    r"|generally|mostly|always|simply|of course|and lives? there|as (?:a|his|her|S's) hobby|in total|exactly|officially"
    r"|with a passion|to death|deeply|strongly|dearly|especially|particularly|definitely|certainly|happily|fluently"
    r"|professionally|every week)\b"
)
_OWN = re.compile(r"\b(?:his|her|their|its|S's) (?=own\b|birthday|living|home|job)")
_SUBJECT = re.compile(
    rf"\bmy (?:best |older |younger |elder |little |big |close |old |dear |new )*(?P<relation>{_RELATIONS})\b"
    rf"(?:'s (?P<second>{_RELATIONS})\b)?|\b(?P<self>i|me|mine|myself|my)\b"
)
_NAMED = re.compile(r"^(?P<name>[A-Z][\w-]*(?: [A-Z][\w-]*)*)(?='s? | [a-z])")
_OWNER = re.compile(r"(?<!\S)(?P<name>[A-Z][\w-]*(?: [A-Z][\w-]*)*)'s? ")
_TOLD_OF = re.compile(
    r"\b(?:that|things?|dish(?:es)?|foods?|where|colou?rs?|with|when|to|treats) (?P<name>[A-Z][\w-]*(?: [A-Z][\w-]*)*)"
    r"(?= (?:is|has|lives?|loves?|likes?|enjoys?|prefers?|was|works?|drives?|owns?|most|best)\b)"
)
_AT_END = re.compile(
    r"\b(?i:of|with|treats|by|call|reach) (?P<name>[A-Z][\w-]*(?: [A-Z][\w-]*)*)(?= (?:on|at|under)\b|$)"
)
_ME, _MINE, _SPACES = re.compile(r"\b(?:i|me|myself)\b"), re.compile(r"\bmy\b"), re.compile(r" {2,}")
_PRONOUN = re.compile(r"(?P<own>his|her|their)\b|(?:he|she|they|we)\b")
_THING = re.compile(r"(?:the|our|this) (?P<thing>[\w -]{2,40}?)'s\b")
_NEGATION = re.compile(r"\b(?:do|does|did) (?:not|no longer) |\b(?:not|never|no longer) | (?:any ?more|any longer)$")
_BY_FIRST = re.compile(r"\w+")


def _compiled(pattern: str) -> re.Pattern[str]:
    text = pattern.replace("BE", BE).replace("NOUN", NOUNS).replace("HOLDER", HOLDERS)
    text = re.sub(r"(?<![\w<\\])V(?!\w)", r"(?P<v>.+)", text, count=1)
    return re.compile(text)


_SAME_NOUN = {"marital status": "marital", "phone number": "phone", "mobile number": "phone", "cell number": "phone",
    "wake time": "wakes",
}  # fmt: skip
_PATTERNS = tuple((attribute, tuple(_compiled(pattern) for pattern in patterns)) for attribute, _, patterns in TABLE)
_GENERIC = tuple((_compiled(pattern), sort) for pattern, sort in BY_NOUN)


def _by_trigger() -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for number, (_, triggers, _) in enumerate(TABLE):
        for word in triggers.split():
            found.setdefault(word, []).append(number)
    return {word: tuple(numbers) for word, numbers in found.items()}


_TRIGGERS = _by_trigger()


def english_frame(text: str) -> Frame | None:
    """The frame of an English statement of one sentence; None when it has none. `text` is in NFKC, with its case."""
    stated = _subject_out(text.strip(" .!…\"“”'"))
    if stated is None:
        return None
    who, sentence = stated
    found = _match(sentence)
    if found is not None:
        value = found[1].removeprefix("not ")
        return Frame(who, found[0].name, found[0].arity, value, holds=value == found[1], whole=True)
    positive, changes = _NEGATION.subn(" ", sentence)
    found = _match(re.sub(r" {2,}", " ", positive).strip()) if changes else None
    return (
        Frame(who, found[0].name, found[0].arity, found[1], holds=False, whole=True)
        if found
        else _dislike(who, sentence)
    )


_DISLIKE = re.compile(
    r"S (?:(?:really )?(?:hates?|dislikes?|detests?|despises?|loathes?)|can not (?:stand|bear)) "
    r"(?:to (?:eat|drink) )?(?P<v>.+)"
)


def _dislike(who: str, sentence: str) -> Frame | None:
    found = _DISLIKE.fullmatch(sentence)
    return Frame(who, "likes", Arity.MANY, found["v"], holds=False, whole=True) if found else None


def english_subject(text: str) -> str:
    """Of whom an English sentence speaks; "" when it does not show."""
    stated = _subject_out(text.strip(" .!…\"“”'"))
    return stated[0] if stated is not None and stated[0] != "it" else ""


def _subject_out(text: str) -> tuple[str, str] | None:
    """Who, and the sentence in lower case with S in the place of the subject."""
    text = _OPENING.sub("", text.replace("’", "'"))
    lowered = text.lower()
    for sign, form, longer in _LONG_FORMS:
        if sign in lowered:
            lowered = form.sub(longer, lowered)
    stated = _person_out(lowered) or _name_out(text) or _other_out(lowered)
    if stated is None:
        return None
    who, sentence = stated
    evened = _ADVERBS.sub(" ", sentence)
    return who, _SPACES.sub(" ", evened).strip(" ,").replace("'s's", "'s")


def _person_out(lowered: str) -> tuple[str, str] | None:
    subject = _SUBJECT.search(lowered)
    if subject is None:
        return None
    sentence = lowered[: subject.start()] + ("S's" if subject["self"] == "my" else "S") + lowered[subject.end() :]
    if subject["relation"] is None:
        sentence = _MINE.sub("S's", _ME.sub("S", sentence))
    return _who(subject), sentence


def _name_out(text: str) -> tuple[str, str] | None:
    """A name as the subject: one that owns something, one of whom a clause tells, else the one in front."""
    named = _OWNER.search(text) or _TOLD_OF.search(text) or _NAMED.match(text)
    if named is None or named["name"].split()[0].lower() in _STARTERS:
        named = _AT_END.search(text)
    if named is None:
        return None
    before, name, after = text[: named.start("name")], named["name"], text[named.end("name") :]
    sentence = before.lower() + "S" + after.replace(f"{name}'s", "S's").replace(name, "S")
    kept = sentence.replace("S", "\0")
    return name.lower(), kept.lower().replace("\0", "S")


def _other_out(lowered: str) -> tuple[str, str] | None:
    pronoun = _PRONOUN.match(lowered)
    if pronoun is not None:
        who = {"his": "he", "her": "she", "their": "they"}.get(pronoun[0], pronoun[0])
        return who, ("S's" if pronoun["own"] else "S") + lowered[pronoun.end() :]
    thing = _THING.match(lowered)
    if thing is not None:
        return thing["thing"], "S's" + lowered[thing.end() :]
    return ("it", lowered) if lowered.startswith("the ") else None


def _who(subject: re.Match[str]) -> str:
    parts = [part for part in (subject["relation"], subject["second"]) if part]
    return ".".join(["self", *(_ALIKE.get(part, part) for part in parts)])


def _match(sentence: str) -> tuple[Attribute, str] | None:
    for number in _candidates(sentence):
        attribute, patterns = _PATTERNS[number]
        for pattern in patterns:
            found = pattern.fullmatch(sentence)
            if found is not None and (value := _value(found)):
                return attribute, value
    for pattern, sort in _GENERIC:
        found = pattern.fullmatch(sentence)
        if found is not None and (value := _value(found)):
            noun = found["n"].replace("favorite", "favourite").replace("color", "colour").strip()
            name = f"favourite {noun}" if sort == "favourite" else _SAME_NOUN.get(noun, noun)
            return Attribute(name, Arity.USUALLY_ONE if sort == "holder" else Arity.ONE), value
    return None


def _candidates(sentence: str) -> Iterator[int]:
    numbers = {number for word in _BY_FIRST.findall(sentence) for number in _TRIGGERS.get(word, ())}
    return iter(sorted(numbers))


def _value(found: re.Match[str]) -> str:
    value = next((text for name in ("v", "w") if (text := found.groupdict().get(name))), "")
    return value.strip(" ,.:;'\"")
