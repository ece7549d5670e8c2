//! A word of a command or a key in JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A word of a command: text, a number as written, or bytes as base64.
#[derive(Debug, Deserialize)]
pub(crate) struct Word(Box<RawValue>);

/// JSON form of bytes that are not text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Base64 {
    base64: String,
}

impl Word {
    /// Returns its bytes, or the error.
    pub(crate) fn into_bytes(self) -> Result<Vec<u8>, String> {
        let written = self.0.get();
        let refused =
            || format!("ERR a word is text, a number or {{\"base64\": text}}, and not {written:.20}");
        match written.as_bytes() {
            [b'"', ..] => serde_json::from_str(written).map(String::into_bytes).map_err(|_| refused()),
            [b'{', ..] => {
                let Base64 { base64 } = serde_json::from_str(written).map_err(|_| refused())?;
                STANDARD.decode(base64).map_err(|error| format!("ERR a word is no base64: {error}"))
            }
            [b'-' | b'0'..=b'9', ..] => Ok(written.as_bytes().to_vec()),
            _ => Err(refused()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_text_numbers_or_bytes() {
        let words: Vec<Word> =
            serde_json::from_str(r#"["GET", 1.50, 12345678901234567890123, {"base64": "/wA="}]"#)
                .expect("words");
        let words: Result<Vec<Vec<u8>>, String> = words.into_iter().map(Word::into_bytes).collect();
        let number = b"12345678901234567890123".to_vec();
        assert_eq!(words, Ok(vec![b"GET".to_vec(), b"1.50".to_vec(), number, b"\xff\x00".to_vec()]));
        for refused in ["null", "true", "[]", "{}", r#"{"base64": "%"}"#, r#"{"base64": "", "x": 1}"#] {
            let word: Word = serde_json::from_str(refused).expect("JSON");
            assert!(word.into_bytes().is_err(), "{refused}");
        }
    }
}
