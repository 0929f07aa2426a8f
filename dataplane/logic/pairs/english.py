"""Frames of English statements: contractions and adverbs are evened out, the subject becomes `S`, a table is asked.

Pattern letters: S the subject, V the value, N the noun that names the attribute; BE is, am, are; HAVE has, have.
The table covers what people say of themselves, their families and their work; it is our own (2026-11).
"""

import re
from collections.abc import Iterator

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
_STARTERS = frozenset(
    "the a an my our your his her their its this that these those there it we you they he she if when while after before"
    " today tomorrow yesterday now please remember note no yes not and but so because every each some call reach write ask tell you'll most all both in on"
    " at for from with by to as what who where how why which is are do does did can could would should will may".split()
)
_OPENING = re.compile(
    r"(?i)^(?:(?:well|actually|by the way|btw|fyi|hey|oh|so|just so you know|please note(?: that)?|note(?: that)?|for the record"
    r"|as you know|(?:please )?remember(?: that)?|in fact|to be clear)[,:]? )+"
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
    r"|with a passion|to death|deeply|strongly|dearly|especially|particularly|definitely|certainly|happily|fluently|professionally|every week)\b"
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
_AT_END = re.compile(r"\b(?i:of|with|treats|by|call|reach) (?P<name>[A-Z][\w-]*(?: [A-Z][\w-]*)*)(?= (?:on|at|under)\b|$)")
_ME, _MINE, _SPACES = re.compile(r"\b(?:i|me|myself)\b"), re.compile(r"\bmy\b"), re.compile(r" {2,}")
_PRONOUN = re.compile(r"(?P<own>his|her|their)\b|(?:he|she|they|we)\b")
_THING = re.compile(r"(?:the|our|this) (?P<thing>[\w -]{2,40}?)'s\b")
_NEGATION = re.compile(r"\b(?:do|does|did) (?:not|no longer) |\b(?:not|never|no longer) | (?:any ?more|any longer)$")
_BY_FIRST = re.compile(r"\w+")
_BE = r"(?:is|am|are)"
_ONE, _USUALLY, _MANY = Arity.ONE, Arity.USUALLY_ONE, Arity.MANY
_JOBS = (
    r"(?:\w+[- ]){0,2}(?:\w{3,}(?:er|or|ist|ian|eer|smith|wright|man|woman|yst)|nurse|chef|cook|pilot|clerk|judge|surgeon"
    r"|architect|accountant|consultant|assistant|attendant|student|vet|coach|agent|aide|ceo|cto|cfo|guide|scientist|maid)"
)
_DEGREES = r"(?:bachelor(?:'s)?|master(?:'s)?|phd|ph\.d\.?|doctorate|doctoral|mba|high school|associate(?:'s)?|ba|bsc|ma|msc)"
_PETS = r"(?:cat|dog|kitten|puppy|parrot|hamster|rabbit|goldfish|turtle|tortoise|snake|horse|beagle|poodle|\w*terrier|lizard)"
_NOUNS = (
    r"(?:(?:favou?rite|preferred) [\w ]+?|(?:[\w-]+ ){0,3}(?:name|nickname|number|password|passcode|pass ?phrase|code|pin|colou?r"
    r"|address|birthday|anniversary|size|plate|id|e-?mail|username|handle|price|salary|budget|deadline|due date|version|port"
    r"|capital|age|date|time|time ?zone|type|level|limit|goal|target|score|grade|rent|location|headquarters|hq|status|rate"
    r"|major|sign|religion|nationality|citizenship|currency|tongue|operating system|bedtime|temperature|weight|height|length"
    r"|width|duration|quota|hostname|url|website))"
)
_HOLDERS = (
    r"(?:[\w-]+ ){0,3}(?:bank|provider|insurer|carrier|owner|leader|lead|ceo|president|director|author|school|university|college"
    r"|gym|dentist|doctor|language|browser|editor|phone|laptop|computer|bike|shift|schedule|server|database|employer|workplace"
    r"|seat|room|hotel|gate|airline|diet)"
)
_TABLE: tuple[tuple[Attribute, str, tuple[str, ...]], ...] = (
    (Attribute("lives", _ONE), "live lives living reside resides residing based settled home house flat apartment moved"
     " relocated residence city town dwells dwell", (
        r"S (?:lives?|resides?|dwells?|BE (?:living|residing)|(?:has|have) been living) in V",
        r"S BE (?:based|settled|located) in V", r"S's (?:home|house|flat|apartment|place|residence) BE (?:located )?in V",
        r"S (?:has |have )?(?:moved|relocated|settled) (?:over )?(?:to|in) V", r"S (?:has|have) (?:a|S's)? ?home in V",
        r"S's (?:home|current|present) (?:city|location) BE V", r"S's (?:city|town|place) of residence BE V",
        r"S calls? V home", r"S makes? (?:his |her |S's )?home in V", r"V BE (?:the (?:city|town|place) )?where S lives?",
        r"V BE S's home", r"the (?:city|town|place) (?:where|that|in which) S lives? (?:in )?BE V")),
    (Attribute("address", _ONE), "address lives live", (
        r"S's (?:home |postal |mailing |street )?address BE V", r"S lives? at V")),
    (Attribute("hometown", _ONE), "from grew raised born hometown home", (
        r"S BE (?:originally )?from V", r"S (?:comes?|hails?|came) from V", r"S grew up in V",
        r"S was (?:born(?: and raised)?|raised|brought up) in V", r"S's (?:home ?town|birthplace|place of birth) BE (?:in )?V")),
    (Attribute("birthday", _ONE), "birthday born birth dob", (
        r"S's (?:birthday|date of birth|birth ?date|dob|birth day) (?:BE|falls) (?:on )?V", r"S was born on V",
        r"S (?:celebrates?|has|have) (?:a |an |S's |his |her )?birthday (?:every|each|on)(?: year on)? V",
        r"V BE (?:S's birthday|when S was born|the day S was born|S's date of birth)",
        r"S's birthday BE celebrated on V")),
    (Attribute("age", _ONE), "old age turned turn years year-old", (
        r"S BE (?P<v>[\w -]*?\d+|\w+|\w+-\w+)(?: |-)(?:years? |year-)old", r"S BE V years of age", r"S's age BE V",
        r"S (?:has |have )?(?:turned|turns?) (?P<v>[\w-]+)(?: years old)?", r"S BE (?P<v>\d{1,3})", r"S BE aged V")),
    (Attribute("name", _ONE), "name called named call goes go", (
        r"S's (?:full |real |first )?name BE V", r"S BE (?:called|named) V", r"(?:people|everyone|friends) calls? S V",
        r"S goes? by(?: the name(?: of)?)? V")),
    (Attribute("job", _ONE), "work works working job profession occupation trade living employed career is am", (
        r"S (?:works?|BE working|BE employed|serves?) as V", r"S (?:earns?|makes?) (?:a|his|her|S's)? ?living (?:as|being) V",
        r"S's (?:job|profession|occupation|line of work|trade|career|day job) BE (?:that of |being |working as )?V",
        r"S BE (?P<v>.+) by (?:profession|trade|occupation|training)", r"for a living,? S BE V", r"S BE V for a living",
        rf"S BE an? (?P<v>{_JOBS})", rf"S has a job as V|S have a job as (?P<w>.+)")),
    (Attribute("title", _ONE), "title position role rank", (
        r"S's (?:job )?(?:title|position|role|rank)(?: at work)? BE V", r"S holds? the (?:title|position|role) of V")),
    (Attribute("employer", _USUALLY), "work works working employer company firm workplace employed", (
        r"S (?:works?|BE working) (?:for|at) V", r"S's (?:employer|company|firm|workplace) BE (?:called )?V",
        r"S BE employed (?:by|at) V", r"V (?:employs|BE the employer of) S")),
    (Attribute("workplace", _USUALLY), "work works working office workplace", (
        r"S (?:works?|BE working) in V", r"S's (?:office|workplace|work) BE (?:located )?in V")),
    (Attribute("education", _ONE), "degree education qualification holds hold has have graduated", (
        rf"S (?:holds?|has|have|got|earned|completed) (?:an? |S's )?(?P<v>{_DEGREES}\b.*)",
        r"S's (?:highest )?(?:degree|education|qualification|level of education) BE V")),
    (Attribute("school", _USUALLY), "graduated school university college attended attends attend studies study went goes", (
        r"S (?:graduated from|attended|attends?|studied at|stud(?:y|ies) at|went to|goes? to) "
        r"(?P<v>.*(?:school|university|college|institute|academy|mit|eth|ucl).*)",
        r"S's (?:school|university|college|alma mater) BE V")),
    (Attribute("major", _ONE), "major majored majors majoring", (
        r"S (?:majored|majors?|BE majoring) in V", r"S's major (?:BE|was) V")),
    (Attribute("allergy", _MANY), "allergic allergy allergies intolerant", (
        r"S BE (?:severely )?allergic to V", r"S BE (?P<v>.+) intolerant", r"S BE intolerant (?:to|of) V",
        r"S can not (?:have|eat|tolerate|touch|drink) (?P<v>.+?),? (?:because of|due to) (?:an|the|S's|his|her) allergy",
        r"S's allerg(?:y|ies)(?: list)? (?:includes?|BE(?: to)?) V", r"S (?:has|have|suffers? from|got) an? (?P<v>.+?) allergy",
        r"S (?:has|have|suffers? from|got) an? (?:severe |bad )?allergy to V", r"V (?:trigger|cause)s? S's allergy",
        r"V gives? S an allergic reaction", r"S (?:reacts?|has allergic reactions?|have allergic reactions?) to V")),
    (Attribute("likes", _MANY), "like likes love loves enjoy enjoys adore adores fond keen fan into crazy among eat hobby"
     " hobbies pastime interest interests interested enough passion passionate time weekends favourites favorites", (
        r"S (?:likes?|loves?|enjoys?|adores?) (?:to (?:eat|have|drink|play|watch) |eating |drinking |having )?V",
        r"S BE (?:(?:very |quite )?(?:fond of|keen on|passionate about|interested in)|(?:an? )?(?:big |huge |great )?fan of"
        r"|into|crazy about|mad about) V",
        r"V BE (?:among|one of) (?:the )?(?:\w+ )?(?:that |which )?S (?:likes?|loves?|enjoys?)(?: the)?(?: most| best)?",
        r"V BE (?:among|one of) S's favou?rites?(?: \w+)?", r"S (?:would|could) eat V(?: any day| every day| all day)",
        r"S's (?:hobby|hobbies|(?:favou?rite )?pastime|interests?|passion) (?:BE|includes?) V",
        r"S can not get enough(?: of)? V", r"S spends? (?:his |her |S's |a lot of |most )?(?:free |spare )?"
        r"(?:time|weekends|evenings) (?:on )?V")),
    (Attribute("prefers", _USUALLY), "prefer prefers", (r"S (?:would )?prefers? V",)),
    (Attribute("car", _USUALLY), "drive drives car vehicle around driving", (
        r"S (?:drives?|BE driving)(?: around)?(?: in)? V", r"S's (?:car|vehicle) BE V", r"S gets? around in V",
        r"the (?:car|vehicle) (?:that )?S (?:drives?|owns?|has|have) BE V", r"V BE S's car")),
    (Attribute("pet", _USUALLY), "pet pets home living has have own owns keep keeps", (
        r"S's pet BE V", r"S (?:has|have|keeps?|owns?) V (?:at home|as a pet)", r"there BE V living with S",
        rf"S (?:has|have|owns?|keeps?|adopted) (?P<v>(?:an?|two|three|four|\d+) (?:\w+ )?{_PETS}s?(?: (?:called|named) \w+)?)",
        r"V lives? with S", r"V BE S's pet")),
    (Attribute("marital", _ONE), "single married divorced engaged widowed unmarried wed", (
        r"S (?:BE|got|BE getting) (?P<v>single|married|divorced|engaged|widowed|unmarried|separated)",)),
    (Attribute("spouse", _ONE), "married spouse", (r"S BE married to V", r"S's spouse BE V")),
    (Attribute("phone", _ONE), "phone mobile cell telephone cellphone call reach ring text number contact", (
        r"S's (?:contact )?(?:(?:phone|mobile|cell|cell ?phone|telephone)(?: phone)?(?: number)?|number) BE (?P<v>[+\d(][\d ()./-]+)",
        r"(?:you can )?(?:call|reach|ring|text|contact|phone) S (?:at|on|under) (?P<v>[+\d(][\d ()./-]+)",
        r"S can be (?:called|reached|contacted) (?:at|on|under) (?P<v>[+\d(][\d ()./-]+)")),
    (Attribute("email", _ONE), "email e-mail mail reach write contact", (
        r"S's e?-?mail(?: address)? BE (?P<v>\S+@\S+)",
        r"(?:you can )?(?:write to|e-?mail|reach|contact|mail) S (?:at|under|by e-?mail at) (?P<v>\S+@\S+)")),
    (Attribute("height", _ONE), "tall height measures measure stands stand", (
        r"S BE (?P<v>.*\d.*) tall", r"S's height BE V", r"S (?:measures?|stands?) (?P<v>.*\d.*?)(?: tall)?")),
    (Attribute("weight", _ONE), "weigh weighs weight", (r"S weighs? V", r"S's weight BE V")),
    (Attribute("language", _MANY), "speak speaks fluent speaking", (
        r"S (?:can )?speaks? (?:fluent )?V", r"S BE fluent in V", r"S BE a (?:fluent )?(?P<v>\w+) speaker")),
    (Attribute("native language", _ONE), "native mother tongue language", (
        r"S's (?:native|first) language BE V", r"S's mother tongue BE V", r"S BE a native (?P<v>\w+) speaker",
        r"S BE a native speaker of V")),
    (Attribute("diet", _ONE), "vegan vegetarian pescatarian diet meat", (
        r"S BE (?:an? )?(?P<v>vegan|vegetarian|pescatarian|meat[- ]eater|omnivore)", r"S follows? an? (?P<v>.+?) diet",
        r"S's diet BE V")),
    (Attribute("plays", _MANY), "play plays", (r"S plays? (?:the )?V",)),
    (Attribute("supports", _USUALLY), "support supports team", (r"S supports? V", r"S's (?:favou?rite )?team BE V")),
    (Attribute("wakes", _ONE), "wake wakes up gets get", (r"S (?:wakes?|gets?) up at V", r"S's alarm (?:BE set for|rings at) V")),
    (Attribute("sleeps", _ONE), "bed bedtime sleep", (r"S goes? to (?:bed|sleep) at V", r"S's bedtime BE V")),
    (Attribute("commutes", _USUALLY), "commute commutes work office", (
        r"S commutes? (?:to work )?(?:by|on|via) V", r"S (?:gets?|goes?|travels?) to (?:work|the office) (?:by|on) V")),
    (Attribute("children", _ONE), "children kids child sons daughters", (
        r"S (?:has|have) (?P<v>[\w-]+) (?:children|kids|child)", r"S BE (?:a )?(?:parent|mother|father) of V")),
    (Attribute("drinks", _MANY), "drink drinks", (r"S drinks? V",)),
    (Attribute("headquarters", _ONE), "headquartered headquarters hq", (
        r"S BE headquartered in V", r"S's (?:headquarters|hq) (?:BE (?:located )?in|BE|moved to) V",
        r"S (?:has |have )?moved (?:its )?(?:headquarters|hq) to V")),
)  # fmt: skip
_SPECIAL: tuple[tuple[str, str], ...] = (
    (r"(?:S's|the|this) (?P<n>NOUN) BE (?:called |set to |now )?V", "generic"),
    (r"S's (?P<n>HOLDER) BE (?:the |an? )?V", "holder"),
    (r"V BE S's (?P<n>(?:favou?rite|preferred) [\w ]+)", "generic"),
    (r"(?:the|which) (?P<n>[\w ]+?) (?:that )?S (?:likes?|loves?|prefers?) (?:the )?(?:best|most) BE V", "favourite"),
    (r"of all (?:the )?(?P<n>[\w]+?)s?,? S (?:likes?|loves?|prefers?) V (?:the )?(?:best|most)", "favourite"),
)


def _compiled(pattern: str) -> re.Pattern[str]:
    text = pattern.replace("BE", _BE).replace("NOUN", _NOUNS).replace("HOLDER", _HOLDERS)
    text = re.sub(r"(?<![\w<\\])V(?!\w)", r"(?P<v>.+)", text, count=1)
    return re.compile(text)


_SAME_NOUN = {"marital status": "marital", "phone number": "phone", "mobile number": "phone", "cell number": "phone",
    "wake time": "wakes",
}  # fmt: skip
_PATTERNS = tuple((attribute, tuple(_compiled(pattern) for pattern in patterns)) for attribute, _, patterns in _TABLE)
_GENERIC = tuple((_compiled(pattern), sort) for pattern, sort in _SPECIAL)


def _by_trigger() -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for number, (_, triggers, _) in enumerate(_TABLE):
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
    return Frame(who, found[0].name, found[0].arity, found[1], holds=False, whole=True) if found else _dislike(who, sentence)


_DISLIKE = re.compile(
    r"S (?:(?:really )?(?:hates?|dislikes?|detests?|despises?|loathes?)|can not (?:stand|bear)) (?:to (?:eat|drink) )?(?P<v>.+)"
)


def _dislike(who: str, sentence: str) -> Frame | None:
    found = _DISLIKE.fullmatch(sentence)
    return Frame(who, "likes", _MANY, found["v"], holds=False, whole=True) if found else None


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
            return Attribute(name, _USUALLY if sort == "holder" else _ONE), value
    return None


def _candidates(sentence: str) -> Iterator[int]:
    numbers = {number for word in _BY_FIRST.findall(sentence) for number in _TRIGGERS.get(word, ())}
    return iter(sorted(numbers))


def _value(found: re.Match[str]) -> str:
    value = next((text for name in ("v", "w") if (text := found.groupdict().get(name))), "")
    return value.strip(" ,.:;'\"")
