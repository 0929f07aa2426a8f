"""Frames of Chinese statements: the subject is taken off the front, a table of patterns is asked about the rest.

A pattern of `chinese_table` may stand anywhere in the rest; the frame is `whole` when what that leaves over says
nothing or repeats the value.
"""

import re
from dataclasses import replace

from dataplane.logic.pairs.chinese_table import (
    AFTER_NAME,
    BEYOND,
    FILL,
    HEADS,
    IS_TITLE,
    PLACES,
    PROVINCE,
    RELATIONS,
    ROLES,
    SAME_NOUN,
    SURNAMES,
    TABLE,
)
from dataplane.logic.pairs.frame import Arity, Attribute, Frame

_RELATION = "|".join(sorted(RELATIONS, key=len, reverse=True))
_SUBJECT = re.compile(
    rf"(?:(?P<self>我|咱|本人|俺|用户)们?(?:家(?![是在住乡庭里]))?(?:的)?)?(?:有)?(?:那个|这个|一个|一位|那位|这位|个|那)?(?:(?P<relation>{_RELATION})"
    rf"(?![室馆店证])(?:的(?P<second>{_RELATION}))?"
    rf"|(?P<name>(?:[小老阿][{SURNAMES}]|[{SURNAMES}][\u4e00-\u9fff]{{1,2}}?){AFTER_NAME}|[A-Za-z][A-Za-z]+|他|她))?"
    r"[,，:：]?(?:他|她|ta)?们?(?:家(?![是在住乡庭里]))?(?:的)?(?:这个人)?[,，]?"
)
_LEAD = re.compile(
    r"^(?:请|麻烦|帮我)?(?:记住|记一下|记得|记下|备注一下|注意)?[,，:：]?(?:对了|其实|顺便说一下|话说|哦|嗯|那个|是这样)?[,，:：]?"
)
_NOTHING = re.compile(
    r"[\s,，、:：。.!！~～…\"“”'的呢啊吧嘛哦哟啦了哈呀是在就都也还才有很挺叫做那个这里边儿他她它我]|就是|今年|现在|目前|已经|大概|大约|平时|特别|非常"
    r"|正好|一般|每天|每日|天天|[只过可特真们]|左右|的话|而已|一个人|真的|好像|比较|最近|经常|一直|自己|这边|那边|那里|这里|个人"
)
_FAVOURITE = re.compile(r"最(?:喜欢|爱)的(?P<n>[\w]{1,6}?)(?:就)?是(?P<v>.+)")
_FAVOURED = re.compile(r"(?P<v>.+?)是最(?:喜欢|爱)的(?P<n>[\w]{1,6})$")
_GENERIC = re.compile(rf"(?P<n>{HEADS})(?:是|为|叫|在|定在|改成了?|改为|换成了?|[:：])+(?P<v>.+)")
_SENTENCES = re.compile(r"[。!！;；\n]+(?:输出[:：])?|\.(?=\s|$)")
_THING = re.compile(rf"(?P<thing>[\w]{{2,10}}?)的(?={HEADS}(?:是|为|叫|在|定|改|换|不是|[:：]))")
_TURNED = re.compile(
    rf"(?P<v>[^我,，是的]{{1,20}}?)是(?P<s>(?:我|{_RELATION}|[小老阿{SURNAMES}]\w{{1,2}}?的?最).*?(?:生日|颜色|最\w*的\w+|职业|爱好|电话|邮箱|家乡|老家))$"
)
_NEGATION = re.compile(
    r"(?:并|已经)?(?:不再|从不|从来不|不是|没有|不|没)(?:再|有)?(?!错|仅|但|管|论|只)|并非|(?<![特分区级性告类])别(?!人|墅|的|名|处)"
)


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"(?<![A-Za-z\\<])F(?![A-Za-z])", lambda _: FILL, pattern))


_PATTERNS = tuple((attribute, re.compile(triggers), _compiled(pattern)) for attribute, triggers, pattern in TABLE)


def chinese_frame(text: str) -> Frame | None:
    """The frame of a Chinese statement; None when it has none. `text` is in NFKC."""
    sentences = [part for part in _SENTENCES.split(text.lower()) if part.strip()]
    frames = [_sentence_frame(sentence) for sentence in sentences[:3]]
    if not frames or frames[0] is None:
        return None
    same = all(frame == frames[0] for frame in frames) and len(sentences) <= 3
    return frames[0] if same else replace(frames[0], whole=False)


def _sentence_frame(sentence: str) -> Frame | None:
    who, rest = _subject_off(sentence.strip())
    if not who or not rest:
        return None
    found = _match(rest)
    if found is not None and not _NEGATION.search(rest[: found[2].start()] + found[2][0].replace(found[1], "")):
        return _frame(who, found, rest, holds=True)
    positive = _NEGATION.sub("是" if "不是" in rest else "", rest, count=1)
    if positive == rest:
        return None if found is None else _frame(who, found, rest, holds=True)
    found = _match(positive)
    return None if found is None else _frame(who, found, positive, holds=False)


def chinese_subject(text: str) -> str:
    """Of whom a Chinese sentence speaks; "" when it does not show."""
    return _subject_off(text.strip().lower())[0]


def _frame(who: str, found: tuple[Attribute, str, re.Match[str]], rest: str, *, holds: bool) -> Frame:
    attribute, value, match = found
    if attribute.name in ROLES:
        attribute = Attribute("title" if IS_TITLE.search(value) else "job", Arity.ONE)
    left = _NOTHING.sub("", rest[: match.start()] + rest[match.end() :])
    if attribute.name in PLACES and _only_place(left, value):
        value, left = value + left, ""
    whole = all(character in value for character in left)
    if attribute.name == "dislikes":
        attribute, holds = Attribute("likes", Arity.MANY), not holds
    return Frame(who, attribute.name, attribute.arity, value, holds, whole)


def _only_place(left: str, value: str) -> bool:
    """Whether what is left over tells no more than where the place lies, or its name again."""
    rest = PROVINCE.sub("", left).replace("地方", "")
    return left != "" and all(character in value for character in rest)


def without_province(place: str) -> str:
    """A Chinese place without the province before or after it."""
    return PROVINCE.sub("", place) or place


def _subject_off(text: str) -> tuple[str, str]:
    """Who ("" when unclear) and what is said."""
    text = _LEAD.sub("", text).lstrip(":： ")
    turned = _TURNED.match(text)
    if turned is not None:
        text = f"{turned['s']}是{turned['v']}"
    found = _SUBJECT.match(text)
    if found is None or not (found["self"] or found["relation"] or found["name"]):
        thing = _THING.match(text)
        return (thing["thing"], text[thing.end() :]) if thing else ("", text)
    rest = text[found.end() :]
    named = [RELATIONS[name] for name in (found["relation"], found["second"]) if name]
    if found["name"]:
        return ("he" if found["name"] == "他" else "she" if found["name"] == "她" else found["name"]), rest
    return ".".join(["self", *named]), rest


def _match(rest: str) -> tuple[Attribute, str, re.Match[str]] | None:
    for pattern in (_FAVOURITE, _FAVOURED):
        found = pattern.search(rest)
        if found is not None:
            return Attribute("favourite " + found["n"], Arity.ONE), _value(found), found
    for attribute, trigger, pattern in _PATTERNS:
        if trigger.search(rest) is None:
            continue
        found = pattern.search(rest)
        if found is not None and (value := _value(found)):
            return attribute, value, found
    found = _GENERIC.search(rest)
    if found is None or not _value(found):
        return None
    noun = found["n"].removeprefix("的")
    return Attribute(SAME_NOUN.get(noun, noun), Arity.ONE), _value(found), found


def _value(found: re.Match[str]) -> str:
    """What stands for the value, without what says nothing at its ends."""
    groups = found.groupdict()
    value = next((text for name in ("v", "w", "x", "y") if (text := groups.get(name))), "")
    value = BEYOND.sub("", value)
    if value.startswith(("不", "没")):
        return ""
    return (
        value.strip(" ,，。.!！~:：'\"“”的了呢啊吧啦嘛").removeprefix("一辆").removeprefix("一名").removeprefix("一个")
    )
