r"""Reading the number that an answer states out of its text, exactly.

Example: "She sells 3 boxes for $1,234 each.\n**Answer:** $2{,}468 (see step 2)" reads 2468; with language
"de" the text "Antwort: 1.234,5" reads 1234.5. Values are Fractions: 400 digits, 3/4 and 1e-3 keep their exact
value.

The last labelled or boxed answer counts; without one, the last number of the last sentence that is not a
remark ("Let me know …", "Confidence: 95%"). No text is ever evaluated, and every scan is linear.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from evaluation.extraction.answers import before_next_question, boxes, labelled, sentences, strip_markup
from evaluation.extraction.courtesies import without_heading
from evaluation.extraction.number_words import cjk_value, written_number

# languages that write 3,5 for three and a half, and 1.234 for a thousand
COMMA_DECIMAL = frozenset({
    "de", "fr", "es", "it", "pt", "nl", "ru", "uk", "pl", "cs", "sk", "tr", "vi", "id", "sv", "da",
    "no", "nb", "fi", "el", "ro", "hu", "bg", "hr", "sl", "sr", "et", "lv", "lt", "ca", "gl", "eu",
})  # fmt: skip
_MOST_DIGITS = 4000  # Python refuses to convert longer ones; no answer is that long
_MOST_EXPONENT = 400


@dataclass(frozen=True)
class Number:
    """A number in a text. value: exact. others: other values that the same writing may mean ("50%" is 50 or
    1/2; "1,234" in German is 1.234 or 1234). start, end: where it stands in prepare(text). text: how it is
    written there."""

    value: Fraction
    others: tuple[Fraction, ...]
    start: int
    end: int
    text: str

    def equals(self, other: Fraction, tolerance: Fraction = Fraction(1, 1_000_000)) -> bool:
        """Whether one of the meanings is `other`, within an absolute tolerance (1e-6, as GSM8K's published
        check)."""
        return any(abs(value - other) <= tolerance for value in (self.value, *self.others))


_VULGAR = {chr(code): unicodedata.normalize("NFKC", chr(code)).replace("⁄", "/") for code in (
    *range(0xBC, 0xBF), *range(0x2150, 0x215F), 0x2189)}  # fmt: skip
_MINUS = dict.fromkeys(map(ord, "−﹣－‒–"), "-")
_SUPERSCRIPT = dict.fromkeys(map(ord, "⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉"), None)  # "30 m²" is 30
_CURRENCY = "$€£¥￥₹₽฿৳₩₫₦₺₱¢"
_LATEX = (
    (re.compile(r"\\(?:text|mathrm|mathbf|textbf|mathit|operatorname|mbox|bm)\s?\{([^{}]{0,200})\}"), r"\1"),
    (re.compile(r"(\d)\s?\\[dtc]?frac\s?(?=[{\d])"), r"\1 \\frac"),
    (re.compile(r"\\[dtc]?frac\s?\{\s?(-?[\d.,]{1,40})\s?\}\s?\{\s?([\d.,]{1,40})\s?\}"), r"\1/\2"),
    (re.compile(r"\\[dtc]?frac\s?(\d)\s?(\d)"), r"\1/\2"),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"(?<=\d)\\[,;:! ](?=\d{3})"), "\u202f"),
    (re.compile(r"\\(?:left|right|displaystyle|quad|qquad|!|,|;|:|[()\[\]])"), " "),
    (re.compile(r"\\(?:times|cdot)(?![A-Za-z])"), "×"),
    (re.compile(r"\\approx(?![A-Za-z])"), "="),
    (re.compile(r"\^\{?\\?circ\}?|°"), " "),
    (re.compile(r"\\([$%#&_{} ])"), r"\1"),
)
_ANNOTATION = re.compile(r"<<[^<>\n]{0,200}>>")  # GSM8K's calculator notes: 9*60=<<9*60=540>>540
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    r"|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_FULL_DATE = re.compile(
    rf"\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}\b|\b\d{{1,2}}(?:st|nd|rd|th)? {_MONTH},? \d{{4}}\b"
)
_HASHES = re.compile(
    r"^[ \t]{0,3}#{4}[ \t]{0,3}+(?=[-+]?\s?[$€£]?\s?[\d.])(?!\d{1,3}[.)]\s+\S)", re.MULTILINE
)


def prepare(text: str) -> str:
    """Text in which numbers are written plainly: ASCII digits and minus, no Markdown, no LaTeX marks, no
    currency signs."""
    text = _HASHES.sub("Answer: ", text)
    text = _FULL_DATE.sub(" ", _ANNOTATION.sub("", strip_markup(text)))
    if not text.isascii():
        text = text.translate(_SUPERSCRIPT)
        text = "".join(f" {_VULGAR[char]}" if char in _VULGAR else char for char in text)
        text = text.translate(_MINUS)
        text = "".join(_plain(char) for char in text)
    for pattern, replacement in _LATEX:
        text = pattern.sub(replacement, text)
    text = re.sub(rf"([-+])[ \t]?(?:US)?[{_CURRENCY}][ \t]?(?=[\d.])", r"\1", text)
    return re.sub(rf"(?:\bUS|\bR)?[{_CURRENCY}]", " ", text)


def _plain(char: str) -> str:
    if char < "\u0080":
        return char
    digit = unicodedata.decimal(char, None)
    if digit is not None:
        return str(digit)
    if char in "：．，％／（）＋＝":
        return unicodedata.normalize("NFKC", char)
    return char


# digits with marks between them; which mark means what is decided by _value
_GROUPING = "\u00a0\u2009\u202f\u2007"
_RUN = re.compile(rf"\d(?:\d|[.,'’٫٬،](?=\d)|[{_GROUPING}](?=\d{{3}}(?!\d)))*+")
_RUN_SPACED = re.compile(rf"\d(?:\d|[.,'’٫٬،](?=\d)|[ {_GROUPING}](?=\d{{3}}(?!\d)))*+")
_GROUPS = re.compile(r"\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}")
_CLOCK = re.compile(r"(?::\d{1,9})+")
_DATE = re.compile(r"[/-]\d{1,4}[/-]\d{1,4}(?![\d/])")
_SLASH = re.compile(r" ?/ ?(\d{1,40})(?![\d/])")
_MIXED = re.compile(r"(?:[ \u00a0]|-| and )(\d{1,9}) ?/ ?(\d{1,9})(?![\d/])")
_EXPONENT = re.compile(r"[eE]([-+]?\d{1,18})(?!\w)| ?[×*x] ?10 ?\^ ?\{? ?([-+]?\d{1,18}) ?\}?")
_POWER = re.compile(r" ?(?:\^|\*\*) ?\{? ?(\d{1,4}) ?\}?")
_PERCENT = re.compile(r"\s?(?:%|٪|percent\b|per cent\b|Prozent\b|por ciento\b|pour ?cent\b)", re.IGNORECASE)
_SCALE = re.compile(r" ?(hundred|thousand|million|billion|trillion)s?\b", re.IGNORECASE)
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_MYRIAD = re.compile(
    r"(?:[万萬億亿兆만억]|[千百](?![米克瓦卡帕赫分])|천|백)[\d〇零一二三四五六七八九十百千万萬億亿兆]*"
)
# a number after these words names a place in the text, it is no result
_REFERENCE = re.compile(
    r"(?:\b(?:step|question|problem|part|example|exercise|equation|eq|figure|fig|table|page|section"
    r"|chapter|line|option|"
    r"case|day|note|ref|schritt|frage|aufgabe|étape|etape|question|paso|pregunta|passo|шаг|шаге|вопрос"
    r"|hatua|swali)s?"
    r"|步骤|第|ステップ|問題|ধাপ|దశ|ขั้นตอนที่|ข้อ|الخطوة)\.? ?(?:no\.? ?|number )?[(#]?$|(?<!#)#$",
    re.IGNORECASE,
)
_CODES = re.compile(r"(?:USD|EUR|GBP|Rs|INR|JPY|CNY|RMB|CHF|CAD|AUD|US|R)$")


def numbers(text: str, language: str = "en") -> list[Number]:
    """The numbers of a prepared text (see prepare) in their order; clock times, dates, exponents of units,
    numbers inside words ("x2") and references ("step 3") are none. language: ISO code, for decimal marks and
    grouping."""
    found: list[Number] = []
    position = 0
    run_pattern = _RUN_SPACED if language in COMMA_DECIMAL else _RUN
    while match := run_pattern.search(text, position):
        number, position = _number_at(text, match, language)
        if number is not None:
            found.append(number)
    return found


def _number_at(text: str, match: re.Match[str], language: str) -> tuple[Number | None, int]:
    """The number whose digits are `match`, None where they are none; and where to go on."""
    start, end = match.span()
    if other := _CLOCK.match(text, end) or _DATE.match(text, end):
        return None, other.end()
    meanings = _value(match.group(), language)
    if text[start - 1 : start] == "." and not re.match(r"[\w.)]", text[max(0, start - 2) : start - 1]):
        start -= 1  # ".5"
        meanings = (
            _decimals(f"0.{match.group()}") if match.group().isdigit() and end - start < _MOST_DIGITS else []
        )
    sign, start, inside = _before(text, start)
    if not meanings:
        return None, end
    meanings, end = _after(text, end, meanings)
    if inside or not meanings:
        return None, end
    values = [sign * meaning for meaning in meanings]
    return Number(values[0], tuple(values[1:]), start, end, text[start:end].strip()), end


def _before(text: str, start: int) -> tuple[int, int, bool]:
    """(sign, where the number begins, whether it is part of something else: a word, an exponent, a
    reference)."""
    before = text[max(0, start - 24) : start]
    char = before[-1:]
    if char.isalpha() and ord(char) < 0x590 and not _CODES.search(before):
        return 1, start, True
    if (char in "^_" and char) or before.endswith(("^{", "^ ", "_{")) or re.search(r"\w\*\*$", before):
        return 1, start, True
    if _REFERENCE.search(before):
        return 1, start, True
    # a sign, unless it joins two things: 7-9, (a)-9, 7 -9
    if char and char in "+-" and not re.search(r"[\w)\]}%+-][-+]$|[\d)] [-+]$", before):
        return (-1 if char == "-" else 1), start - 1, False
    return 1, start, False


def _after(text: str, end: int, meanings: list[Fraction]) -> tuple[list[Fraction], int]:
    """The meanings once what follows the digits is taken in (fraction, exponent, scale, percent), and where
    it ends."""
    value = meanings[0]
    if (mixed := _MIXED.match(text, end)) and 0 < int(mixed[1]) < int(mixed[2]) and value.denominator == 1:
        return [value + Fraction(int(mixed[1]), int(mixed[2]))], mixed.end()
    if slash := _SLASH.match(text, end):
        return ([value / int(slash[1])] if int(slash[1]) else []), slash.end()
    if exponent := _EXPONENT.match(text, end):
        power = int(exponent[1] or exponent[2])
        return ([value * Fraction(10) ** power] if abs(power) <= _MOST_EXPONENT else []), exponent.end()
    if power_match := _POWER.match(text, end):
        power = int(power_match[1])
        bits = max(value.numerator.bit_length(), value.denominator.bit_length()) * power
        return ([value**power] if bits <= 8192 else []), power_match.end()
    if scale := _SCALE.match(text, end):
        return [value * _SCALES[scale[1].lower()]], scale.end()
    if myriad := _MYRIAD.match(text, end):
        whole = cjk_value(myriad.group(), start=value)
        return ([whole] if whole is not None else meanings), myriad.end()
    if percent := _PERCENT.match(text, end):
        return [value, value / 100], percent.end()
    return meanings, end


def _value(run: str, language: str) -> list[Fraction]:
    """The meanings of digits with marks between them, the likeliest first; [] for what is no single
    number."""
    if len(run) > _MOST_DIGITS:
        return []
    run = re.sub(rf"[ '’{_GROUPING}٬]", "", run)
    if "٫" in run or "،" in run:
        run = run.replace("٫", ".").replace("،", ".")
    comma_decimal = language in COMMA_DECIMAL
    if "," in run and "." in run:
        mark = max(",.", key=run.rfind)
        other = "," if mark == "." else "."
        head, _, tail = run.rpartition(mark)
        if mark in head or not _GROUPS.fullmatch(head.replace(other, ",")):
            return []
        return _decimals(head.replace(other, "") + "." + tail)
    if "," in run:
        grouped = (
            _decimals(run.replace(",", "")) if _GROUPS.fullmatch(run) and not run.startswith("0") else []
        )
        pointed = _decimals(run.replace(",", ".")) if comma_decimal and run.count(",") == 1 else []
        return pointed + grouped
    if "." in run:
        groups = _GROUPS.fullmatch(run.replace(".", ",")) and not run.startswith("0")
        if groups and (comma_decimal or run.count(".") > 1):
            return _decimals(run.replace(".", ""))
        return _decimals(run) if run.count(".") == 1 else []
    return _decimals(run)


def _decimals(text: str) -> list[Fraction]:
    try:
        return [Fraction(Decimal(text))]
    except (InvalidOperation, ValueError, OverflowError):
        return []


_LONGEST_SENTENCE = 4000  # of a looping model's endless line only the end is read
_REMARK = re.compile(
    r"(?:let me know|please|feel free|i hope|hope (?:this|that|it)|i'm (?:happy|glad)|thank|note\b"
    r"|n\.?b\.|ps\b|p\.s\.|see\b|"
    r"confidence|certainty|sources?\b|disclaimer|(?:to )?(?:check|verify|double-check)\b|verification|"
    r"if you (?:have|need|want|would|like)|would you|do you|can i|i (?:have )?(?:just )?(?:rounded"
    r"|checked|verified|double|"
    r"re-?checked|assumed|used|took|followed|am)\b|this (?:took|used|assumes)|it took me|"
    r"siehe\b|voir\b|véase|ver\b|см\.|hinweis|remarque|nota\b|lass|hoffe|j'espère|espero|注[:：]|请|希望)",
    re.IGNORECASE,
)
_BRACKETS = re.compile(r"\([^()\n]{0,300}\)|（[^（）\n]{0,300}）")
_BOLD = re.compile(r"\*\*([^*\n]{1,80})\*\*")
_OPERATOR = re.compile(r"\s?[-+*/×÷xX]\s?")


def answer_number(text: str, language: str = "en") -> Number | None:
    """The number that an answer states; None where it states none.

    The last of: "Answer: …" (also "The answer is …", other languages, "#### …") and closed boxes; without a
    readable one the last number of the last sentence that is not a remark; without digits, numerals in words.
    """
    text = without_heading(text)
    head = before_next_question(text)
    if head != text and (re.search(r"^A:", head, re.MULTILINE) or labelled(prepare(head)) or boxes(head)):
        text = head  # a base model that goes on with questions of its own
    plain = prepare(text)
    marks = [(mark.start, mark) for mark in labelled(plain)] + [
        (start, content) for start, content in boxes(plain)
    ]
    for _, mark in sorted(marks, key=lambda pair: pair[0], reverse=True)[:20]:
        if isinstance(mark, str):
            found = numbers(mark, language)
            value = found[-1] if found else _written(mark)
            if value is not None:
                return value
            continue
        if not mark.value:
            continue
        value = _stated(plain[mark.end :], mark.value, language)
        if value is not None:
            return value
        if mark.colon and not mark.below:
            return None  # "Answer: none", "Answer: 3:30": the answer is stated, and is no number
    return _last_sentence(text, language) or (None if any(c.isdigit() for c in plain) else _written(plain))


def _written(text: str) -> Number | None:
    value = written_number(text)
    return None if value is None else Number(value, (), 0, 0, str(value))


def _stated(rest: str, value: str, language: str) -> Number | None:
    """The number that a label's value states: its own first number where it begins with one, else as in a
    free text."""
    found = numbers(value, language)
    if found and not re.search(r"[A-Za-z\d]", _lead(value[: found[0].start])):
        return _first(value, found)
    if not found and (written := _written(value)) is not None:
        return written
    return _last_sentence(rest, language)


def _lead(text: str) -> str:
    """What stands before the first number, less the words that may (about, exactly, a letter that is set
    equal)."""
    return re.sub(
        r"\b(?:about|approximately|exactly|around|roughly|only|just|a total of|total|USD|EUR|Rs|US|is"
        r"|[a-zA-Z] ?(?==))\b",
        "",
        text,
        flags=re.IGNORECASE,
    )


def _first(value: str, found: list[Number]) -> Number | None:
    """The first number, or the result where a calculation follows it; None for a calculation without a
    result."""
    first = found[0]
    clause = value[first.end :]
    equals = clause.find("=")
    if equals >= 0 and not re.search(r"[;(.]\s|, |\b(?:because|since|as|not)\b", clause[:equals]):
        after = [number for number in found if number.start > first.end + equals]
        return after[0] if len(after) == 1 else _after_last_equals(value, after)
    if len(found) > 1:
        between = value[first.end : found[1].start]
        if found[1].text.startswith(("-", "+")) and not between.strip():
            return found[1]
        if re.fullmatch(r"\s?(?:-|to|or|bis|à)\s?", between):
            return found[1]  # a range: its upper end, as in a free text
        if _OPERATOR.fullmatch(between) and between.strip():
            return None
    return first


def _after_last_equals(value: str, found: list[Number]) -> Number | None:
    last = value.rfind("=")
    after = [number for number in found if number.start > last]
    return after[0] if after else (found[-1] if found else None)


def _last_sentence(text: str, language: str) -> Number | None:
    """The last number of the last sentence that is not a remark; of a remark where all sentences with numbers
    are."""
    in_remark: Number | None = None
    for sentence in reversed(sentences(text)[-400:]):
        bold = _BOLD.findall(sentence)
        plain = prepare(sentence[-_LONGEST_SENTENCE:])
        if not any(char.isdigit() for char in plain):
            continue
        found = numbers(_BRACKETS.sub(" ", plain), language) or numbers(plain, language)
        if not found:
            continue
        if _REMARK.match(plain.strip()) or plain.rstrip().endswith("?"):
            in_remark = in_remark or found[-1]
            continue
        marked = numbers(prepare(bold[-1]), language) if bold else []
        return marked[-1] if marked else found[-1]
    return in_remark


def gold_number(text: str, language: str = "en") -> Fraction | None:
    """The value of a gold text: the number behind the last "####" (GSM8K), else its last number; None without
    one."""
    _, marked, tail = text.rpartition("####")
    plain = prepare((tail if marked else text)[-_LONGEST_SENTENCE:])
    found = numbers(plain) or (numbers(plain, language) if language != "en" else [])
    if not found:
        return written_number(plain)
    local = numbers(plain, language)
    # "3,5" is two numbers in English and one in the row's own language
    return (local if len(local) == 1 and len(found) > 1 else found)[-1].value
