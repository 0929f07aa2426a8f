"""What the gate's model reads of a text besides its embedding: how much of it states something, and about whom.

A text is cut into clauses, each of one sort: a question; a reaction to what somebody else said ("That's great",
好的，谢谢); a statement about the speaker ("I have two dogs", 我住在杭州); another statement. A chat turn often is all
of these at once, and is worth keeping for its statements alone.
"""

import re
from collections.abc import Iterator
from math import log1p

import numpy as np
from numpy.typing import NDArray

SHOWN_CHARACTERS = 2000
"""Only the beginning of a text is read."""

_WORD = re.compile(r"[A-Za-z'’]+|\d+|[\u3400-\u9fff]")
_SENTENCE = re.compile(r"[^.!?。！？…\n;；]+[.!?。！？…]*")
_CLAUSE = re.compile(
    r"[,，:]\s*(?=(?:but |and |so |because |though |cause |since )?(?:i|i'm|i've|my|we|our|he|she|they)\b|我|他|她)"
    r"|\s[-–—]+\s"
    r"|\s(?:but|and|because|cause|so|though|since|as)\s(?=(?:i|i'm|i've|my|we|our)\b)",
    re.IGNORECASE,
)
_OWN = re.compile(
    r"\b(?:i|i['’](?:m|ve|d|ll)|im|ive|my|mine|we|we['’](?:re|ve)|our|me|myself)\b|我|咱|本人", re.IGNORECASE
)
_OTHERS = re.compile(r"\b(?:he|she|they|his|her|their)\b|他|她", re.IGNORECASE)
_YOU = re.compile(r"\b(?:you|your|yours|you['’](?:re|ve|ll|d)|ur|u)\b|你|您", re.IGNORECASE)
_QUESTION = re.compile(r"[?？]|[吗呢]\s*[。!！~]*\s*$")
_ASKING = re.compile(
    r"^\W*(?:(?:oh|so|and|but|well|hey|ok|okay)\W+)*(?:what|where|when|why|who|whose|which|how|do|does|did|are|is|have|"
    r"has|can|could|would|will|any|tell me|help me|show me|explain|write|translate|summari[sz]e)\b"
    r"|^\W*(?:请问|请你|帮我|能不能|能否|可以帮|可不可以|你能|有没有|怎么|如何|什么|为什么|告诉我|给我)|(?:什么|"
    r"怎么样|怎么办|哪些|哪里|好不好|是不是)[^，。]{0,6}$",
    re.IGNORECASE,
)
_FILLER = (
    r"(?:oh|well|yeah|yea|yep|yup|yes|no|nope|nah|ha(?:ha)*|lol|wow|woah|whoa|hey|hi|hello|aw+|ah+|h+m+|ok(?:ay)?|sure|"
    r"true|right|so|and|but|also|anyway|absolutely|definitely|totally|indeed|exactly|of course|agreed|really|man|dude|"
    r"omg|ooh+|oops|btw|maybe|perhaps|for sure)"
)
_NICE = (
    r"(?:great|nice|good|awesome|amazing|cool|wonderful|fun(?:ny)?|fantastic|lovely|sweet|beautiful|interesting|"
    r"incredible|impressive|inspiring|perfect|adorable|cute|terrible|awful|sad|tough|rough|crazy|wild|neat|exciting)"
)
_REACTION = re.compile(
    rf"^\W*(?:{_FILLER}\b\W*)*(?:$"
    r"|(?:that|this|it|those|these|they)(?:['’]?s|['’]?re| is| are| was| must| would| will| can| could| sounds?|"
    r" looks?|"
    r" makes?| seems?|['’]d)\b"
    rf"|(?:so |very |really |pretty |such |what an? |how )?{_NICE}\b"
    r"|sounds?\b|looks?\b|seems?\b|what an?\b|how \w+[!.]*$|congrat|thank|thx|cheers\b|kudos|good luck|best of luck"
    r"|you(?:['’](?:re|ve|ll|d)|r)?\b|glad\b|hope\b|hopefully\b|can['’]?t wait|looking forward|no (?:worries|problem)"
    r"|i(?:['’]m| am|m)? (?:so |really |very |always |just |also |all |truly |super )*(?:glad|happy (?:for|to hear|"
    r"that)|"
    r"proud of|sorry|stoked|jealous|here for|sure you|curious|impressed|with you|in awe|hope|bet|guess|agree|see\b|"
    r"know|understand|imagine|can (?:imagine|see|relate|tell)|wish you|appreciate|think (?:so|you|that)|don['’]?t know|"
    r"hear (?:you|that)|can only imagine|could(?:n['’]t)? agree|feel (?:you|that)|believe (?:in )?you|"
    r"would (?:love to|like"
    r" to) (?:hear|see|know)|['’]?ll (?:try|check|think|let you|keep|definitely))"
    r"|i['’]ll (?:try|check|think|let you|keep|definitely)|me (?:too|neither|either)\b|same here|let me\b|let['’]?s\b"
    r"|keep\b|take (?:care|it)|have (?:a|fun|an)\b|see you|see ya|talk (?:to|soon)|bye|goodbye|go for it|enjoy|please\b"
    r"|don['’]t (?:worry|give up|forget)|everyone\b|we all\b|never mind|welcome)"
    r"|^\W*(?:(?:嗯+|哦+|噢|啊|哈+|哇|呵+|嗨|唉|是的?|对[啊呀的]?|好[的啊呀吧嘞]?|当然|没错|确实|行|可以|不错|"
    r"ok)\W*)*(?:$"
    r"|谢谢|多谢|感谢|非常感谢|谢了|听起来|听上去|看来|太[^，。！]{0,6}了|真[的是棒好]|希望|加油|明白|知道了|原来|"
    r"有道理"
    r"|你(?:说得?|好|真|可以|应该|也|的|太|一定|呢|是)|您|我(?:也)?(?:明白|知道|会(?:去|试|尝试|考虑|努力|加油|记住|"
    r"认真|注意|尽|"
    r"按|好好|继续|多)|同意|觉得你|也觉得|也这么|也是|也同意|相信|理解|懂|了解了|收到|感到很|很感激|一定会|试试|考虑)"
    r"|不客气|不用谢|再见|拜拜|没问题|没关系|没事|晚安|早上好|下午好|晚上好|早安|祝|恭喜|辛苦|收到|请|"
    r"那[^，。]{0,2}(?:好|行|就)"
    r"|这(?:个|些|是|真|样|听)|那(?:个|些|是|真|样|太)|也?谢谢|期待|麻烦|算了|算|继续)",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[A-Za-z0-9]+(?:[-_/.@:][A-Za-z0-9]+)+")
_NAME = re.compile(r"(?<=[a-z,] )(?!I\b|I['’])[A-Z][A-Za-z]+|《[^》]{1,30}》|「[^」]{1,30}」")
_LASTING = re.compile(
    r"\b(?:always|never|usually|every|each|favou?rites?|prefer|love|hate|enjoy|allergic|married|divorced|born|live|"
    r"lived|"
    r"grew up|work as|work (?:at|for|in)|own|named|call(?:ed)?|used to|years?|since|studied|studying|major|degree|"
    r"interested|collect|speak)\b"
    r"|总是|一直|从不|从来|每天|每周|每年|喜欢|爱好|热爱|讨厌|偏好|习惯|过敏|住在|工作|职业|生日|名字|叫|最爱|擅长|"
    r"从小|毕业|专业|平时|经常",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|this (?:morning|week|weekend|afternoon|evening)|last night|right now|"
    r"just now|"
    r"at the moment|currently)\b|今天|今晚|明天|昨天|刚才|刚刚|这周|现在|昨晚|后天|前天|今早|明早",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:i|we|i['’]ve|we['’]ve|he|she|they)\s+(?:just |also |finally |recently |even |once |already )*(?:\w+ed|"
    r"went|got|had|"
    r"was|were|made|bought|saw|met|took|came|found|began|left|lost|won|built|wrote|read|ran|gave|told|taught|grew|did|"
    r"been|done|seen|sold|spent|felt|caught|drove|flew|ate|broke|chose)\b|了|过",
    re.IGNORECASE,
)
_LIFE = re.compile(
    r"\b(?:wife|husband|partner|boyfriend|girlfriend|fianc[eé]e?|mom|mum|dad|mother|father|parents?|brother|sister|"
    r"sibling|"
    r"son|daughter|kids?|child(?:ren)?|twins?|grand\w+|family|aunt|uncle|cousin|friends?|dogs?|cats?|pets?|puppy|"
    r"horse|job|"
    r"boss|career|business|company|school|college|university|class|degree|student|teacher|nurse|engineer|doctor|"
    r"manager|"
    r"hobby|hobbies|band|team|guitar|piano|car|truck|bike|house|apartment|farm|garden|town|city|country|church|"
    r"birthday|"
    r"wedding|vegan|vegetarian|diet|surgery|cancer|diabetes|movies?|books?|music|games?|sports?)\b"
    r"|妻子|老婆|丈夫|老公|妈妈|爸爸|母亲|父亲|父母|哥哥|弟弟|姐姐|妹妹|儿子|女儿|孩子|家人|朋友|同事|老板|同学|公司|"
    r"学校|大学|专业"
    r"|老师|医生|工程师|宠物|猫|狗|房子|汽车|城市|老家|乐队|球队|吉他|钢琴|电影|音乐|书|游戏|运动|演唱会|旅行|旅游|"
    r"考试|比赛",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"\b(?:hi|hey|hello|thanks|thank you|ok|okay|sure|great|wow|cool|nice|bye|lol|haha|yeah|yes|no problem|welcome|"
    r"good (?:morning|night|evening))\b|你好|您好|谢谢|多谢|好的|再见|晚安|早上好|哈哈|嗯|没问题|不客气|建议",
    re.IGNORECASE,
)
_CHINESE = re.compile(r"[\u3400-\u9fff]")
QUESTION, REACTION, OWN, OTHER = range(4)
FEATURES = 25

Features = NDArray[np.float64]


def features(text: str) -> Features:
    """Length, sorts of clauses, who is spoken of, names, numbers, times. Shape (FEATURES,), each 0 to 1."""
    shown = text[:SHOWN_CHARACTERS]
    words = [0, 0, 0, 0]
    stated: list[str] = []
    for sort, clause in clauses(shown):
        words[sort] += len(_WORD.findall(clause))
        if sort in {OWN, OTHER}:
            stated.append(clause)
    total, statements = max(1, sum(words)), "\n".join(stated)
    return np.array([*_sizes(words, total), *_contents(shown, statements, total)])


def clauses(text: str) -> Iterator[tuple[int, str]]:
    """Each clause with its sort, in order."""
    for match in _SENTENCE.finditer(text):
        sentence = match[0]
        if not _WORD.search(sentence):
            continue
        asks = _QUESTION.search(sentence) is not None
        parts = [part for part in _CLAUSE.split(sentence) if part and _WORD.search(part)]
        for number, part in enumerate(parts):
            yield _sort(part, asks=asks and number == len(parts) - 1), part


def _sort(clause: str, *, asks: bool) -> int:
    if asks or _ASKING.search(clause):
        return QUESTION
    if _REACTION.search(clause):
        return REACTION
    return OWN if _OWN.search(clause) else OTHER


def _sizes(words: list[int], total: int) -> list[float]:
    """How long the text is, and how its words are shared out among the sorts."""
    stated = words[OWN] + words[OTHER]
    return [
        min(1.0, log1p(total) / 5.0),
        float(total <= 4),
        *(min(1.0, log1p(count) / 4.0) for count in words),
        float(words[OWN] > 0),
        float(stated == 0),
        stated / total,
        float(words[QUESTION] == total),
    ]


def _contents(shown: str, statements: str, total: int) -> list[float]:
    """What the text speaks of; most of it in its statements alone."""
    held = (_IDENTIFIER, _OTHERS, _LASTING, _PASSING, _PAST, _LIFE)
    lasting_own = _LASTING.search(statements) is not None and _OWN.search(statements) is not None
    return [
        float(any(character.isdigit() for character in statements)),
        *(float(pattern.search(statements) is not None) for pattern in held),
        float(_OWN.search(shown) is not None),
        float(lasting_own),
        min(1.0, len(_NAME.findall(shown)) / 3.0),
        min(1.0, len(_YOU.findall(shown)) * 4.0 / total),
        float(_COURTESY.search(shown) is not None),
        float(_PAST.search(statements) is not None and _OWN.search(statements) is not None),
        float(_CHINESE.search(shown) is not None),
        min(1.0, len(_LIFE.findall(statements)) / 4.0),
    ]
