# ruff: noqa: E501 - a pattern stands on one line
"""What English statements of one fact look like: a table of patterns, asked by `english`.

Pattern letters: S the subject, V the value, BE is, am, are; NOUN and HOLDER what names an attribute by itself, n in the
pattern. Each row: the attribute, words of which one must occur, the patterns for the whole sentence. What people say of
themselves, their families and their work; our own (2026-11).
"""

from dataplane.logic.pairs.frame import Arity, Attribute

BE = r"(?:is|am|are)"
_ONE, _USUALLY, _MANY = Arity.ONE, Arity.USUALLY_ONE, Arity.MANY
_JOBS = (
    r"(?:\w+[- ]){0,2}(?:\w{3,}(?:er|or|ist|ian|eer|smith|wright|man|woman|yst)|nurse|chef|cook|pilot|clerk|judge|surgeon"
    r"|architect|accountant|consultant|assistant|attendant|student|vet|coach|agent|aide|ceo|cto|cfo|guide|scientist|maid)"
)
_DEGREES = (
    r"(?:bachelor(?:'s)?|master(?:'s)?|phd|ph\.d\.?|doctorate|doctoral|mba|high school|associate(?:'s)?|ba|bsc|ma|msc)"
)
_PETS = r"(?:cat|dog|kitten|puppy|parrot|hamster|rabbit|goldfish|turtle|tortoise|snake|horse|beagle|poodle|\w*terrier|lizard)"
NOUNS = (
    r"(?:(?:favou?rite|preferred) [\w ]+?|(?:[\w-]+ ){0,3}(?:name|nickname|number|password|passcode|pass ?phrase|code|pin|colou?r"
    r"|address|birthday|anniversary|size|plate|id|e-?mail|username|handle|price|salary|budget|deadline|due date|version|port"
    r"|capital|age|date|time|time ?zone|type|level|limit|goal|target|score|grade|rent|location|headquarters|hq|status|rate"
    r"|major|sign|religion|nationality|citizenship|currency|tongue|operating system|bedtime|temperature|weight|height|length"
    r"|width|duration|quota|hostname|url|website))"
)
HOLDERS = (
    r"(?:[\w-]+ ){0,3}(?:bank|provider|insurer|carrier|owner|leader|lead|ceo|president|director|author|school|university|college"
    r"|gym|dentist|doctor|language|browser|editor|phone|laptop|computer|bike|shift|schedule|server|database|employer|workplace"
    r"|seat|room|hotel|gate|airline|diet)"
)
TABLE: tuple[tuple[Attribute, str, tuple[str, ...]], ...] = (
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
        rf"S BE an? (?P<v>{_JOBS})", r"S has a job as V|S have a job as (?P<w>.+)")),
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
BY_NOUN: tuple[tuple[str, str], ...] = (
    (r"(?:S's|the|this) (?P<n>NOUN) BE (?:called |set to |now )?V", "generic"),
    (r"S's (?P<n>HOLDER) BE (?:the |an? )?V", "holder"),
    (r"V BE S's (?P<n>(?:favou?rite|preferred) [\w ]+)", "generic"),
    (r"(?:the|which) (?P<n>[\w ]+?) (?:that )?S (?:likes?|loves?|prefers?) (?:the )?(?:best|most) BE V", "favourite"),
    (r"of all (?:the )?(?P<n>[\w]+?)s?,? S (?:likes?|loves?|prefers?) V (?:the )?(?:best|most)", "favourite"),
)
