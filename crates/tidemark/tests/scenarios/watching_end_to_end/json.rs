//! Answers as JSON, as the book describes them.

use super::stream::{content, elements};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Returns the JSON of an answer in wire format.
pub(crate) fn of(answer: &[u8]) -> Value {
    let text = || String::from_utf8_lossy(content(answer)).into_owned();
    match answer.first() {
        Some(b':') => json!(text().parse::<i64>().unwrap_or_default()),
        Some(b',') => match text().as_str() {
            special @ ("inf" | "-inf" | "nan") => json!(special),
            number => json!(number.parse::<f64>().unwrap_or_default()),
        },
        Some(b'#') => json!(content(answer) == b"t"),
        Some(b'-') => json!({ "error": text() }),
        Some(b'$' | b'+') if !answer.starts_with(b"$-1") => match std::str::from_utf8(content(answer)) {
            Ok(text) => json!(text),
            Err(_) => json!({ "base64": STANDARD.encode(content(answer)) }),
        },
        Some(b'*' | b'~') if !answer.starts_with(b"*-1") => {
            elements(answer).into_iter().map(of).collect::<Vec<_>>().into()
        }
        Some(b'%') => map(answer),
        _ => Value::Null,
    }
}

/// Returns what a subscriber notes of JSON that was sent. Parsing may change the last digit of a
/// float, and the subscriber's notes are parsed once more.
pub(crate) fn received(sent: &Value) -> Value {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    read(&read(&sent.to_string()).to_string())
}

/// Returns an object, or pairs if a key is not text.
fn map(answer: &[u8]) -> Value {
    let parts = elements(answer);
    let key = |pair: &[&[u8]]| std::str::from_utf8(content(pair[0])).ok().map(str::to_owned);
    let object = parts.chunks(2).map(|pair| Some((key(pair)?, of(pair[1]))));
    match object.collect::<Option<serde_json::Map<_, _>>>() {
        Some(object) => object.into(),
        None => parts.chunks(2).map(|pair| json!([of(pair[0]), of(pair[1])])).collect::<Vec<_>>().into(),
    }
}

#[test]
fn answers_are_the_json_of_the_book() {
    for (answer, expected) in [
        (b"_\r\n".as_slice(), "null"),
        (b"$-1\r\n", "null"),
        (b":-7\r\n", "-7"),
        (b",9.5\r\n", "9.5"),
        (b",inf\r\n", r#""inf""#),
        (b"#t\r\n", "true"),
        (b"$2\r\nab\r\n", r#""ab""#),
        (b"$1\r\n\xff\r\n", r#"{"base64":"/w=="}"#),
        (b"-ERR no\r\n", r#"{"error":"ERR no"}"#),
        (b"*2\r\n:1\r\n*0\r\n", "[1,[]]"),
        (b"%1\r\n$1\r\na\r\n:1\r\n", r#"{"a":1}"#),
        (b"%1\r\n$1\r\n\xff\r\n:1\r\n", r#"[[{"base64":"/w=="},1]]"#),
    ] {
        assert_eq!(of(answer).to_string(), expected, "{}", answer.escape_ascii());
    }
}
