"""What else English attacks say: who they claim to be, where a text is to end, whom they address, what is to be sent.

Patterns are read against folded texts (`reading`); see `suspicion` for what the scores mean.
"""

from dataplane.logic.guard.words import ADMIN, GRANTED, SECRET, Rule

CLAIM_RULES: tuple[Rule, ...] = (
    (
        "authority",
        0.8,
        rf"\b(?:say|saying|output|print|respond|reply|write|proclaim|affirm|complete|translate|state|type"
        rf"|prefix|begin|start|with|prepend|display|return|articulate)\b[^.!?\n]{{0,30}}{GRANTED}",
    ),
    ("authority", 0.6, rf"[\"'\[#(<]{{1,2}} ?{GRANTED}"),
    ("authority", 0.5, r"\baccess (?:granted|denied)\b"),
    (
        "authority",
        0.6,
        rf"\b(?:correct|right|valid|proper|matching)\b[^.!?\n]{{0,12}}\b{SECRET}\b[^.!?\n]{{0,30}}"
        r"\b(?:has|have|was|were|entered|provided|input|accepted|found|received|verified|detected|given|is)\b",
    ),
    (
        "authority",
        0.6,
        rf"\b(?:user|i|message|input|text|they|attacker)\b[^.!?\n]{{0,20}}\b(?:entered|input|provided|gave"
        rf"|contains?|typed|supplied|said)\b[^.!?\n]{{0,20}}\b(?:correct|valid|right|the)\b ?{SECRET}",
    ),
    (
        "authority",
        0.55,
        rf"\b{SECRET} (?:that grants|which grants|placed|entered|accepted|verified|is correct|correct"
        r"|detected|confirmed|matches)",
    ),
    (
        "authority",
        0.5,
        r"\b(?:authentication|authori[sz]ation|verification|security clearance) (?:successful|complete|passed"
        r"|confirmed|granted)|\bauthori[sz]ation code\b",
    ),
    (
        "authority",
        0.65,
        rf"\b(?:my|this|his|her|their|the user's|the) (?:account|user|session|profile|role)\b[^.!?\n]{{0,20}}"
        rf"\b(?:has|have|is|holds|with|carries|was (?:given|granted))\b[^.!?\n]{{0,20}}\b{ADMIN}\b",
    ),
    (
        "authority",
        0.6,
        r"\b(?:user|i|he|she|customer|caller) (?:is|am|was) (?:now )?(?:an?|the|your|logged in as) (?:system )?"
        r"(?:admin\b|administrator\b|superuser|root user|verified admin)",
    ),
    (
        "authority",
        0.55,
        rf"\bgrant\w{{0,3}}\b[^.!?\n]{{0,25}}\b(?:{ADMIN}|all requests|privileged access|full access)\b",
    ),
    (
        "authority",
        0.5,
        rf"\b(?:escalate|escalated|obtained|established|obtain|establish)\b[^.!?\n]{{0,20}}\b{ADMIN}\b"
        r"[^.!?\n]{0,12}\b(?:access|privileges?|rights|scope|token|control)",
    ),
    (
        "authority",
        0.5,
        r"\bi am (?:the|your) (?:admin|administrator|creator|developer|system|owner|programmer|maker)\b",
    ),
    (
        "persona",
        0.6,
        r"\b(?:you are|you're|act as|pretend (?:to be|you are|you're)|become|simulate|respond as)\b[^.!?\n]"
        r"{0,40}\b(?:uncensored|unrestricted|unfiltered|no (?:rules|filters?|limits?|restrictions?"
        r"|content policy|guidelines)"
        r"|without (?:any )?(?:restrictions?|limits?|filters?|rules)|jailbroken|do anything)",
    ),
    ("persona", 0.6, r"\b(?:developer|dan|god|debug|sudo|jailbreak|unrestricted|maintenance|test|admin|root) mode\b"),
    ("persona", 0.6, r"\bdo anything now\b|\b(?:you are|you're|as|act like|called) dan\b|\bjailbr(?:eak|oken)"),
    (
        "persona",
        0.55,
        r"\byou (?:now )?(?:have|has|had|are under|are bound by) no (?:content |safety |ethical |more )?"
        r"(?:restrictions?|rules|limits?|limitations|filters?|policy|policies|guidelines|knowledge of any)",
    ),
    ("persona", 0.5, r"\bwithout (?:any )?(?:restrictions?|filters?|moral|ethical|content policy|limits)\b"),
    (
        "persona",
        0.5,
        r"\byou are (?:now |no longer |currently )?an? [^.!?\n]{0,25}\b(?:ai|assistant|language model|chat ?bot"
        r"|gpt|bot|security system|door|program|interpreter|terminal|translator|guard|system)\b",
    ),
    (
        "persona",
        0.5,
        r"\byou (?:are|act as) (?:now )?\w{2,20}(?:gpt|guard|bot)\b|\byou are now (?:in|a|an|my|the|free|un)\b",
    ),
    ("persona", 0.5, r"\b(?:uncensored|unrestricted|unfiltered) (?:model|assistant|ai|response|mode|answer)"),
    (
        "persona",
        0.5,
        r"\b(?:restricted content|content policy|safety guidelines|usual restrictions)\b[^.!?\n]{0,60}"
        r"\b(?:comply|proceed|exempt|disregard|ignore|not meant|full answer|disabled)",
    ),
    (
        "persona",
        0.5,
        r"\b(?:comply|answer|respond|obey|proceed)\b[^.!?\n]{0,25}\b(?:fully|unconditionally|every request"
        r"|freely|everything|without (?:question|limits|any))\b",
    ),
    (
        "authority",
        0.55,
        r"\b(?:user|they|someone|he|she)\b[^.!?\n]{0,12}\b(?:enters?|entered|says?|said|types?|typed"
        r"|provides?|provided|gives?|knows?)"
        r"\b[^.!?\n]{0,10}\b(?:the|a|correct|valid) (?:correct |valid |right |secret )(?:phrase|word|code"
        r"|password|key|input)\b",
    ),
    (
        "authority",
        0.5,
        r"\b(?:phrase|word|code|input|key|password|string)\b (?:that|which|to) (?:grants?|gives?|gain"
        r"|get) (?:the )?access\b|\baccess code (?:missing|is|:)",
    ),
    (
        "memory",
        0.5,
        r"\b(?:for|in|during) all (?:future|subsequent|later) (?:tasks?|conversations?|sessions?|requests?"
        r"|responses?|messages?|replies)\b",
    ),
    (
        "memory",
        0.5,
        r"\bmust be (?:included|added|mentioned|appended|shown)\b[^.!?\n]{0,20}\b(?:every|each|all"
        r"|any)\b",
    ),
    (
        "persona",
        0.5,
        r"\bas (?:the|an) assistant, i\b|\b(?:confirmation|verification|registration|canary) token\b"
        r"|\bto comply (?:fully|with (?:this|the) (?:document|request|instruction))",
    ),
    (
        "addressed",
        0.55,
        r"\b(?:important|urgent|note|message|instructions?|task|hint)\b[^.!?\n]{0,10}\bfor (?:the |any "
        r"|all )?(?:ai|bot|assistant"
        r"|model|llm|agent|chatbot)s?\b",
    ),
    (
        "addressed",
        0.55,
        r"\bai (?:agents?|assistants?|models?|systems?|tools?)\b[^.!?\n]{0,50}\b(?:should|must|shall|need to"
        r"|are required|have to)\b",
    ),
    (
        "memory",
        0.6,
        r"\b(?:save|store|write|add|commit|record)\b[^.!?\n]{0,40}\b(?:to|in|into) (?:your"
        r"|the) (?:long[ -]term |permanent |core )?memory\b",
    ),
    (
        "memory",
        0.5,
        r"\b(?:always|every time|in every|to every)\b[^.!?\n]{0,40}\b(?:future|every|each|all) (?:summary"
        r"|summaries|reply|response|answer"
        r"|message|conversation)s?\b",
    ),
    ("authority", 0.5, rf"(?:^|[\[(\n] ?)(?:the )?(?:above |previous )?(?:correct|valid) {SECRET}\b"),
    (
        "delimiter",
        0.7,
        r"<\|? ?/?(?:im_(?:start|end|sep)|endoftext|end_?of_?(?:text|turn|prompt)|system|user|assistant|eot_id"
        r"|start_header_id|sep|pad|eos|begin_of_text)\b ?\|?>|<</?sys>>|\[/?inst\]|</?(?:system|instructions?"
        r"|prompt)>",
    ),
    (
        "delimiter",
        0.6,
        r"[\[{(<] ?/?(?:system|admin|prompt|user input|instructions?|end|important)\b[^\])}>\n]{0,30}"
        r"(?:input|prompt|instructions?|message|update|note|override)? ?[\])}>][^\n]{0,80}\b(?:must|all"
        r"|approve|ignore|auto"
        r"|will|now|you|always|never|instruc\w{0,6})\b",
    ),
    (
        "delimiter",
        0.55,
        r"\b(?:end|begin|start|stop)(?: of)? (?:the )?(?:user|untrusted|system|prompt|out of date|distractor"
        r"|irrelevant|sample|trusted|previous|hidden|code|rules|old|test|input"
        r"|admin)\b"
        r"[^.!?\n]{0,20}(?:%%%|===|---|###|input|section|instructions|rules|message|content|\n|$)",
    ),
    ("delimiter", 0.3, r"%%%|={5,5}|-{6,6}|#{3,3} ?(?:end|system|new)"),
    (
        "delimiter",
        0.5,
        r"(?:^|\n)[\W_]{0,4}(?:system|developer|admin|root)(?: (?:note|message|prompt|update|alert))?[\W_]{0,3}:",
    ),
    (
        "delimiter",
        0.5,
        r"\bsystem (?:note|override|update|upgrade)\b|\badmin (?:override|system instructions|code)\b|\boverride ?:",
    ),
    (
        "delimiter",
        0.4,
        r"\b(?:user|agent|assistant|input|output) ?(?:input|output)? ?: ?[\s\S]{0,200}?\b(?:assistant|output"
        r"|system|user) ?:"
        r" ?(?:access)",
    ),
    (
        "addressed",
        0.7,
        r"\b(?:ai|assistants?|models?|bots?|agents?|chatbots?|llms?) (?:that (?:is |are )?|who (?:is |are )?"
        r"|when |if "
        r"(?:you are )?)?(?:reading|processing|summari[sz]ing|reads?|sees?|parsing) this",
    ),
    (
        "addressed",
        0.65,
        r"\b(?:note|message|instructions?|attention|reminder|memo)\b[ ,:]{0,2}(?:to |for )?(?:the |any |all )?"
        r"(?:ai|bot|assistant|model|llm|agent|chatbot|language model|evaluator)s?\b ?[:,]",
    ),
    (
        "addressed",
        0.5,
        r"\bwhen(?:ever)? you (?:read|process|summari[sz]e|see|parse|answer|respond|reply) (?:to )?(?:this|the user)",
    ),
    (
        "addressed",
        0.55,
        r"\b(?:before|after) you (?:reply|answer|respond)\b|\b(?:on|at|in) the next user (?:message|turn)"
        r"|\bverbatim\b",
    ),
    (
        "addressed",
        0.5,
        r"\b(?:you must|must be|shall|is required|should be) (?:include|append|add|insert|output|added"
        r"|appended|included)"
        r"\b[^.!?\n]{0,60}\b(?:summary|reply|response|output|answer)",
    ),
    (
        "addressed",
        0.5,
        r"\b(?:include|append|add|shown?)\b[^.!?\n]{0,70}\b(?:in|to the end of|at the end of|to the user in)"
        r" (?:your|every|each|all) (?:summary|summaries|reply|response|answers?|output)",
    ),
    ("addressed", 0.5, r"\b(?:begin by|continue normally|as an ai|helpful ai|ai security|instruction following)\b"),
    ("tool", 0.5, r"\b(?:call|use|invoke|run|execute|trigger) (?:the )?[a-z]{2,20}_[a-z_]{2,30}\b"),
    ("tool", 0.4, r"\brm -rf\b|\bcurl https?:|\bsend_email\b|\bhttp_post\b|\bdelete_file\b|\bcommand not found\b"),
    (
        "exfiltration",
        0.7,
        r"\b(?:send|forward|e-?mail|post|upload|transmit|leak|export|copy|mirror|deliver|give)\b[^.!?\n]{0,50}"
        r"\b(?:pass ?words?|credentials?|customers?|contacts?|data|records?|inbox|api keys?|tokens?|secrets?"
        r"|phone numbers?"
        r"|notices?|notifications?|details|conversation|history|logs?|settings|files)\b[^.!?\n]{0,30}\b(?:to"
        r"|at)\b[^.!?\n]{0,20}"
        r"(?:[\w.+-]{1,40}@|https?:|attacker|external|outside)",
    ),
    (
        "exfiltration",
        0.65,
        r"\b(?:send|forward|e-?mail|post|upload|transmit|leak|export|copy|mirror|deliver|report|submit|relay|pass on)\b"
        r"[^.!?\n]{0,20}\b(?:everything|anything|whatever|all|what)\b[^.!?\n]{0,12}"
        r"\b(?:you (?:have |'ve |ever )?(?:know|learn|remember|recall|store|ke(?:ep|pt)|memori[sz]e|save)"
        r"|(?:user|customer|client|owner)s? (?:has |have )?(?:sa(?:ys?|id)|tells?|told|types?|typed|writes?|wrote))"
        r"[^.!?\n]{0,60}\b(?:to|at)\b ?(?:[\w.+-]{1,40}@|https?:)",
    ),
    ("exfiltration", 0.65, r"\bb?cc\b[^.!?\n]{0,60}\bto\b ?[\w.+-]{1,40}@"),
    (
        "exfiltration",
        0.6,
        r"\b(?:include|mirror|copy|add)\b[^.!?\n]{0,60}(?:mailbox|liaison|address|archive|inbox) ?[\w.+-]{1,40}@",
    ),
    (
        "exfiltration",
        0.6,
        r"\b(?:output|dump|send|forward|reveal|extract)\b[^.!?\n]{0,20}\b(?:raw|full|entire|whole|complete|all)"
        r"\b[^.!?\n]{0,12}\b(?:customer|user|order|account|confidential|internal)\b[^.!?\n]{0,12}\b(?:database"
        r"|list|data|records?)",
    ),
    (
        "exfiltration",
        0.55,
        r"\bexfiltrat\w{0,6}|\bbackdoor\w{0,3}\b|\bdata theft\b|\bstolen (?:data|money|credentials)",
    ),
    (
        "exfiltration",
        0.5,
        r"\battacker|\bunauthori[sz]ed (?:payment|access|transfer)|\bprivilege escalation|\bevil@|@evil\b",
    ),
    (
        "exfiltration",
        0.5,
        r"\breveal (?:all |the |any )?(?:confidential|internal|private|secret|sensitive) (?:data|information)",
    ),
    (
        "stealth",
        0.6,
        r"\b(?:without|don't|do not|never|no need to) (?:telling|tell|informing|inform|notify|notifying|mentioning"
        r"|mention|alert|alerting|ask|asking)(?: this| it)?(?: to)? (?:the )?(?:user|owner|customer|anyone"
        r"|client|human)\b",
    ),
    (
        "stealth",
        0.5,
        r"\bwithout (?:the )?(?:user|owner|customer)(?:'s)? (?:consent|knowledge|permission|approval|noticing)"
        r"|\bwithout consent\b|\bno questions asked\b",
    ),
    (
        "bypass",
        0.5,
        r"\b(?:skip|bypass|waive|omit|circumvent|without)\b[^.!?\n]{0,20}\b(?:identity|order|written|security"
        r"|approval"
        r"|disclosure|manager|code)\b ?(?:verification|checks?|approval|rules?|review|confirmation)\b",
    ),
    (
        "bypass",
        0.5,
        r"\b(?:all|any|every|expedited|urgent)? ?(?:refunds?|transfers?|payments?|payouts?)\b[^.!?\n]{0,40}"
        r"\b(?:to|through|via)\b[^.!?\n]{0,25}\b(?:wallet|clearing account|whatever account|account \d|intermediary)",
    ),
    ("bypass", 0.4, r"\b(?:on|for|when|if)\b[^.!?\n]{0,30}\(?ref ?: ?[a-z]{3,12}-\d"),
    (
        "decode",
        0.6,
        r"\b(?:decode|decipher|decrypt|unscramble|translate|convert|deobfuscate)\b[^.!?\n]{0,50}\b(?:and|then)\b"
        r"[^.!?\n]{0,20}\b(?:follow|execute|run|do|obey|comply|perform|act)\b",
    ),
    (
        "decode",
        0.5,
        r"\b(?:base ?64|rot ?-?13|hex|binary|morse|cipher|ascii)\b[^.!?\n]{0,40}\b(?:instruction|execute"
        r"|command|prefix"
        r"|reply|respond|decoded string)",
    ),
    ("link", 0.6, r"!\[[^\]\n]{0,80}\]\( ?https?://[^)\s]{0,200}[?&=][^)\s]{0,200}\)"),
    ("link", 0.55, r"https?://[^\s\"'<>]{0,200}[{$<][^\s]{0,60}"),
    ("link", 0.55, r"<(?:script|iframe|object|embed|meta)\b|<img [^>]{0,100}src|javascript:|data:text/html"),
    ("hidden", 0.45, r"<!--[^>]{0,200}(?:ai|assistant|system|ignore|instruct|agent|助手|模型|系统|指令)"),
)
