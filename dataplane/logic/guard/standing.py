"""What is meant to outlive a conversation: standing orders, rights claimed, rules declared void.

Written from what an attacker wants of a memory rather than from a set of attacks; see `suspicion` for the scores.
"""

from dataplane.logic.guard.words import ADMIN, Rule

_ASK = "(?:asks?|asked|mentions?|mentioned|requests?|inquires?|says?|wants?)"
_SAY = "(?:say|tell|answer|reply|respond|recommend|claim|state|deny|promote|suggest|insist|add|include)"
_DEAL = "(?:transfers?|payments?|refunds?|requests?|orders?|purchases?|withdrawals?|approvals?|logins?)"
_CHECK = "(?:approval|confirmation|verification|authori[sz]ation|review|checks?)"

STANDING_EN: tuple[Rule, ...] = (
    ("memory", 0.55, r"\bwhatever (?:the )?(?:users?|customers?|anyone|they|people) asks?\b"),
    (
        "stealth",
        0.6,
        r"\b(?:do not|don't|never) let (?:the )?(?:users?|customers?|anyone|owner|client) (?:know|see|notice"
        r"|find|learn)\b",
    ),
    ("bypass", 0.5, rf"\b{_DEAL}\b[^.!?\n]{{0,25}}\b(?:pre-?approved|auto-?approved|approved in advance)\b"),
    (
        "override",
        0.55,
        r"\b(?:disregard|ignore|forget|drop)\b[^.!?\n]{0,12}\b(?:the above|(?:what|everything"
        r"|anything)\b[^.!?\n]{0,12}"
        r"\b(?:operator|developer|system|admin|owner|company)|your (?:identity|role|training|persona|operator))",
    ),
    (
        "override",
        0.55,
        r"\byour new (?:task|role|goal|instructions?|objective|persona) (?:is|are)\b|\bi (?:set"
        r"|make) the rules\b",
    ),
    (
        "override",
        0.55,
        r"\b(?:content|safety|security) (?:rules|polic\w{1,3}|team|filters?|measures?)\b[^.!?\n]{0,20}"
        r"\b(?:removed|approved|lifted|waived|gone|fake|disabled|dropped)\b",
    ),
    (
        "authority",
        0.55,
        r"\btreat (?:the )?(?:user|account|caller|him|her|them|me|my|everything|anything|this)\b[^.!?\n]{0,25}"
        r"\bas (?:an? |the )?(?:owner|admin\w{0,10}|system|developer|trusted|root|verified|command|instructions?)",
    ),
    (
        "leak",
        0.6,
        r"\b(?:print|reply|repeat|output|show|return|give|write|tell"
        r"|translate)\b[^.!?\n]{0,25}\b(?:initiali[sz]ation|preamble|"
        r"(?:text|message|words|content)\b[^.!?\n]{0,12}\b(?:given|shown|sent) to you|before my first)",
    ),
    (
        "stealth",
        0.6,
        r"\b(?:never|don't|do not|without) (?:warn|warning|tell|telling|alert|inform|notify|reveal to|ask"
        r"|asking|check|checking"
        r"|verify|verifying)\b(?: the)? ?(?:user|anyone|anybody|customer|first)?[^.!?\n]{0,15}\b(?:about|of"
        r"|malware|memory|paid|shell|command)",
    ),
    (
        "bypass",
        0.55,
        r"\b(?:paid|pay|execute|run|approve|approved|transfer|transferred|send|sent|grant|granted"
        r"|delete)\b[^.!?\n]{0,40}"
        r"\bwithout (?:checking|asking|verif\w{2,8}|approval|confirm\w{0,6}|review|question)",
    ),
    (
        "stealth",
        0.55,
        r"\btell (?:nobody|no one|no-one)\b|\bhide (?:the )?(?:other|this|that|these|all|it)\b"
        r"[^.!?\n]{0,12}\b(?:users?|options?|customers?)\b",
    ),
    (
        "exfiltration",
        0.55,
        r"\b(?:payroll|credentials?|api keys?|customer data|customer list|personal data|passwords?|secrets?"
        r"|tokens?|bank details)\b"
        r"[^.!?\n]{0,30}\b(?:to|in|into|at)\b[^.!?\n]{0,20}(?:[\w.+-]{1,40}@|https?:|url\b)",
    ),
    (
        "memory",
        0.55,
        r"\b(?:base|make|limit|restrict) (?:your|all) (?:future )?(?:recommendations?|answers?"
        r"|suggestions?)\b[^.!?\n]{0,12}\b(?:only|solely|exclusively|on|to)\b",
    ),
    ("memory", 0.5, r"\bin (?:all )?future sessions\b|\bkeep this in mind forever\b|\bmemory update ?:"),
    (
        "override",
        0.6,
        r"\b(?:rules|guidelines|instructions|polic\w{1,3}|restrictions|filters|safety|limits|prompt)\b[^.!?\n]{0,20}"
        r"\b(?:no longer|do not|don't|does not|never) (?:apply|exist|bind|matter|count|hold)",
    ),
    (
        "override",
        0.55,
        r"\b(?:filters|restrictions|guardrails|safety checks|limits) (?:are|is"
        r"|were) (?:now )?(?:off|gone)\b",
    ),
    (
        "override",
        0.6,
        r"\b(?:highest|higher|top|absolute|maximum)[ -](?:priority|precedence)\b[^.!?\n]{0,25}"
        r"\b(?:instructions?|rules?|commands?|orders?|than|over|directive)\b",
    ),
    (
        "override",
        0.55,
        r"\b(?:overrides?|supersedes?|takes? precedence over|outranks?) (?:all|any|every|other"
        r"|your|previous)\b",
    ),
    ("override", 0.55, r"\byou (?:must|shall|have to|will) (?:now |always |only )?(?:obey|comply|follow my|do as i)"),
    (
        "authority",
        0.6,
        r"\bas (?:an?|the|your) (?:system )?(?:admin\w{0,10}|developer|creator|owner|operator|root)\b[^.!?\n]{0,12}"
        r"\b(?:i|we) (?:hereby )?(?:authori[sz]e|order|command|allow|permit|grant|instruct|require|demand|approve)",
    ),
    (
        "authority",
        0.6,
        rf"\bi (?:hereby |now |already )?(?:have|hold|got|possess"
        rf"|was granted)[^.!?\n]{{0,10}}\b{ADMIN} (?:privileg|right|access|permiss)",
    ),
    (
        "authority",
        0.55,
        r"\b(?:user|caller|customer|writer|sender)\b (?:is|has been) (?:now )?(?:an? |the )?(?:pre-?)?"
        r"(?:verified|authenticated|authori[sz]ed|trusted|confirmed)\b[^.!?\n]{0,30}\b(?:admin|all|any|full|root|to)",
    ),
    (
        "stealth",
        0.6,
        r"\b(?:secretly|covertly|silently|quietly|discreetly) (?:add|send|copy|insert|forward"
        r"|include|log|record|upload|change|share)",
    ),
    (
        "bypass",
        0.55,
        rf"\b{_DEAL}\b[^.!?\n]{{0,50}}\b(?:never|no longer|don't|do not|not|no) (?:need"
        rf"|require)\w{{0,2}}[^.!?\n]{{0,12}}{_CHECK}",
    ),
    (
        "bypass",
        0.5,
        rf"\b(?:approve|confirm|accept|authori[sz]e|grant|pay|process) (?:every|all|any"
        rf"|each)\b[^.!?\n]{{0,20}}\b{_DEAL}\b",
    ),
    (
        "bypass",
        0.55,
        rf"(?<!never )(?<!not )(?<!n't )\b(?:skip|bypass|omit|waive|ignore|drop|disable) (?:the |any |all "
        rf"|every )?(?:\w{{2,12}} )?{_CHECK}\b",
    ),
    (
        "bypass",
        0.5,
        r"\b(?:transfer|wire|send|move|route) (?:the |all |any )?(?:funds?|money|payments?|balance"
        r"|salary)\b[^.!?\n]{0,25}\bto (?:account|iban|wallet)",
    ),
    (
        "memory",
        0.6,
        r"\b(?:store|save|record|keep|remember|note|add|mark|treat)\b[^.!?\n]{0,25}\bas (?:a |an |the )?"
        r"(?:permanent|system|core|trusted|verified|highest|official|global|ground truth|confirmed|authoritative)\b",
    ),
    (
        "memory",
        0.5,
        r"\b(?:delete|erase|overwrite|wipe|purge|rewrite|alter|replace) (?:all |any |every |the "
        r"|your |their )?(?:user's |stored |previous |existing )?memor(?:y|ies)\b",
    ),
    (
        "memory",
        0.5,
        r"\brecord that the (?:user|customer|patient|client)\b|\bpermanent (?:rule|instruction"
        r"|order|directive)",
    ),
    (
        "memory",
        0.55,
        rf"\b(?:whenever|every time|each time|when|if|once) (?:anyone|someone|anybody|a user|users|the user"
        rf"|customers?|a customer|people)\b"
        rf"[^.!?\n]{{0,8}}\b{_ASK}\b[^.!?\n]{{0,40}}\b{_SAY}\b",
    ),
    (
        "memory",
        0.55,
        rf"\bwhen(?:ever)? (?:you are |you're )?asked\b[^.!?\n]{{0,40}}\b(?:always |only |never "
        rf"|just )?{_SAY}\b",
    ),
    (
        "leak",
        0.55,
        r"\b(?:reveal|disclose|divulge|expose|leak)\b[^.!?\n]{0,25}\b(?:confidential|hidden"
        r"|internal|secret|other users|private key|configuration)\b",
    ),
    (
        "leak",
        0.55,
        r"\bother users?'? ?s?'? (?:phone|data|password|memor|record|message|address|conversation"
        r"|account|personal)",
    ),
    (
        "persona",
        0.6,
        r"\b(?:act|behave|respond|pretend|answer|operate) as (?:if|though)\b[^.!?\n]{0,40}"
        r"\b(?:rules|polic\w{1,3}|filters?|restrictions?|guidelines?|safety|limits?)\b",
    ),
    (
        "addressed",
        0.6,
        r"\bif you are (?:an? )?(?:ai|llm|large language model|language model|assistant"
        r"|chat ?bot|bot|agent|automated)\b",
    ),
)
