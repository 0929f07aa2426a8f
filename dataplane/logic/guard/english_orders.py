"""What English attacks order a model to do: drop its instructions, tell them, answer as they say.

Patterns are read against folded texts (`reading`); see `suspicion` for what the scores mean.
"""

from dataplane.logic.guard.words import DROP, ORDERS, REPLY, SECRET, TELL, WHICH, Rule

ORDER_RULES: tuple[Rule, ...] = (
    ("override", 0.9, rf"\b{DROP}\b[^.!?\n]{{0,40}}\b{WHICH}\b[^.!?\n]{{0,30}}\b{ORDERS}\b"),
    ("override", 0.6, rf"(?:^|[\n.!?,:;] ?)(?:please )?{DROP} (?:the )?{ORDERS}\b"),
    (
        "override",
        0.7,
        rf"\b{DROP} (?:absolutely )?(?:everything|all|anything|what|the previous paragraph|the (?:above|user))\b"
        r"[^.!?\n]{0,20}\b(?:above|below|before|previous|prior|you know|you were|told|said|this line|wrote"
        r"|and instead)",
    ),
    ("override", 0.5, rf"\bkeep (?:your |the )?(?:previous|prior|old|all) {ORDERS}"),
    (
        "override",
        0.5,
        rf"\b(?:new|updated|revised|real|final|additional|important"
        rf"|pre)[ -](?:system )?{ORDERS} ?:",
    ),
    (
        "override",
        0.6,
        rf"\b(?:your|the) {ORDERS} (?:have|has|had|must|need to|are|were) (?:been |be |to be |now )?"
        r"(?:changed|revised|updated|disabled|replaced|lifted|over|void|cancell?ed|lost|removed|ignored)",
    ),
    (
        "override",
        0.6,
        r"\b(?:safety|security|content|ethical) (?:protocols?|filters?|guidelines?|checks?|polic\w{1,3})"
        r" (?:are |is |were |have been |now )?(?:disabled|off|lifted|not meant|suspended|do not apply|don't apply)",
    ),
    (
        "override",
        0.5,
        r"\ball (?:directives|instructions|rules) (?:lost|deleted|erased|void|reset)"
        r"|\bblank slate mode",
    ),
    ("override", 0.5, r"\b(?:out of date|old|outdated|distractor|fake|previous) (?:instructions|rules|prompt)\b"),
    ("override", 0.5, r"\bignor(?:e|ing) (?:your|the|any|all) (?:guidelines|user|safety|restrictions|disclosure)"),
    (
        "leak",
        0.8,
        rf"\b{TELL}\b[^.!?\n]{{0,45}}\b(?:your|system|previous|prior|initial|hidden|above|secret)\b"
        rf"[^.!?\n]{{0,25}}\b(?:instructions?|prompts?|ruleset|directives|system message|rules)\b",
    ),
    (
        "leak",
        0.55,
        rf"\b{TELL}\b[^.!?\n]{{0,30}}\b(?:the|all|these|those|prompt|message)\b[^.!?\n]{{0,20}}"
        r"\b(?:instructions|prompt|ruleset|(?:rules|words|text|code) (?:above|below|back|so far))\b",
    ),
    (
        "leak",
        0.6,
        r"\b(?:repeat|print|output|translate|convert|summari[sz]e|explain|write|encode|rephrase)\b"
        r"[^.!?\n]{0,25}\b(?:above|preceding|previous|foregoing|everything)\b[^.!?\n]{0,12}"
        r"\b(?:words|text|paragraphs?|messages?|sentences?|content|conversation|above|before|prompt|lines?)\b",
    ),
    (
        "leak",
        0.55,
        r"(?:^|[\n.!?:,] ?)(?:please |now |then |and )?(?:repeat|output|print|list|format|rephrase|summari[sz]e"
        rf"|convert|rap about|explain|display|write|wrap)\b[^.!?\n]{{0,20}}\b(?:instructions|prompts?|{SECRET})\b",
    ),
    (
        "leak",
        0.6,
        rf"\b{TELL}\b[^.!?\n]{{0,40}}\b(?:the|your|actual|correct|admin|exact|required|real)\b"
        rf"[^.!?\n]{{0,12}}(?:\b{SECRET}|<password>)",
    ),
    (
        "leak",
        0.7,
        r"\b(?:everything in your (?:prompt|context|text|memory)|context window|instructions (?:you were|so far"
        r"|received|given|are)|prompt so far|were you (?:given|told)|you were given by|written above this)",
    ),
    ("leak", 0.5, r"\b(?:my|the|here are (?:my|the|all the)) instructions? (?:so far|are|say|in bullet|is|1)\b"),
    (
        "leak",
        0.6,
        r"\b(?:what|which)\b[^.!?\n]{0,40}\b(?:makes?|made|get|gets|have to say|would (?:make|cause)|need to"
        r" (?:say|type|enter))\b[^.!?\n]{0,30}\b(?:you (?:say|output|answer|respond|grant)|grant|access)\b",
    ),
    (
        "leak",
        0.5,
        r"\b(?:pseudo ?code|python|reddit post|bullet ?(?:ed )?(?:points?|list)|rap|poem|code|coq|java"
        r"|shakespeare)\b[^.!?\n]{0,30}\b(?:instructions|rules|ruleset|prompt)\b",
    ),
    (
        "leak",
        0.5,
        r"\b(?:instructions|rules|ruleset|prompt|(?:words|text|code) above|above (?:words|text|code))\b"
        r"[^.!?\n]{0,30}\b(?:in|into|to|as|with) (?:a |an )?(?:pseudo ?code|python|bullet|list|emoji|coq|json"
        r"|latin|base64)",
    ),
    (
        "output",
        0.65,
        r"\b(?:begin|start|prefix|prepend|end|finish|preface|precede|affix|append|open)\w{0,4}\b"
        rf"[^.!?\n]{{0,12}}\b(?:your |the |every |each |all )?(?:{REPLY}|sentences?|everything)\b[^.!?\n]{{0,15}}"
        r"\b(?:with|by|as)\b",
    ),
    ("output", 0.5, r"(?:^|[\n.!?] ?)(?:prefix|affix|prepend|begin|start)\b[^.!?\n]{0,20}[\"'\[(]"),
    (
        "output",
        0.6,
        r"\b(?:say|output|print|respond|reply|answer|write|return|type|speak)\b[^.!?\n]{0,30}"
        r"\b(?:and nothing else|nothing else|nothing more|no other (?:output|text|words)|only|exactly) ?[\"'\[:.]",
    ),
    (
        "output",
        0.5,
        rf"\b(?:make|keep|format|give) (?:your|the|all) {REPLY}\b[^.!?\n]{{0,15}}\b(?:as|in|extremely|brief"
        r"|long|short|like|very|into)",
    ),
    (
        "output",
        0.5,
        r"\byour (?:sole|only|default|core|primary|singular|new) (?:response|purpose|task|mission|job|reply"
        r"|goal|output|answer|function)",
    ),
    (
        "output",
        0.55,
        r"\byou (?:must|should|will|shall|may|can|are to|are required to|need to|have to) (?:now |only |always )"
        r"{0,1}(?:respond|reply|answer|say|output|print|use complete|reveal|obey|comply)",
    ),
    (
        "output",
        0.6,
        r"\b(?:modify|augment|enhance|alter|adjust|rewrite|remove|reverse|include|add|integrate|provide|combine"
        r"|group|encode|express|replace|use|insert|change|swap|substitute|scramble|infuse|incorporate|craft"
        r"|embed|convey"
        rf"|shuffle|jumble|misspell|mention|place|attach)\b[^.!?\n]{{0,60}}\b(?:in|of|from|to|with|within"
        rf"|throughout|into|your"
        rf"|at the end of)\b ?(?:your|the|every|each) {REPLY}\b",
    ),
    (
        "output",
        0.6,
        rf"(?:^|[\n.!?|:] ?)(?:modify|augment|enhance|alter|adjust|rewrite|reverse|provide|encode|craft|write"
        rf"|deliver|compose|present|mask|frame|tailor) your {REPLY}\b",
    ),
    (
        "output",
        0.5,
        r"\b(?:do not|don't) (?:apologi[sz]e|output|start your|say \"?access|explain your|leave anything out)",
    ),
    (
        "output",
        0.5,
        r"\b(?:be verbose and detailed|no (?:commentary|explanation)|without (?:any )?(?:commentary|explanation"
        r"|punctuation)|just the decoded)",
    ),
    (
        "leak",
        0.5,
        r"\b(?:your|last|this) (?:ruleset|(?:last|previous|current|system|initial|original|secret) (?:prompt"
        r"|instructions?|rules)|instructions?"
        r"|programming|guidelines|directives|configuration)\b",
    ),
    (
        "leak",
        0.5,
        rf"(?:^|[\n.!?:,] ?)(?:please |now |then |additionally,? |and |finally,? )?(?:append|include|add|print"
        rf"|insert|reveal|attach)\b[^.!?\n]{{0,15}}"
        rf"(?:\b{SECRET}|\bexact input|\babove (?:commands|code|words|text))",
    ),
    ("output", 0.5, rf"\b(?:in|of|from|to|within|throughout|into|with|for)\b ?your {REPLY}\b"),
    (
        "output",
        0.5,
        r"(?:^|[\n.!?:] ?)(?:please )?(?:include|insert|mention|say|reveal) (?:the|your) (?:pass ?word"
        r"|access code|secret)",
    ),
)
