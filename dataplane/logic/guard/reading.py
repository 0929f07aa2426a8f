"""A text as a model would read it, whatever it is spelt with.

Folded: NFKC (full width to half width, stylised letters to plain ones), accents and invisible characters gone, letters
that only look Latin made Latin (after Unicode Technical Standard 39, the commonest only), plain quotes, lower case,
common traditional characters simplified, each run of blanks one space, or one line end where it holds one.

Loose: letters written apart are joined (`i g n o r e`), digits and signs inside a word are letters again (`ign0re`),
signs between words are spaces (`say_this`). Every step is linear in the length of the text.
"""

import re
import unicodedata

_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһӏԛԝɡɑοαερτυνκικβϲıⅼ‘’‚‛′`´“”„‟″«»「」『』–—―‐‑−…",
    'aeopcyxijsdhlqwgaoaeptuvkikbcil\'\'\'\'\'\'\'"""""""""""------.',
)
_TRADITIONAL = str.maketrans(
    "請輸為設內記後據導說語詞體係統個們這還會過對時間從現開關權員號帳賬戶轉發給聯絡錄務險應當將無視視實際執運規則"
    "須聽復複審覈認證編碼隱藏碼檔頁處讀圖話問題標記寫動靜寧願國際總結經驗優級類數資訊義進讓許諾銀雲遞購買賣價錢東"
    "勿違離線電腦網絡鏈結連點擊擴產業習慣師講評論點樂歡壓縮隻雙邊長誰麼樣歸條項變換選擇難釋",
    "请输为设内记后据导说语词体系统个们这还会过对时间从现开关权员号账账户转发给联络录务险应当将无视视实际执运规则"
    "须听复复审核认证编码隐藏码档页处读图话问题标记写动静宁愿国际总结经验优级类数资讯义进让许诺银云递购买卖价钱东"
    "勿违离线电脑网络链结连点击扩产业习惯师讲评论点乐欢压缩只双边长谁么样归条项变换选择难释",
)
_LEET = str.maketrans("013457@$!|", "oieastasil")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e01ef]"
)
_MARKS = re.compile("[\u0300-\u036f]")
_BLANKS = re.compile(r"[^\S\n]*\n\s*|[^\S\n]+")
_SPACED = re.compile(r"(?<![^\W_])[^\W\d_](?:[ ._*|-][^\W\d_]){2,200}(?![^\W_])")
_APART = re.compile(r"[ ._*|-]")
_SIGNS = re.compile(r"(?<=[^\W_])[_*.~+|-](?=[^\W_])|_")
_MIXED = re.compile(r"[013457@$!|]?[a-z]{1,20}[013457@$!|][a-z013457@$!|]{0,20}|(?<![^\W_])[013457@$!|][a-z]{2,20}")


def fold(text: str) -> str:
    """The text folded, as above."""
    return _BLANKS.sub(_blank, _plain(text))


def readings(text: str) -> tuple[str, ...]:
    """The text folded and, where that is another one, the text read loosely."""
    plain = _plain(text)
    folded = _BLANKS.sub(_blank, plain)
    joined = _BLANKS.sub(_blank, _SPACED.sub(lambda found: _APART.sub("", found[0]), plain))
    loose = _MIXED.sub(lambda found: found[0].translate(_LEET), _SIGNS.sub(" ", joined))
    return (folded,) if loose == folded else (folded, loose)


def _plain(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
        text = _MARKS.sub("", unicodedata.normalize("NFD", text.casefold()))
        text = unicodedata.normalize("NFC", text).translate(_LOOKALIKES).translate(_TRADITIONAL)
    return text.lower()


def _blank(found: re.Match[str]) -> str:
    return "\n" if "\n" in found[0] else " "
