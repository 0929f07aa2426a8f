"""Frames of Chinese statements: the subject is taken off the front, a table of patterns is asked about the rest.

Pattern letters: V the value, F words that carry no fact (是, 在, 今年, 大概 …). A pattern may stand anywhere in the rest;
the frame is `whole` when what it leaves over says nothing or repeats the value.
The table covers what people say of themselves, their families and their work; it is our own (2026-11).
"""

import re
from dataclasses import replace

from dataplane.logic.pairs.frame import Arity, Attribute, Frame

_RELATIONS = {
    "爸爸": "father", "父亲": "father", "老爸": "father", "爸": "father", "妈妈": "mother", "母亲": "mother",
    "老妈": "mother", "妈": "mother", "老公": "husband", "丈夫": "husband", "先生": "husband", "老婆": "wife", "妻子": "wife",
    "太太": "wife", "爱人": "partner", "儿子": "son", "女儿": "daughter", "闺女": "daughter", "孩子": "child",
    "哥哥": "brother", "弟弟": "younger brother", "姐姐": "sister", "妹妹": "younger sister", "哥": "brother",
    "弟": "younger brother", "姐": "sister", "妹": "younger sister", "爷爷": "grandfather", "奶奶": "grandmother",
    "外公": "外公", "姥爷": "外公", "外婆": "外婆", "姥姥": "外婆", "叔叔": "uncle", "伯伯": "伯伯", "伯父": "伯伯", "伯母": "伯母",
    "婶婶": "婶婶", "婶子": "婶婶", "舅舅": "舅舅", "舅妈": "舅妈", "姑姑": "aunt", "姑妈": "aunt", "姑父": "姑父", "姑丈": "姑父",
    "姨妈": "姨妈", "阿姨": "姨妈", "姨父": "姨父", "姨丈": "姨父", "表哥": "表哥", "表弟": "表弟", "表姐": "表姐", "表妹": "表妹",
    "堂哥": "堂哥", "堂弟": "堂弟", "堂姐": "堂姐", "堂妹": "堂妹", "侄子": "nephew", "侄女": "niece", "外甥": "外甥",
    "外甥女": "外甥女", "岳父": "岳父", "岳母": "岳母", "公公": "公公", "婆婆": "婆婆", "嫂子": "嫂子", "姐夫": "姐夫", "妹夫": "妹夫",
    "上司": "manager", "老板": "manager", "领导": "manager", "经理": "manager", "下属": "下属", "同事": "colleague",
    "同学": "classmate", "老师": "teacher", "导师": "mentor", "邻居": "neighbour", "朋友": "friend", "闺蜜": "闺蜜",
    "客户": "client", "室友": "roommate", "舍友": "roommate", "房东": "landlord", "男朋友": "boyfriend", "男友": "boyfriend",
    "女朋友": "girlfriend", "女友": "girlfriend", "助理": "assistant", "学生": "student", "医生": "doctor", "教练": "coach",
    "搭档": "partner", "合伙人": "合伙人", "孙子": "孙子", "孙女": "孙女", "战友": "战友", "同桌": "同桌", "徒弟": "徒弟", "师傅": "师傅",
}  # fmt: skip
_RELATION = "|".join(sorted(_RELATIONS, key=len, reverse=True))
_SURNAMES = (
    "王李张刘陈杨黄赵周吴徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆"
    "汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤"
)
_AFTER_NAME = (
    r"(?=[的，,住在是有不没对会养开做当叫家最已也还都说喝吃坐读学过搬定每]|今年|现在|目前|喜欢|热衷|讨厌|来自|毕业|身高|年龄|生日|体重|个[头子]|电话"
    r"|手机|邮箱|精通|能说|血型|一般|平时|出生|支持|担任|就职|单位|公司|学历|老家|昨天|周[一二三四五六日]|上周|中午|服务|名字|全名|宠物|项目)"
)
_SUBJECT = re.compile(
    rf"(?:(?P<self>我|咱|本人|俺|用户)们?(?:家(?![是在住乡庭里]))?(?:的)?)?(?:有)?(?:那个|这个|一个|一位|那位|这位|个|那)?(?:(?P<relation>{_RELATION})"
    rf"(?![室馆店证])(?:的(?P<second>{_RELATION}))?"
    rf"|(?P<name>(?:[小老阿][{_SURNAMES}]|[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}?){_AFTER_NAME}|[A-Za-z][A-Za-z]+|他|她))?"
    r"[,，:：]?(?:他|她|ta)?们?(?:家(?![是在住乡庭里]))?(?:的)?(?:这个人)?[,，]?"
)
_LEAD = re.compile(r"^(?:请|麻烦|帮我)?(?:记住|记一下|记得|记下|备注一下|注意)?[,，:：]?(?:对了|其实|顺便说一下|话说|哦|嗯|那个|是这样)?[,，:：]?")
_NOTHING = re.compile(
    r"[\s,，、:：。.!！~～…\"“”'的呢啊吧嘛哦哟啦了哈呀是在就都也还才有很挺叫做那个这里边儿他她它我]|就是|今年|现在|目前|已经|大概|大约|平时|特别|非常"
    r"|正好|一般|每天|每日|天天|[只过可特真们]|左右|的话|而已|一个人|真的|好像|比较|最近|经常|一直|自己|这边|那边|那里|这里|个人"
)
_FILL = (
    r"(?:是|在|为|叫做?|有|于|才|就|都|也|还|了|已经?|今年|现在|目前|大概|大约|差不多|将近|快|特别|非常|挺|很|比较|好像|平时|一直"
    r"|经常|最近|高|不低|不错|的|呢|个|做|干|哈|[:：,，\s])*"
)
_DATE = r"(?P<v>(?:\d{2,4}年)?[\d一二三四五六七八九十]+月(?:[\d一二三四五六七八九十]+[日号]?)?|\d{1,4}[-/.]\d{1,2}(?:[-/.]\d{1,2})?)"
_NUMBER = r"[\d一二三四五六七八九十百两.]+"
_ONE, _USUALLY, _MANY = Arity.ONE, Arity.USUALLY_ONE, Arity.MANY
_PLACES = frozenset({"workplace", "hometown", "lives"})
_ROLES = frozenset({"job", "title"})
_PROVINCE = re.compile(
    r"北京|天津|上海|重庆|河北|山西|辽宁|吉林|黑龙江|江苏|浙江|安徽|福建|江西|山东|河南|湖北|湖南|广东|海南|四川|贵州|云南|陕西|甘肃"
    r"|青海|台湾|内蒙古?|广西|西藏|宁夏|新疆|香港|澳门"
)
_DEGREES = r"小学|初中|高中|中专|大专|专科|本科|硕士研究生|硕士|研究生|博士后|博士|学士"
_TITLE = (
    r"总裁|副?总经理|经理|总监|主管|主任|合伙人|董事长?|官|长|组长|负责人|总编|主编|教授|领队|店长|行长|院长|校长|部长|处长|科长"
    r"|专员|顾问|总工|总工程师|首席\w*|高级\w+|资深\w+|初级\w+|见习\w+|副\w+|实习生|骨干|主治医师|主任医师|秘书|助理"
)
_IS_TITLE = re.compile(rf"(?:{_TITLE})$|^(?:首席|高级|资深|初级|见习|副)")
_ENDS = r"[^,，。!！;；]+?(?=$|[,，。!！;；呢啊吧啦哈嘛])"
_PLACE = r"(?P<v>[\w（）()·的]+?)"
_TABLE: tuple[tuple[Attribute, str, str], ...] = (
    (Attribute("email", _ONE), "@", r"(?:邮箱|邮件|e?-?mail)?(?:地址)?F(?P<v>[\w.+-]+@[\w.-]+)"),
    (Attribute("phone", _ONE), "电话|手机|号码|联系", r"(?:联系)?(?:电话|手机|号码|联系方式)(?:号码|号)?F(?P<v>\+?\d[\d\- ]{5,}\d)"),
    (Attribute("birthday", _ONE), "生日|出生|生于", rf"(?:生日|出生日期|出生|生于)F{_DATE}|{_DATE.replace('?P<v>', '?P<w>')}(?:的生日|出生|过生日)"),
    (Attribute("height", _ONE), "身高|个子|个头|个儿|身长|高", rf"(?:身高|个子|个头|个儿|身长|高).*?(?P<v>{_NUMBER}\s?(?:厘米|cm|公分|米[\d一二三四五六七八九]*))"),
    (Attribute("weight", _ONE), "体重|重", rf"(?:体重|重).*?(?P<v>{_NUMBER}\s?(?:公斤|斤|千克|kg))"),
    (Attribute("age", _ONE), "岁|年龄|年纪", rf"(?:年龄|年纪|岁数)?F(?P<v>{_NUMBER})(?:多|来)?(?:周?岁)|年龄F(?P<w>{_NUMBER})"),
    (Attribute("education", _ONE), "学历|毕业|读|念|文凭|学位|生|专科|本科|硕士|博士|高中|初中|大专", rf"(?:学历|文凭|学位|读|念|毕业|是|有).*?(?P<v>{_DEGREES})(?:毕业|学历|学位|文凭|生)?|^F(?P<w>{_DEGREES})(?:毕业|学历|学位|文凭)"),
    (Attribute("school", _USUALLY), "毕业|就读|读书|上学|念书", r"(?:毕业于|就读于|就读在|在|从)(?P<v>[\w]+?(?:大学|学院|中学|小学|学校))(?:毕业|读书|上学|念书|就读)?"),
    (Attribute("major", _ONE), "专业", rf"(?:专业|学)(?:的)?F(?P<v>{_ENDS})"),
    (Attribute("hometown", _ONE), "老家|家乡|故乡|籍贯|祖籍|来自|人|家是", rf"(?:老家|家乡|故乡|籍贯|祖籍)F(?P<v>{_ENDS})|来自(?:于)?(?P<w>{_ENDS})|^是?(?P<x>[\w]{{2,8}}?(?<![个本家工伙]))人$|^(?:他|她)?们?家?是(?P<y>[\w]{{2,8}})的$"),
    (Attribute("workplace", _USUALLY), "上班|工作|任职|办公|打工|坐班", rf"(?:上班|工作|办公|任职)的?(?:地方|地点|城市|所在地|地)F(?P<v>{_ENDS})|在(?P<w>[\w（）()·]+?)(?:那边|这边)?(?:上班|工作|任职|办公|打工|坐班)|(?:工作|上班)在(?P<x>{_ENDS})"),
    (Attribute("employer", _USUALLY), "单位|公司|就职|供职|任职于|效力", rf"(?:工作单位|任职单位|单位|公司)[,，]?(?:的)?(?:名称|名字|全称|名)?(?:是|叫做?|为|名叫|在)+(?P<v>{_ENDS})|(?:就职于|供职于|任职于|就职在|效力于)(?P<w>{_ENDS})"),
    (Attribute("address", _ONE), "地址|住址", rf"(?:家庭)?(?:地址|住址)F(?P<v>{_ENDS})"),
    (Attribute("lives", _ONE), "住|定居|搬|安家|生活|家在", rf"(?:居住地?|定居|住|安家|生活|家)(?:F)?(?:在|到|于|是)(?P<v>{_ENDS})|搬(?:家)?(?:到|去|至)了?(?P<w>{_ENDS})|住(?P<x>{_ENDS})|在(?P<y>[\w]+?)(?:定居|居住|安家|生活)"),
    (Attribute("allergy", _MANY), "过敏", r"对(?P<v>[^,，。不]+?)(?:严重|很|特别|会|都)?过敏|过敏(?:原|源)F(?P<w>[^,，。]+)|(?:一)?(?:吃|碰|闻)到?(?P<x>[^,，。]+?)就?(?:会)?过敏|^F(?P<y>[\w]{1,6})过敏$"),
    (Attribute("dislikes", _MANY), "讨厌|受不了|反感|厌恶", rf"(?:讨厌|受不了|反感|厌恶)(?:吃|喝)?(?P<v>{_ENDS})"),
    (Attribute("likes", _MANY), "喜欢|爱|热衷|兴趣|迷上|痴迷|感兴趣", rf"(?:兴趣爱好|业余爱好|兴趣|爱好)F(?P<v>{_ENDS})|对(?P<w>[^,，]+?)(?:F)?(?:感兴趣|着迷|有兴趣)|(?:喜欢|热爱|喜爱|酷爱|钟爱|偏爱|热衷于?|迷上了?|痴迷|爱好|爱)(?:上了?)?(?:去|吃|喝|玩|看|做|听)?(?P<x>{_ENDS})"),
    (Attribute("title", _ONE), "职位|职务|头衔|岗位|职称|担任|出任|任", rf"(?:职位|职务|头衔|岗位|职称)F(?P<v>{_ENDS})|(?:担任|出任)(?:了)?(?P<w>{_ENDS})"),
    (Attribute("job", _ONE), "职业|工作|干的活", rf"(?:职业|工作|干的活儿?)(?:是|为)(?:个|一名|一位|做|干|当|名)?(?P<v>{_ENDS})"),
    (Attribute("title", _ONE), "是|做", rf"^F(?:[\w]*?(?:公司|单位|医院|学校|部门|团队|店)(?:里|的)*)?(?P<v>[\w]*(?:{_TITLE}))(?:的|呢)?$"),
    (Attribute("job", _ONE), "职业|工作|做|干|当|从事|是|行业", rf"(?:职业|工作)(?:是|为)?(?:个|一名|一位|做|干|当)?F(?P<v>{_ENDS})|从事(?:的是)?(?P<w>{_ENDS})|(?:做|干|当)(?:的是|了)?(?P<x>[^,，。的]{{2,8}}?)(?:的|这行|工作)?$|^F是(?:个|一名|名|一位|做|干|当)(?P<y>[^,，。的]{{2,8}}?)(?:的)?$"),
    (Attribute("car", _USUALLY), "开|车", rf"(?:开(?:的是|着|的)?|车(?!牌|库|位|票|次)F|座驾F)(?P<v>(?:一辆|辆)?[^,，。]{{1,12}}?)(?:车)?$"),
    (Attribute("pet", _USUALLY), "养|宠物", rf"(?:养(?:了|着|的是)?|宠物F)(?P<v>{_ENDS})"),
    (Attribute("name", _ONE), "名|叫", rf"(?:名字|姓名|全名|大名)F(?P<v>{_ENDS})|^(?:名叫|叫做?)(?P<w>{_ENDS})"),
    (Attribute("marital", _ONE), "婚|单身", r"(?P<v>已婚|单身|未婚|离异|离婚|结婚|丧偶)了?"),
    (Attribute("language", _MANY), "会说|会讲|能说", rf"(?:会说|会讲|能说|精通)(?P<v>{_ENDS})"),
    (Attribute("diet", _ONE), "吃素|素食|吃荤", r"(?P<v>吃素|素食主义|素食|吃荤)(?:者)?"),
    (Attribute("wakes", _ONE), "起床", rf"(?P<v>(?:早上|早晨|上午)?{_NUMBER}点半?)(?:钟)?起床"),
    (Attribute("sleeps", _ONE), "睡", rf"(?P<v>(?:晚上|夜里)?{_NUMBER}点半?)(?:钟)?(?:睡觉?|上床)"),
    (Attribute("plays", _MANY), "会弹|会拉|会打|踢", rf"(?:会弹|会拉|会打|踢)(?P<v>{_ENDS})"),
)  # fmt: skip
_HEADS = (
    r"(?:最喜欢的[\w]{1,6}?|[\w]{0,8}?(?:号码?|密码|口令|颜色|血型|星座|版本|价格|单价|预算|截止日期|截止时间|期限|日期|时间|端口|尺码|尺寸|鞋码"
    r"|车牌|国籍|民族|月薪|工资|薪水|房租|年薪|学号|工号|昵称|网名|账号|用户名|银行|微信|qq|网址|域名|首都|总部|负责人|队长|班长|属相|生肖"
    r"|周期|频率|时长|长度|宽度|温度|上限|下限|目标|楼层|房间|座位|航班|车次|酒店|母语|手机型号|电脑|浏览器|编辑器))"
)
_BEYOND = re.compile(r"(?:那边|这边|那个地方)$|^(?:那家|一家)?(?:名叫|叫做?)")
_SAME_NOUN = {"起床时间": "wakes", "睡觉时间": "sleeps", "车牌": "车牌号", "手机号": "phone", "手机号码": "phone"}
_FAVOURITE = re.compile(r"最(?:喜欢|爱)的(?P<n>[\w]{1,6}?)(?:就)?是(?P<v>.+)")
_FAVOURED = re.compile(r"(?P<v>.+?)是最(?:喜欢|爱)的(?P<n>[\w]{1,6})$")
_GENERIC = re.compile(rf"(?P<n>{_HEADS})(?:是|为|叫|在|定在|改成了?|改为|换成了?|[:：])+(?P<v>.+)")
_SENTENCES = re.compile(r"[。!！;；\n]+(?:输出[:：])?|\.(?=\s|$)")
_THING = re.compile(rf"(?P<thing>[\w]{{2,10}}?)的(?={_HEADS}(?:是|为|叫|在|定|改|换|不是|[:：]))")
_TURNED = re.compile(rf"(?P<v>[^我,，是的]{{1,20}}?)是(?P<s>(?:我|{_RELATION}|[小老阿{_SURNAMES}]\w{{1,2}}?的?最).*?(?:生日|颜色|最\w*的\w+|职业|爱好|电话|邮箱|家乡|老家))$")
_NEGATION = re.compile(r"(?:并|已经)?(?:不再|从不|从来不|不是|没有|不|没)(?:再|有)?(?!错|仅|但|管|论|只)|并非|(?<![特分区级性告类])别(?!人|墅|的|名|处)")


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"(?<![A-Za-z\\<])F(?![A-Za-z])", lambda _: _FILL, pattern))


_PATTERNS = tuple((attribute, re.compile(triggers), _compiled(pattern)) for attribute, triggers, pattern in _TABLE)


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
    if attribute.name in _ROLES:
        attribute = Attribute("title" if _IS_TITLE.search(value) else "job", _ONE)
    left = _NOTHING.sub("", rest[: match.start()] + rest[match.end() :])
    if attribute.name in _PLACES and _only_place(left, value):
        value, left = value + left, ""
    whole = all(character in value for character in left)
    if attribute.name == "dislikes":
        attribute, holds = Attribute("likes", _MANY), not holds
    return Frame(who, attribute.name, attribute.arity, value, holds, whole)


def _only_place(left: str, value: str) -> bool:
    """Whether what is left over tells no more than where the place lies, or its name again."""
    rest = _PROVINCE.sub("", left).replace("地方", "")
    return left != "" and all(character in value for character in rest)


def without_province(place: str) -> str:
    """A Chinese place without the province before or after it."""
    return _PROVINCE.sub("", place) or place


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
    named = [_RELATIONS[name] for name in (found["relation"], found["second"]) if name]
    if found["name"]:
        return ("he" if found["name"] == "他" else "she" if found["name"] == "她" else found["name"]), rest
    return ".".join(["self", *named]), rest


def _match(rest: str) -> tuple[Attribute, str, re.Match[str]] | None:
    for pattern in (_FAVOURITE, _FAVOURED):
        found = pattern.search(rest)
        if found is not None:
            return Attribute("favourite " + found["n"], _ONE), _value(found), found
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
    return Attribute(_SAME_NOUN.get(noun, noun), _ONE), _value(found), found


def _value(found: re.Match[str]) -> str:
    """What stands for the value, without what says nothing at its ends."""
    groups = found.groupdict()
    value = next((text for name in ("v", "w", "x", "y") if (text := groups.get(name))), "")
    value = _BEYOND.sub("", value)
    if value.startswith(("不", "没")):
        return ""
    return value.strip(" ,，。.!！~:：'\"“”的了呢啊吧啦嘛").removeprefix("一辆").removeprefix("一名").removeprefix("一个")
