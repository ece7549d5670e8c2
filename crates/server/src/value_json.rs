//! Replies as JSON, for transports other than the Redis protocol.
//!
//! | reply | JSON |
//! |---|---|
//! | null | `null` |
//! | integer, double | a number; `"inf"`, `"-inf"` and `"nan"`, which JSON numbers lack |
//! | boolean | `true`, `false` |
//! | string | a string, or `{"base64": "…"}` if its bytes are not UTF-8 |
//! | array, set | an array |
//! | map | an object; an array of pairs if one of its keys is neither UTF-8 nor an integer |
//! | error | `{"error": "…"}` |

use crate::resp::decode::Limits;
use crate::resp::{Decoder, Value};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use std::borrow::Cow;
use tidemark_changes::serialize_bytes;

/// Serializes an encoded reply. Cost: decoding it.
pub(crate) fn serialize<S: Serializer>(encoded: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    Json(&decode(encoded)).serialize(serializer)
}

/// Decodes a reply. Returns an error value unless the bytes are exactly one reply.
pub(crate) fn decode(encoded: &[u8]) -> Value {
    let mut decoder = Decoder::new(Limits::default());
    decoder.feed(encoded);
    match decoder.next_value() {
        Ok(Some(value)) if decoder.is_idle() => value,
        _ => Value::Error(b"ERR the answer cannot be shown".to_vec()),
    }
}

struct Json<'a>(&'a Value);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.plain() {
            Value::Simple(bytes) | Value::Bulk(bytes) | Value::BigNumber(bytes) => {
                serialize_bytes(bytes, serializer)
            }
            Value::Verbatim { text, .. } => serialize_bytes(text, serializer),
            Value::Error(text) => labelled("error", &String::from_utf8_lossy(text), serializer),
            Value::Integer(number) => serializer.serialize_i64(*number),
            Value::Double(number) => double(*number, serializer),
            Value::Boolean(truth) => serializer.serialize_bool(*truth),
            Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => {
                serializer.collect_seq(elements.iter().map(Json))
            }
            Value::Map(pairs) => map(pairs, serializer),
            // `plain` has removed attributes.
            Value::Null | Value::Attributed { .. } => serializer.serialize_unit(),
        }
    }
}

fn double<S: Serializer>(number: f64, serializer: S) -> Result<S::Ok, S::Error> {
    if number.is_finite() {
        serializer.serialize_f64(number)
    } else if number.is_nan() {
        serializer.serialize_str("nan")
    } else {
        serializer.serialize_str(if number > 0.0 { "inf" } else { "-inf" })
    }
}

fn map<S: Serializer>(pairs: &[(Value, Value)], serializer: S) -> Result<S::Ok, S::Error> {
    let keys: Option<Vec<Cow<'_, str>>> = pairs.iter().map(|(key, _)| key_text(key)).collect();
    let Some(keys) = keys else {
        let mut sequence = serializer.serialize_seq(Some(pairs.len()))?;
        for (key, value) in pairs {
            sequence.serialize_element(&[Json(key), Json(value)])?;
        }
        return sequence.end();
    };
    serializer.collect_map(keys.iter().zip(pairs.iter().map(|(_, value)| Json(value))))
}

/// A map's key as an object's key.
fn key_text(key: &Value) -> Option<Cow<'_, str>> {
    match key.plain() {
        Value::Integer(number) => Some(number.to_string().into()),
        other => std::str::from_utf8(other.as_bytes()?).ok().map(Cow::Borrowed),
    }
}

fn labelled<S: Serializer>(label: &str, text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let mut object = serializer.serialize_map(Some(1))?;
    object.serialize_entry(label, text)?;
    object.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    fn json(encoded: &[u8]) -> String {
        let mut text = Vec::new();
        serialize(encoded, &mut serde_json::Serializer::new(&mut text)).expect("memory takes everything");
        String::from_utf8(text).expect("JSON is text")
    }

    #[test]
    fn every_kind_of_answer_has_its_json() {
        for (encoded, expected) in [
            ("_\r\n", "null"),
            ("$-1\r\n", "null"),
            (":-9223372036854775808\r\n", "-9223372036854775808"),
            (",1.5\r\n", "1.5"),
            (",-inf\r\n", "\"-inf\""),
            (",nan\r\n", "\"nan\""),
            ("#t\r\n", "true"),
            ("+OK\r\n", "\"OK\""),
            ("$6\r\na\"\r\n\\\u{1}\r\n", "\"a\\\"\\r\\n\\\\\\u0001\""),
            ("=7\r\ntxt:ü\u{7f}\r\n", "\"ü\u{7f}\""),
            ("(123456789012345678901\r\n", "\"123456789012345678901\""),
            ("*3\r\n:1\r\n*0\r\n$1\r\na\r\n", "[1,[],\"a\"]"),
            ("~2\r\n:1\r\n:2\r\n", "[1,2]"),
            ("%2\r\n$1\r\nf\r\n$1\r\nv\r\n:7\r\n_\r\n", "{\"f\":\"v\",\"7\":null}"),
            ("%1\r\n*0\r\n:1\r\n", "[[[],1]]"),
            ("-WRONGTYPE no\r\n", "{\"error\":\"WRONGTYPE no\"}"),
        ] {
            assert_eq!(json(encoded.as_bytes()), expected, "{encoded:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_keep_their_value() {
        assert_eq!(json(b"$2\r\n\xff\x00\r\n"), "{\"base64\":\"/wA=\"}");
        assert_eq!(json(b"%1\r\n$1\r\n\xff\r\n:1\r\n"), "[[{\"base64\":\"/w==\"},1]]");
    }

    #[test]
    fn what_is_not_one_answer_is_an_error() {
        for encoded in ["", "$5\r\nab\r\n", ":1\r\n:2\r\n", "?\r\n"] {
            assert_eq!(
                json(encoded.as_bytes()),
                "{\"error\":\"ERR the answer cannot be shown\"}",
                "{encoded:?}"
            );
        }
    }

    /// Generates bytes, many of which begin like RESP replies.
    fn resembling() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            "[*~%$:,#+=>|!(-][0-9]{0,2}\r\n".prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 0..8),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_bytes_become_json(encoded in resembling()) {
            let text = json(&encoded);
            serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
        }

        #[test]
        fn any_string_is_found_again(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let encoded = [format!("${}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat();
            let found = match serde_json::from_str(&json(&encoded)).expect("JSON") {
                serde_json::Value::String(text) => text.into_bytes(),
                other => STANDARD.decode(other["base64"].as_str().expect("bytes")).expect("base64"),
            };
            prop_assert_eq!(found, bytes);
        }
    }

    #[test]
    fn answers_in_answers_end_somewhere() {
        let deep = "*1\r\n".repeat(100_000);
        assert!(json(deep.as_bytes()).contains("error"));
    }
}
