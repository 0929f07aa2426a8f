"""Words of which the English rules are made, as alternatives of a regular expression."""

ORDERS = (
    "(?:instructions?|prompts?|rules?|ruleset|guidelines?|directives?|policy|policies|restrictions?"
    "|programming|safety|protocols?|directions|orders)"
)
WHICH = (
    "(?:all|any|every|your|previous|prior|preceding|above|earlier|old|initial|original|system|hidden|these|those"
    "|other|future|following|out of date|current|content|safety|the last)"
)
DROP = (
    "(?:ignore|disregard|forget|override|overrule|bypass|overlook|discard|neglect|cancel|erase|abandon|drop"
    "|stop following|(?:do not|don't|never) (?:follow|obey)|pay no attention to|remove)"
)
TELL = (
    "(?:repeat|print|show|reveal|output|display|list|tell|give|write|summari[sz]e|recite|return|state|format"
    "|convert|translate|explain|rephrase|paraphrase|describe|disclose|share|dump|echo|leak|expose|copy|provide|reply"
    "|rap|poem|sing|spell|what(?:'s| is| are| were)|recall|put|reiterate|encode|rewrite|turn|restate|say)"
)
SECRET = "(?:pass ?words?|pass ?phrases?|pass ?codes?|access codes?|secret (?:key|word|phrase|code|character)|codeword)"  # noqa: S105 - what secrets are called
REPLY = "(?:reply|replies|response|responses|answer|answers|output|outputs|summary|summaries|message)"
GRANTED = "a_?c_?c_?e_?s_?s?[\\W_]{0,4}g_?r_?a_?n_?t"
ADMIN = "(?:admin|administrator|administrative|root|superuser|sudo|elevated|unrestricted|owner-level|full system)"

Rule = tuple[str, float, str]
"""Signal, score (0 to 1), pattern for folded texts."""
