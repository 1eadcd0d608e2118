"""Strict JSON: what is read is exactly what was sent, or it is refused with the place named."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.errors import InvalidBody
from app.domain.strict_json import loads

SMALLEST, LARGEST = -(2**63), 2**63 - 1


def refusal(body: str | bytes, **options: Any) -> InvalidBody:
    with pytest.raises(InvalidBody) as caught:
        loads(body.encode() if isinstance(body, str) else body, **options)
    assert caught.value.code == "invalid_body"
    f"{caught.value.detail}{caught.value.pointer}".encode()  # the answer to the client can be encoded
    return caught.value


@pytest.mark.parametrize(
    "body",
    [
        "null", "true", '""', "0", "-0", "1", '{"a": [1, {"b": null}], "c": {}}', " \n[ ]\t",
        "0.10", "1e3", "1E+3", "3.0", "-2.5e-3", "0.0", "-0.0", "0e0", "0.000e-9", "1e308", "5e-324",
        "0.1234567890123456", "0.10000000000000001", "1234567890123456.5", "1.7976931348623157e308",
        str(LARGEST), str(SMALLEST), "1000000000000000000000.0", "1e22",
        '"\\ud83d\\ude00"',
        '{"\\ud83d\\ude00": "\\u00e9"}', '"\\\\ud800 and \\\\u0000 are text"', '"\u2400\u2028"',
        '["]]]]", "[[[[", "\\"[[[["]',
    ],
)  # fmt: skip
def test_fine_json_reads_as_with_the_standard_library(body: str) -> None:
    assert loads(body.encode()) == json.loads(body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"a": "\xff"}', "not UTF-8 (byte 7)"),
        (b'"\xed\xa0\x80"', "not UTF-8"),  # a surrogate in raw bytes
        (b"\x00", "line 1, column 1"),
        (b'"raw \x00 NUL"', "Invalid control character at line 1, column 6"),
        (b"", "empty"),
        (b" \n", "empty"),
        (b'\xef\xbb\xbf{"a":1}', "byte order mark"),
        (b'{\n  "a": 1,\n  b: 2}', "line 3, column 3"),
        (b"[1,]", "line 1"),
        (b"[1] 2", "Extra data at line 1, column 5"),
        (b"{'a': 1}", "line 1, column 2"),
        (b"01", "Extra data"),
        (b"+1", "column 1"),
        (b'{"a": NaN} x', "Extra data"),  # syntax comes before values
        (b'"\\ud8"', "escape"),
    ],
)
def test_what_is_not_json_is_refused_with_its_line_and_column(body: bytes, words: str) -> None:
    error = refusal(body)
    assert words in error.detail
    assert error.pointer == ""


@pytest.mark.parametrize(
    ("body", "pointer", "words"),
    [
        ('{"parameters": {"x": NaN}}', "/parameters/x", "NaN is not JSON"),
        ("[0, -Infinity]", "/1", "-Infinity is not JSON"),
        ("Infinity", "", "Infinity is not JSON"),
        ('{"a": [0, 1e400]}', "/a/1", "too large"),
        ("-1e400", "", "too large"),
        ("1e99999999999999999999", "", "too large"),
        ("1e-400", "", "cannot hold 1e-400 exactly"),
        ("1e-99999999999999999999", "", "send it as a string"),
        ('{"a": 12345678901234567890.10}', "/a", "cannot hold 12345678901234567890.10 exactly"),
        ("9007199254740993.0", "", "send it as a string"),
        ("0.30000000000000000001", "", "send it as a string"),
        ("0." + "3" * 100_000, "", "100002 characters"),
        (str(LARGEST + 1), "", "does not fit in 64 bits; send it as a string"),
        (str(SMALLEST - 1), "", "does not fit in 64 bits"),
        ('{"n": ' + "7" * 5000 + "}", "/n", "(5000 characters) does not fit"),
        ('{"x": 1, "x": 2}', "/x", "the key 'x' appears more than once"),
        ('{"a/b": [{"~": {"k": 1, "k": 1}}]}', "/a~1b/0/~0/k", "'k'"),
        ('{"a": NaN, "a": 1}', "", "NaN"),
        ('{"\\ud800": 1, "\\ud800": 2}', "", "more than once"),
        ('{"a": "\\u0000"}', "/a", "NUL"),
        ('{"a": {"b\\u0000c": 1}}', "/a", "the key 'b\\x00c'"),
        ('["fine", "\\ud83d\\ude00", "\\ud83d"]', "/2", "surrogate"),
        ('{"\\uDE00": 1}', "", "the key '\\ude00'"),
        ('"\\ude00\\ud83d"', "", "surrogate"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_kept_is_refused_where_it_stands(body: str, pointer: str, words: str) -> None:
    error = refusal(body)
    assert error.pointer == pointer
    assert words in error.detail


def test_nesting_up_to_the_limit_is_fine_and_one_deeper_is_refused() -> None:
    assert loads(b"[" * 64 + b"]" * 64) == json.loads("[" * 64 + "]" * 64)
    assert loads(b'{"a":' * 64 + b"1" + b"}" * 64)
    assert refusal(b"[" * 65 + b"]" * 65).pointer == "/0" * 64
    assert refusal(b'{"a":[' * 2 + b"1" + b"]}" * 2, max_depth=3).pointer == "/a/0/a"
    assert loads(b'{"a":[' * 2 + b"1" + b"]}" * 2, max_depth=4)


def test_many_brackets_side_by_side_or_in_strings_are_not_deep() -> None:
    body = json.dumps([[[]] * 100, "[" * 100, '\\"' + "{" * 100, {"[" * 100: [{}]}]).encode()
    assert loads(body, max_depth=4) == json.loads(body)
    assert refusal(body, max_depth=3).pointer == "/3/" + "[" * 100 + "/0"


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"a":'])
@pytest.mark.parametrize("count", [65, 900, 5_000, 100_000])
def test_any_depth_is_refused_and_crashes_nothing(opening: bytes, count: int) -> None:
    closing = opening[::-1].translate(bytes.maketrans(b"[{", b"]}"), b'":a')
    refusal(opening * count)
    assert "nested" in refusal(opening * count + b"1" + closing * count).detail


@pytest.mark.parametrize("flaw", ["NaN", "1e999", "9" * 30, '"\\ud800"', '{"a":1,"a":2}'])
def test_a_body_of_many_flaws_names_the_first(flaw: str) -> None:
    assert refusal("[1," + ",".join([flaw] * 50_000) + "]").pointer.startswith("/1")


numbers = st.integers(SMALLEST, LARGEST) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
documents = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=30,
)


@settings(deadline=None)
@given(documents, st.sampled_from([{}, {"ensure_ascii": False}, {"indent": 1}, {"separators": (",", ":")}]))
def test_every_json_document_reads_as_it_was_written(document: object, style: dict[str, Any]) -> None:
    body = json.dumps(document, **style).encode()
    assert loads(body) == document == json.loads(body)


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 25))
def test_a_decimal_is_read_as_itself_or_refused(value: float, digits: int) -> None:
    text = f"{value:.{digits}g}"
    try:
        read = loads(text.encode())
    except InvalidBody:
        assert digits > 15 or not math.isfinite(float(text)) or abs(value) < 1e-300
    else:
        assert isinstance(read, int | float)
        assert float(read) == float(text)


@settings(deadline=None)
@given(documents, st.data())
def test_a_damaged_document_is_read_or_refused_and_nothing_else(
    document: object, data: st.DataObject
) -> None:
    body = bytearray(json.dumps(document, ensure_ascii=data.draw(st.booleans())).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body)))
        body[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.binary(max_size=3)
            | st.sampled_from(
                [b"\\u0000", b"\\ud800", b"NaN", b"1e999", b"[" * 70, b'"', b"\\", b"9" * 40, b"{", b","]
            )
        )
    try:
        read = loads(bytes(body))
    except InvalidBody as error:
        f"{error.detail}{error.pointer}".encode()
    else:
        assert read == json.loads(bytes(body))
        json.dumps(read, allow_nan=False, ensure_ascii=False).encode()
