"""The words of other European languages that one grammar speaks of. Patterns are over folded text: no accents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """What differs between languages; texts are patterns.

    Attributes:
        units: day, week, month, year, weekend; plain words, parted by "|".
        weekdays: From Monday on; plain words as well.
        turns: What says last, this and next, before or after the unit.
        ago: What stands before, and what after, the count and the unit.
        numbers: From one to ten.
        few: What says several, and what says a couple.
    """

    units: Mapping[str, str]
    weekdays: Sequence[str]
    turns: Sequence[str]
    ago: Sequence[tuple[str, str]]
    numbers: Sequence[str]
    few: tuple[str, str]


def _units(day: str, week: str, month: str, year: str, weekend: str) -> dict[str, str]:
    return {"day": day, "week": week, "month": month, "year": year, "weekend": weekend}


FRENCH = Language(
    units=_units("jour|jours", "semaine|semaines", "mois", "an|ans|annee|annees", "week-end|weekend|fin de semaine"),
    weekdays=["lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"],
    turns=("derniere?|passee?", "ce|cet|cette", "prochaine?"),
    ago=[("il y a ", "")],
    numbers=["une?", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix"],
    few=("quelques", "deux ou trois"),
)
GERMAN = Language(
    units=_units(
        "tag|tage|tagen", "woche|wochen", "monat|monate|monaten", "jahr|jahre|jahren", "wochenende|wochenenden"
    ),
    weekdays=["montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag|sonnabend", "sonntag"],
    turns=("(?:letzt|vergangen|vorig)e[nrsm]?", "diese[nrsm]?", "(?:nachst|kommend)e[nrsm]?"),
    ago=[("vor ", "")],
    numbers=["eine?[nmr]?", "zwei", "drei", "vier", "funf", "sechs", "sieben", "acht", "neun", "zehn"],
    few=("einigen|ein paar|wenigen|mehreren", "zwei bis drei"),
)
SPANISH = Language(
    units=_units("dia|dias", "semana|semanas", "mes|meses", "ano|anos", "fin de semana|fines de semana"),
    weekdays=["lunes", "martes", "miercoles", "jueves", "viernes", "sabado", "domingo"],
    turns=("pasad[oa]|ultim[oa]", "est[ea]", "proxim[oa]|que viene"),
    ago=[("hace ", ""), ("", " atras")],
    numbers=["un[oa]?", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve", "diez"],
    few=("unos(?: pocos)?|unas(?: pocas)?|algun[oa]s|vari[oa]s|poc[oa]s", "un par de"),
)
ITALIAN = Language(
    units=_units("giorno|giorni", "settimana|settimane", "mese|mesi", "anno|anni", "fine settimana|weekend"),
    weekdays=["lunedi", "martedi", "mercoledi", "giovedi", "venerdi", "sabato", "domenica"],
    turns=("scors[oa]|passat[oa]", "quest[oa]", "prossim[oa]"),
    ago=[("", " fa")],
    numbers=["un[oa]?", "due", "tre", "quattro", "cinque", "sei", "sette", "otto", "nove", "dieci"],
    few=("qualche|alcun[ie]|poch[ie]|divers[ie]", "un paio di"),
)
PORTUGUESE = Language(
    units=_units("dia|dias", "semana|semanas", "mes|meses", "ano|anos", "fim de semana|fins de semana"),
    weekdays=[
        "segunda|segunda-feira",
        "terca|terca-feira",
        "quarta|quarta-feira",
        "quinta|quinta-feira",
        "sexta|sexta-feira",
        "sabado",
        "domingo",
    ],
    turns=("passad[oa]|ultim[oa]", "est[ea]", "proxim[oa]|que vem"),
    ago=[("ha ", ""), ("faz ", ""), ("", " atras")],
    numbers=["uma?", "doi?s|duas", "tres", "quatro", "cinco", "seis", "sete", "oito", "nove", "dez"],
    few=("uns|umas|algun?s|algumas|pouc[oa]s|vari[oa]s", "um par de"),
)
RUSSIAN = Language(
    units=_units(
        "день|дня|днеи|дни|дне",
        "неделя|недель|недели|неделю|неделе",
        "месяц|месяца|месяцев|месяцы|месяце",
        "год|года|году|лет",
        "выходные|выходных|выходным|выходнои",
    ),
    weekdays=[
        "понедельник",
        "вторник",
        "среда|среду|среды",
        "четверг",
        "пятница|пятницу|пятницы",
        "суббота|субботу|субботы",
        "воскресенье|воскресенья",
    ],
    turns=("(?:прошл|минувш)[а-я]{2,3}", "эт(?:от|а|о|у|ои|ом|их|и)", "(?:следующ|будущ)[а-я]{2,3}"),
    ago=[("", " (?:тому )?назад")],
    numbers=["од(?:ин|на|ну|но)", "дв[ае]", "три", "четыре", "пять", "шесть", "семь", "восемь", "девять", "десять"],
    few=("несколько", "пар[уы]|пара"),
)
DUTCH = Language(
    units=_units("dag|dagen", "week|weken", "maand|maanden", "jaar|jaren", "weekend|weekends"),
    weekdays=["maandag", "dinsdag", "woensdag", "donderdag", "vrijdag", "zaterdag", "zondag"],
    turns=("vorige?|afgelopen", "deze|dit", "volgende?|komende?"),
    ago=[("", " geleden")],
    numbers=["een", "twee", "drie", "vier", "vijf", "zes", "zeven", "acht", "negen", "tien"],
    few=("enkele|een paar|aantal", "twee of drie"),
)
LANGUAGES = (FRENCH, GERMAN, SPANISH, ITALIAN, PORTUGUESE, DUTCH, RUSSIAN)

_MONTHS = (
    "janvier januar janner enero gennaio janeiro januari январь января январе",
    "fevrier februar febrero febbraio fevereiro februari февраль февраля феврале",
    "mars marz maerz marzo marco maart март марта марте",
    "avril abril aprile апрель апреля апреле",
    "mai mayo maggio maio mei маи мая мае",
    "juin juni junio giugno junho июнь июня июне",
    "juillet juli julio luglio julho июль июля июле",
    "aout agosto augustus август августа августе",
    "septembre septiembre setiembre settembre setembro сентябрь сентября сентябре",
    "octobre oktober octubre ottobre outubro октябрь октября октябре",
    "novembre noviembre novembro ноябрь ноября ноябре",
    "decembre dezember diciembre dicembre dezembro декабрь декабря декабре",
)
MONTHS = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
"""Months of all languages: no word means two of them. English has its own."""
DAY_WORDS = {
    name: offset
    for offset, names in {
        -2: "avant-hier vorgestern anteayer antier avantieri anteontem позавчера eergisteren",
        -1: "gestern ayer ieri ontem вчера gisteren",
        0: "aujourd'hui heute hoy oggi hoje сегодня vandaag",
        1: "demain domani amanha завтра",
        2: "apres-demain ubermorgen dopodomani послезавтра overmorgen",
    }.items()
    for name in names.split()
}
DAY_WORDS |= {"l'altro ieri": -2, "pasado manana": 2, "depois de amanha": 2}
