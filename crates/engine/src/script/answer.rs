//! Replies as the answers of scripts.

use crate::wire::reply::{Protocol, Reply};
use tidemark_script::Answer;

/// Writes what a script returns as the reply of its client.
pub(super) struct ScriptReply<'a>(pub(super) &'a mut Reply);

/// The bytes of a line: no line has ends of lines in it.
fn line(text: &[u8]) -> Vec<u8> {
    text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect()
}

impl Answer for ScriptReply<'_> {
    fn is_full(&self) -> bool {
        self.0.has_overflowed()
    }

    fn integer(&mut self, value: i64) {
        self.0.integer(value);
    }

    fn bulk(&mut self, bytes: &[u8]) {
        self.0.bulk(bytes);
    }

    fn simple(&mut self, text: &[u8]) {
        self.0.encoded(&[b"+", &*line(text), b"\r\n"].concat());
    }

    fn error(&mut self, text: &[u8]) {
        let text = text.strip_prefix(b"-").unwrap_or(text);
        let end = text.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |at| at + 1);
        self.0.encoded(&[b"-", &*line(&text[..end]), b"\r\n"].concat());
    }

    fn null(&mut self) {
        self.0.null();
    }

    fn boolean(&mut self, value: bool) {
        match (self.0.protocol(), value) {
            (Protocol::Resp2, false) => self.0.integer(0),
            (_, value) => self.0.boolean(value),
        }
    }

    fn double(&mut self, value: f64) {
        self.0.double(value);
    }

    fn big_number(&mut self, digits: &[u8]) {
        match self.0.protocol() {
            Protocol::Resp2 => self.0.bulk(digits),
            Protocol::Resp3 => self.0.encoded(&[b"(", &*line(digits), b"\r\n"].concat()),
        }
    }

    fn verbatim(&mut self, format: &[u8], text: &[u8]) {
        match self.0.protocol() {
            Protocol::Resp2 => self.0.bulk(text),
            Protocol::Resp3 => {
                let mut kind = *b"txt";
                for (own, byte) in kind.iter_mut().zip(format) {
                    *own = *byte;
                }
                let head = format!("={}\r\n", text.len() + 4);
                self.0.encoded(&[head.as_bytes(), &line(&kind), b":", text, b"\r\n"].concat());
            }
        }
    }

    fn array(&mut self, len: usize) {
        self.0.array(len);
    }

    fn map(&mut self, pairs: usize) {
        self.0.map(pairs);
    }

    fn set(&mut self, len: usize) {
        self.0.set(len);
    }
}
