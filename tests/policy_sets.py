"""Broken policy sets, each with the one diagnostic that it must give. Shared by unit and end-to-end tests."""

from dataclasses import dataclass

KEY_1 = "1" * 64


@dataclass(frozen=True)
class BrokenSet:
    """Documents as (name, content), and the error that they must give: code, and where. Line 0: the file as a whole."""

    name: str
    documents: tuple[tuple[str, bytes], ...]
    code: str
    line: int
    column: int = 0
    file: str = "policy.yaml"
    bootstrap_admin: bool = True

    def __str__(self) -> str:
        return self.name


def one(name: str, content: str | bytes, code: str, line: int, column: int) -> BrokenSet:
    """A set of one file, policy.yaml."""
    data = content.encode() if isinstance(content, str) else content
    return BrokenSet(name, (("policy.yaml", data),), code, line, column)


def _roles(body: str) -> str:
    return f"rbac:\n  roles:\n{body}"


def _chain(length: int) -> str:
    links = "".join(f"    role{place}: {{includes: [role{place + 1}]}}\n" for place in range(length))
    return _roles(f"{links}    role{length}: {{}}\n")


def _grant(body: str) -> str:
    return f"rbac:\n  roles:\n    a:\n      grants:\n        - {{{body}}}\n"


def _on(name: str, namespace: str) -> BrokenSet:
    """A grant on an impossible namespace."""
    return one(name, _grant(f"permissions: [review], namespace: {namespace}"), "BAD_NAMESPACE", 5, 46)


def cases(name: str, content: str, code: str, line: int, column: int) -> BrokenSet:
    """A set with a file of golden cases that is wrong."""
    documents = (("policy.yaml", b"write_policy: {}\n"), ("policy.test.yaml", content.encode()))
    return BrokenSet(name, documents, code, line, column, file="policy.test.yaml")


SYNTAX_SETS = (
    one("nothing in the file", b"", "EMPTY_FILE", 1, 1),
    one("only a comment", "# write_policy:\n", "EMPTY_FILE", 1, 1),
    one("only a document start", "---\n", "EMPTY_FILE", 2, 1),
    one("a list at the root", "- write_policy\n", "NOT_A_MAPPING", 1, 1),
    one("text at the root", "threshold\n", "NOT_A_MAPPING", 1, 1),
    one("a second document", "write_policy: {}\n---\ndecay_policy: {}\n", "SECOND_DOCUMENT", 2, 1),
    one("an anchor", "write_policy: &w\n  threshold: 0.7\n", "ANCHOR", 1, 15),
    one("an alias", "write_policy:\n  threshold: *t\n", "ALIAS", 2, 14),
    one("an alias bomb", "a: &a [x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\n", "ANCHOR", 1, 4),
    one("a tag", "write_policy:\n  threshold: !!float 0.7\n", "TAG", 2, 14),
    one("a python object tag", "!!python/object:os.system {}\n", "TAG", 1, 1),
    one("a tab as indentation", "write_policy:\n\tthreshold: 0.7\n", "TAB", 2, 1),
    one("an open bracket", "retrieve_policy: {top_k: 6\n", "SYNTAX", 2, 1),
    one("two values on a line", "write_policy: threshold: 0.7\n", "SYNTAX", 1, 24),
    one("a lone surrogate", 'write_policy:\n  rules: [{pattern: "\\ud800"}]\n', "SYNTAX", 2, 24),
    one("not UTF-8", b"write_policy:\n  # caf\xe9\n", "INVALID_UTF8", 2, 8),
    one("UTF-16", "write_policy: {}\n".encode("utf-16"), "INVALID_UTF8", 1, 1),
    one("a NUL byte", b"write_policy:\n  thre\0shold: 0.7\n", "NUL_BYTE", 2, 7),
    one("a control character", b"write_policy:\n  # \x1b[2J\n", "CONTROL_CHARACTER", 2, 5),
    one("above 1 MiB", b"#" * (1024 * 1024 + 1), "TOO_LARGE", 0, 0),
    one("too many levels", f"write_policy: {'[' * 40}{']' * 40}\n", "TOO_DEEP", 1, 46),
    one("a list as key", "write_policy:\n  ? [a, b]\n  : 1\n", "KEY_NOT_TEXT", 2, 5),
    one("a key twice", "write_policy:\n  threshold: 0.7\n  threshold: 0.8\n", "DUPLICATE_KEY", 3, 3),
    one("a section twice", "write_policy: {}\nwrite_policy: {}\n", "DUPLICATE_KEY", 2, 1),
    one("a key without value", "write_policy:\n  threshold:\n", "EMPTY_VALUE", 2, 3),
    one("a section without value", "rbac:\n", "EMPTY_VALUE", 1, 1),
    one("not a number", "write_policy:\n  threshold: .nan\n", "NOT_FINITE", 2, 14),
    one("an infinite number", "decay_policy:\n  max_strength: 1e999\n", "NOT_FINITE", 2, 17),
)

VALUE_SETS = (
    one("an unknown section", "retreive_policy: {}\n", "UNKNOWN_KEY", 1, 1),
    one("an unknown key", "write_policy:\n  treshold: 0.7\n", "UNKNOWN_KEY", 2, 3),
    one("an unknown key far in", "retrieve_policy:\n  weights:\n    vektor: 1\n", "UNKNOWN_KEY", 3, 5),
    one("a merge key", "write_policy:\n  <<: {threshold: 0.7}\n", "UNKNOWN_KEY", 2, 3),
    one("a number in quotes", "write_policy:\n  threshold: '0.7'\n", "WRONG_TYPE", 2, 14),
    one("yes for true", "write_policy:\n  dedup: yes\n", "WRONG_TYPE", 2, 10),
    one("true for a number", "write_policy:\n  threshold: true\n", "WRONG_TYPE", 2, 14),
    one("a fraction for a count", "retrieve_policy:\n  top_k: 6.5\n", "WRONG_TYPE", 2, 10),
    one("a number for a section", "decay_policy: 5\n", "WRONG_TYPE", 1, 15),
    one("a mapping for a list", "write_policy:\n  rules: {pattern: a}\n", "WRONG_TYPE", 2, 10),
    one("above the range", "write_policy:\n  threshold: 1.5\n", "OUT_OF_RANGE", 2, 14),
    one("a negative weight", "retrieve_policy:\n  weights: {vector: -0.1}\n", "OUT_OF_RANGE", 2, 21),
    one("a profile misspelt", "retrieve_policy:\n  profile: balancd\n", "INVALID_VALUE", 2, 12),
    one("a decay below 0", "retrieve_policy:\n  companion: {decay_per_day: -0.01}\n", "OUT_OF_RANGE", 2, 30),
    one("a floor above 1", "retrieve_policy:\n  companion: {keep_above: 1.5}\n", "OUT_OF_RANGE", 2, 27),
    one("a boost below 1", "retrieve_policy:\n  companion: {max_boost: 0.5}\n", "OUT_OF_RANGE", 2, 26),
    one(
        "no time for a kind",
        "retrieve_policy:\n  orchestrated: {time_constant_days: {FACT: 0}}\n",
        "OUT_OF_RANGE",
        2,
        45,
    ),
    one("a kind unknown", "retrieve_policy:\n  orchestrated: {time_constant_days: {FACTS: 1}}\n", "UNKNOWN_KEY", 2, 39),
    one(
        "no weight in orchestrated",
        "retrieve_policy:\n  orchestrated:\n    weights: {recency: 0, relevance: 0, authority: 0, task_alignment: 0}\n",
        "WEIGHTS_ALL_ZERO",
        3,
        14,
    ),
    one("a negative top_k", "retrieve_policy:\n  top_k: -1\n", "OUT_OF_RANGE", 2, 10),
    one(
        "all weights zero",
        "retrieve_policy:\n  weights: {vector: 0, freshness: 0, frequency: 0, credibility: 0}\n",
        "WEIGHTS_ALL_ZERO",
        2,
        12,
    ),
    one("channels without weight", "write_policy:\n  rule_weight: 0\n  model_weight: 0\n", "WEIGHTS_ALL_ZERO", 1, 1),
    one("thresholds the wrong way", "write_policy:\n  short_term_threshold: 0.9\n", "THRESHOLDS_NOT_ORDERED", 1, 1),
    one("cold above new", "decay_policy:\n  cold_threshold: 1.5\n", "THRESHOLDS_NOT_ORDERED", 1, 1),
    one("an unknown source", "conflict_policy:\n  source_priority: [HUMAN, BOSS]\n", "INVALID_VALUE", 2, 28),
    one("a source twice", "conflict_policy:\n  source_priority: [HUMAN, HUMAN]\n", "DUPLICATE_ITEM", 2, 20),
    one("a broken pattern", "write_policy:\n  rules:\n    - pattern: '('\n", "UNSAFE_PATTERN", 3, 16),
    one("a pattern without end", "write_policy:\n  rules:\n    - pattern: (a+)+\n", "UNSAFE_PATTERN", 3, 16),
    one("too wide a view", "retrieve_policy:\n  vector_ef: 10001\n", "OUT_OF_RANGE", 2, 14),
    one("no view at all", "retrieve_policy:\n  vector_ef: 0\n", "OUT_OF_RANGE", 2, 14),
    one("an unknown isolation", "namespace_policy:\n  isolation: private\n", "INVALID_VALUE", 2, 14),
    one("dedicated for everybody", "namespace_policy:\n  isolation: dedicated\n", "DEDICATED_AT_ROOT", 2, 14),
    one("a rule without pattern", "write_policy:\n  rules:\n    - score: 1\n", "MISSING_KEY", 3, 7),
)

OVERRIDE_SETS = (
    one("a bad namespace", "namespace_policy:\n  overrides:\n    dept..sales: {}\n", "BAD_NAMESPACE", 3, 5),
    one(
        "an unknown key in an override",
        "namespace_policy:\n  overrides:\n    dept.sales:\n      decay_policy:\n        monthly_deccay: 0.2\n",
        "UNKNOWN_KEY",
        5,
        9,
    ),
    one(
        "rbac in an override",
        "namespace_policy:\n  overrides:\n    dept.sales:\n      rbac: {}\n",
        "UNKNOWN_KEY",
        4,
        7,
    ),
    one(
        "an unknown isolation in an override",
        "namespace_policy:\n  overrides:\n    a:\n      namespace_policy:\n        isolation: Dedicated\n",
        "INVALID_VALUE",
        5,
        20,
    ),
    one(
        "overrides in an override",
        "namespace_policy:\n  overrides:\n    a:\n      namespace_policy:\n        overrides: {}\n",
        "UNKNOWN_KEY",
        5,
        9,
    ),
    one(
        "an override of the process's limits",
        "namespace_policy:\n  overrides:\n    a:\n      degradation_policy: {}\n",
        "UNKNOWN_KEY",
        4,
        7,
    ),
    one(
        "an unknown action in an overridden sensitive_policy",
        "namespace_policy:\n  overrides:\n    a:\n      sensitive_policy:\n        actions: {EMAIL: Mask}\n",
        "INVALID_VALUE",
        5,
        26,
    ),
    one(
        "a threshold out of range in an overridden guard_policy",
        "namespace_policy:\n  overrides:\n    a:\n      guard_policy: {threshold: 1.5}\n",
        "OUT_OF_RANGE",
        4,
        33,
    ),
    one(
        "a namespace overridden twice",
        "namespace_policy:\n  overrides:\n    a:\n      write_policy: {dedup: false}\n"
        "    a:\n      write_policy: {dedup: true}\n",
        "DUPLICATE_KEY",
        5,
        5,
    ),
    BrokenSet(
        "a value of one override in two files",
        (
            ("a.yaml", b"namespace_policy: {overrides: {a.b: {write_policy: {dedup: false}}}}\n"),
            ("b.yaml", b"namespace_policy: {overrides: {a.b: {write_policy: {dedup: true}}}}\n"),
        ),
        "DUPLICATE_KEY",
        1,
        53,
        file="b.yaml",
    ),
    one(
        "an override that contradicts its base",
        "namespace_policy:\n  overrides:\n    dept.sales:\n      write_policy:\n        threshold: 0.1\n",
        "THRESHOLDS_NOT_ORDERED",
        4,
        7,
    ),
    one(
        "an override that contradicts the one above",
        "namespace_policy:\n  overrides:\n    a.b:\n      write_policy: {threshold: 0.4}\n"
        "    a:\n      write_policy: {short_term_threshold: 0.5}\n",
        "THRESHOLDS_NOT_ORDERED",
        4,
        21,
    ),
)

RBAC_SETS = (
    one("an unknown role", "rbac:\n  principals:\n    ann:\n      roles: [reader]\n", "UNKNOWN_ROLE", 4, 15),
    one("an unknown included role", _roles("    a: {includes: [b]}\n"), "UNKNOWN_ROLE", 3, 20),
    one(
        "roles that include each other",
        _roles("    a: {includes: [b]}\n    b: {includes: [c]}\n    c: {includes: [a]}\n"),
        "ROLE_CYCLE",
        5,
        20,
    ),
    one("a role that includes itself", _roles("    a: {includes: [a]}\n"), "ROLE_CYCLE", 3, 20),
    one(
        "a cycle of two roles with a tail",
        _roles("    t: {includes: [a]}\n    a: {includes: [b]}\n    b: {includes: [a]}\n"),
        "ROLE_CYCLE",
        5,
        20,
    ),
    one("ten includes in a row", _chain(10), "ROLE_CHAIN_TOO_LONG", 3, 23),
    one("twenty roles in a row", _chain(19), "ROLE_CHAIN_TOO_LONG", 12, 23),
    one("an unknown role of a group", "rbac:\n  groups:\n    g: {roles: [gone]}\n", "UNKNOWN_ROLE", 3, 17),
    one("an unknown member", "rbac:\n  groups:\n    g: {members: [ann]}\n", "UNKNOWN_PRINCIPAL", 3, 19),
    one("an unknown key of a group", "rbac:\n  groups:\n    g: {member: [ann]}\n", "UNKNOWN_KEY", 3, 9),
    one(
        "the bootstrap administrator in a group",
        "rbac:\n  groups:\n    g: {members: [bootstrap-admin]}\n",
        "RESERVED_NAME",
        3,
        19,
    ),
    one("an empty claim", "rbac:\n  groups:\n    g: {claims: ['']}\n", "OUT_OF_RANGE", 3, 18),
    one(
        "an effect that is none", _grant("namespace: x, permissions: [review], effect: forbid"), "INVALID_VALUE", 5, 57
    ),
    one("DENY in capitals", _grant("namespace: x, permissions: [review], effect: DENY"), "INVALID_VALUE", 5, 57),
    _on("a namespace with an empty label", "dept..sales"),
    _on("a namespace in capitals", "Dept.Sales"),
    _on("a namespace that ends with a dot", "dept.sales."),
    _on("ten labels", "a.b.c.d.e.f.g.h.i.j"),
    _on("a label of 64 characters", "x" * 64),
    _on("no namespace at all", "''"),
    _on("two stars", "'**'"),
    _on("a space in a namespace", "'dept sales'"),
    one("a grant without namespace", _grant("permissions: [review]"), "MISSING_KEY", 5, 11),
    one(
        "an unknown layer as a condition",
        _grant("namespace: x, permissions: [memory.read], layers: [KNOWLEGDE]"),
        "INVALID_VALUE",
        5,
        63,
    ),
    one(
        "an unknown kind as a condition",
        _grant("namespace: x, permissions: [memory.read], kinds: [fact]"),
        "INVALID_VALUE",
        5,
        62,
    ),
    one(
        "an unknown sensitivity as a condition",
        _grant("namespace: x, permissions: [memory.read], sensitivities: [SECRET]"),
        "INVALID_VALUE",
        5,
        70,
    ),
    one(
        "a condition on what is not about memories",
        _grant("namespace: x, permissions: [policy.read], layers: [KNOWLEDGE]"),
        "CONDITION_WITHOUT_MEMORY",
        5,
        11,
    ),
    one("no calls at all", "rbac:\n  limits: {concurrency: 0}\n", "OUT_OF_RANGE", 2, 25),
    one(
        "a limit in quotes",
        "rbac:\n  principals:\n    a: {limits: {calls_per_s: '5'}}\n",
        "WRONG_TYPE",
        3,
        31,
    ),
    one("no SPIFFE id", "rbac:\n  principals:\n    a: {spiffe_ids: ['https://a']}\n", "BAD_SPIFFE_ID", 3, 22),
    one(
        "a SPIFFE id of two principals",
        "rbac:\n  principals:\n    a: {spiffe_ids: ['spiffe://x/a']}\n    b: {spiffe_ids: ['spiffe://x/a']}\n",
        "DUPLICATE_SPIFFE_ID",
        4,
        22,
    ),
    one(
        "a token subject of two principals",
        "rbac:\n  principals:\n    a: {token_subjects: [ann]}\n    b: {token_subjects: [ann]}\n",
        "DUPLICATE_TOKEN_SUBJECT",
        4,
        26,
    ),
    one(
        "an unknown permission",
        _roles("    a:\n      grants: [{namespace: x, permissions: [memory.raed]}]\n"),
        "UNKNOWN_PERMISSION",
        4,
        45,
    ),
    one(
        "Deny with a capital",
        _roles("    a:\n      grants:\n      - {namespace: x, permissions: [review], effect: Deny}\n"),
        "INVALID_VALUE",
        5,
        55,
    ),
    one(
        "no permissions",
        _roles("    a:\n      grants: [{namespace: x, permissions: []}]\n"),
        "OUT_OF_RANGE",
        4,
        44,
    ),
    one(
        "a pattern as namespace",
        _roles("    a:\n      grants: [{namespace: dept.*, permissions: [review]}]\n"),
        "BAD_NAMESPACE",
        4,
        28,
    ),
    one("a key that is no hash", "rbac:\n  principals:\n    a: {api_key_sha256: [mpk_1]}\n", "BAD_KEY_HASH", 3, 26),
    one(
        "a key of two principals",
        f"rbac:\n  principals:\n    a: {{api_key_sha256: ['{KEY_1}']}}\n    b: {{api_key_sha256: ['{KEY_1}']}}\n",
        "DUPLICATE_API_KEY",
        4,
        26,
    ),
    one(
        "the name of the bootstrap administrator",
        "rbac:\n  principals:\n    bootstrap-admin: {}\n",
        "RESERVED_NAME",
        3,
        5,
    ),
    BrokenSet(
        "nobody to administer",
        (("policy.yaml", b"rbac:\n  roles: {}\n"),),
        "NO_ADMINISTRATOR",
        1,
        1,
        bootstrap_admin=False,
    ),
)

FILE_SETS = (
    BrokenSet("no documents", (), "NO_DOCUMENTS", 0, file=""),
    BrokenSet("a name with a slash", (("a/b.yaml", b"write_policy: {}\n"),), "BAD_NAME", 0, file="a/b.yaml"),
    BrokenSet("a name that climbs", (("..yaml", b"write_policy: {}\n"),), "BAD_NAME", 0, file="..yaml"),
    BrokenSet("a name without ending", (("write", b"write_policy: {}\n"),), "BAD_NAME", 0, file="write"),
    BrokenSet(
        "a name twice",
        (("a.yaml", b"write_policy: {}\n"), ("a.yaml", b"decay_policy: {}\n")),
        "DUPLICATE_FILE",
        0,
        file="a.yaml",
    ),
    BrokenSet(
        "a value in two files",
        (("a.yaml", b"write_policy:\n  threshold: 0.7\n"), ("b.yaml", b"write_policy:\n  threshold: 0.7\n")),
        "DUPLICATE_KEY",
        2,
        3,
        file="b.yaml",
    ),
    BrokenSet(
        "one good file and one broken",
        (("a.yaml", b"write_policy: {}\n"), ("b.yaml", b"\n\ndecay_policy: [\n")),
        "SYNTAX",
        4,
        1,
        file="b.yaml",
    ),
)

CASE_SETS = (
    BrokenSet(
        "golden cases without policies",
        (("policy.test.yaml", b"access: []\n"),),
        "NO_DOCUMENTS",
        0,
        file="",
    ),
    cases("an unknown sort of cases", "acess: []\n", "UNKNOWN_KEY", 1, 1),
    cases("policy among the cases", "write_policy: {}\n", "UNKNOWN_KEY", 1, 1),
    cases("an empty file of cases", "", "EMPTY_FILE", 1, 1),
    cases(
        "a case without name",
        "access:\n  - given: {principal: a, permission: review}\n    expect: deny\n",
        "MISSING_KEY",
        2,
        5,
    ),
    cases(
        "a case that expects nothing",
        "write:\n  - name: a\n    given: {text: tea}\n    expect: {}\n",
        "NOTHING_EXPECTED",
        4,
        13,
    ),
    cases(
        "Deny with a capital in a case",
        "access:\n  - name: a\n    given: {principal: a, permission: review}\n    expect: Deny\n",
        "INVALID_VALUE",
        4,
        13,
    ),
    cases(
        "a case of two callers",
        "access:\n  - name: a\n    given: {principal: a, token: {subject: b}, permission: review}\n    expect: deny\n",
        "ONE_CALLER",
        3,
        12,
    ),
    cases(
        "a case of every permission",
        "access:\n  - name: a\n    given: {principal: a, permission: '*'}\n    expect: deny\n",
        "ONE_PERMISSION",
        3,
        12,
    ),
    cases(
        "an order of hits that are not given",
        "order:\n  - name: a\n    given: {hits: {a: {vector: 1}}}\n    expect: [b]\n",
        "UNKNOWN_HIT",
        2,
        5,
    ),
)

BROKEN_SETS = (*SYNTAX_SETS, *VALUE_SETS, *OVERRIDE_SETS, *RBAC_SETS, *FILE_SETS, *CASE_SETS)
