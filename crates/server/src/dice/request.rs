//! `wire.Command`: decodes a client's request.

use super::protobuf::{Content, Fields, Malformed};
use smallvec::SmallVec;

/// Arguments of a command that need no allocation.
const USUAL_ARGUMENTS: usize = 16;

/// Words of a command, name first, as slices of the frame.
pub(super) type Words<'a> = SmallVec<[&'a [u8]; USUAL_ARGUMENTS]>;

/// Limits for requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestLimits {
    /// Most words in one command, its name included.
    pub(super) words: usize,
    /// Longest word, in bytes.
    pub(super) word_bytes: usize,
}

/// Error for a frame without a valid command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum RequestError {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("ERR Protocol error: a command of more than {0} arguments")]
    TooManyWords(usize),
    #[error("ERR Protocol error: an argument of more than {0} bytes")]
    WordTooLong(usize),
    /// The frame is valid, and so is the stream; only this command cannot run.
    #[error("ERR an argument is not UTF-8, which the strings of this protocol have to be")]
    NotText,
}

/// Decodes a `wire.Command`. As in Protocol Buffers, the last of several names counts and unknown
/// fields are ignored.
pub(super) fn decode<'a>(message: &'a [u8], limits: &RequestLimits) -> Result<Words<'a>, RequestError> {
    let mut words = Words::new();
    words.push(&[]);
    let mut fields = Fields::of(message);
    while let Some((field, content)) = fields.next()? {
        let Content::Bytes(word) = content else { continue };
        if !matches!(field, 1 | 2) {
            continue;
        }
        if word.len() > limits.word_bytes {
            return Err(RequestError::WordTooLong(limits.word_bytes));
        }
        if field == 2 {
            if words.len() >= limits.words {
                return Err(RequestError::TooManyWords(limits.words));
            }
            words.push(word);
        } else if let Some(name) = words.first_mut() {
            *name = word;
        }
    }
    if words.iter().any(|word| std::str::from_utf8(word).is_err()) {
        return Err(RequestError::NotText);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::super::protobuf::put_item;
    use super::*;
    use proptest::prelude::*;

    const LIMITS: RequestLimits = RequestLimits { words: 4, word_bytes: 5 };

    fn message(name: &str, arguments: &[&str]) -> Vec<u8> {
        let mut buffer = Vec::new();
        put_item(&mut buffer, 1, name.as_bytes());
        arguments.iter().for_each(|argument| put_item(&mut buffer, 2, argument.as_bytes()));
        buffer
    }

    #[test]
    fn the_name_comes_first_wherever_it_stands() {
        let bytes = b"\x12\x01a\x0a\x03SET\x18\x07\x12\x00";
        assert_eq!(decode(bytes, &LIMITS).as_deref(), Ok([b"SET".as_slice(), b"a", b""].as_slice()));
        assert_eq!(decode(b"", &LIMITS).as_deref(), Ok([b"".as_slice()].as_slice()));
    }

    #[test]
    fn limits_are_kept() {
        assert!(decode(&message("ABCDE", &["", "", "12345"]), &LIMITS).is_ok());
        let error = |name, arguments: &[&str]| decode(&message(name, arguments), &LIMITS).map(drop);
        assert_eq!(error("A", &["", "", "", ""]), Err(RequestError::TooManyWords(4)));
        assert_eq!(error("A", &["123456"]), Err(RequestError::WordTooLong(5)));
        assert_eq!(error("ABCDEF", &[]), Err(RequestError::WordTooLong(5)));
    }

    #[test]
    fn invalid_text_is_distinguished_from_an_invalid_message() {
        assert_eq!(decode(b"\x0a\x01A\x12\x01\xff", &LIMITS).map(drop), Err(RequestError::NotText));
        assert_eq!(decode(b"\x0a\x02A", &LIMITS).map(drop), Err(RequestError::Malformed(Malformed)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(words) = decode(&bytes, &LIMITS) {
                prop_assert!((1..=4).contains(&words.len()));
            }
        }

        #[test]
        fn words_are_what_was_sent(words in prop::collection::vec("[a-zåß]{0,2}", 1..4)) {
            let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
            let bytes = message(&words[0], &arguments);
            let read = decode(&bytes, &LIMITS).expect("a command");
            prop_assert!(read.iter().copied().eq(words.iter().map(String::as_bytes)));
        }
    }
}
