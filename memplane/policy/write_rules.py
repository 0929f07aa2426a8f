"""The rule channel of the write gate: words that tell what matters, and the default ones."""

from typing import Annotated

from pydantic import Field, field_validator

from memplane.policy.names import Unit, problem
from memplane.policy.patterns import pattern_problem
from memplane.policy.section import Section

AmountWord = Annotated[str, Field(min_length=1, max_length=64)]
DEFAULT_AMOUNT_WORDS = ("dose", "dosage", "contract value", "invoice total", "剂量", "合同金额", "发票金额")
"""After these a number wants a unit; see `WritePolicy.amount_words`."""


class WriteRule(Section):
    """A pattern of the rule channel: its score where it matches, or `direct` to admit whatever the model says."""

    pattern: Annotated[str, Field(min_length=1, max_length=500)]
    score: Unit = 1.0
    direct: bool = False

    @field_validator("pattern")
    @classmethod
    def _safe(cls, value: str) -> str:
        found = pattern_problem(value)
        if found is not None:
            raise problem("unsafe_pattern", found)
        return value


DIRECT = (
    r"记住|记下来|记一下|别忘了|牢记|切记|以后都|从今以后|今后一律",
    r"(?:^|[.!?:;,] |\b[Pp]lease |\b[Yy]ou to |\b[Cc]an you )[Rr]emember\b(?! (?:when|me|the time|those)\b)"
    r"|\b[Ff]rom now on\b|\b[Dd]on't forget (?:that|to)\b|\b[Kk]eep in mind that\b|\b[Mm]ake a note\b|\b[Nn]ote that\b",
)
STRONG = (
    r"我总是|偏好|我(?:最|很|更|特别|一直)?喜欢|我不(?:太|怎么)?喜欢|我(?:最|很)?讨厌|我(?:从不|不吃|不喝|习惯)|请叫我"
    r"|对.{1,8}过敏|务必|一律|严禁|不得",
    r"(?:^|[.!?] )(?:Always|Never) (?!here|been|heard|mind|ever|too|there|happy|glad|a |nice|thought|know)[a-z]"
    r"|\bI (?:always|never|usually)\b(?! (?:know|knew|thought)\b)"
    r"|\bmust (?:not )?be (?:sent|written|kept|done|made|given|approved|signed|paid|reported|stored|reviewed)\b",
    r"\bI (?:prefer|hate|dislike|can't stand)\b|\bI love\b(?! (?:it|that|this|you|how|your|the way)\b)"
    r"|\b[Mm]y favou?rite\b|\bI(?:'m| am) (?:allergic|intolerant|vegan|a vegetarian|diabetic)\b|\b[Cc]all me [A-Z]"
    r"|\b[Mm]y (?:name|birthday) is\b",
)
EMPTY = (
    r"^\W{0,3}(?:好|好的|嗯|嗯嗯|谢谢|谢谢你|多谢|哈哈|收到|明白|明白了|知道了|没问题|不客气|你好|您好|再见|晚安|是的|对)\W{0,3}$",
    r"^\W{0,3}(?i:ok|okay|thanks|thank you|sure|great|nice|cool|wow|lol|haha|hi|hello|hey|bye|yes|no|got it)\W{0,3}$",
)


def default_rules() -> tuple[WriteRule, ...]:
    """Orders to remember are kept whatever the model says; preferences and standing orders count much."""
    return (
        *(WriteRule(pattern=pattern, direct=True) for pattern in DIRECT),
        *(WriteRule(pattern=pattern, score=0.9) for pattern in STRONG),
        *(WriteRule(pattern=pattern, score=0.0) for pattern in EMPTY),
    )
