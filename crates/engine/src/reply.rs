//! Answers, encoded as they are made: RESP2 or RESP3, straight into the connection's output buffer.

use crate::error::CommandError;

/// The protocol that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Protocol {
    /// RESP2: what every Redis client starts with.
    #[default]
    Resp2,
    /// RESP3: typed maps, sets, doubles, nulls and push frames; asked for by `HELLO 3`.
    Resp3,
}

/// Room for what stands around a string: a type, a length, line ends.
const HEAD_BYTES: usize = 32;

/// Writes answers behind whatever the buffer already holds.
///
/// ```
/// use tidemark_engine::{Protocol, Reply};
/// let mut reply = Reply::new(Protocol::Resp2);
/// reply.array(2);
/// reply.integer(7);
/// reply.bulk(b"x");
/// assert_eq!(reply.bytes(), b"*2\r\n:7\r\n$1\r\nx\r\n");
/// ```
///
/// What does not fit below the limit is left out, and so is all that follows: see [`Reply::set_limit`].
#[derive(Debug)]
pub struct Reply {
    buffer: Vec<u8>,
    protocol: Protocol,
    /// The most bytes that the buffer may hold; 0 once it has overflowed, so that one comparison decides both.
    limit: usize,
    overflowed: bool,
}

impl Default for Reply {
    fn default() -> Self {
        Self::new(Protocol::default())
    }
}

impl Reply {
    /// An empty answer.
    pub fn new(protocol: Protocol) -> Self {
        Self::with_buffer(Vec::new(), protocol)
    }

    /// Answers that go behind `buffer`'s content.
    pub fn with_buffer(buffer: Vec<u8>, protocol: Protocol) -> Self {
        Self { buffer, protocol, limit: usize::MAX, overflowed: false }
    }

    /// The protocol in force.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Changes the protocol of all that follows.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// Sets how many bytes the buffer may hold, those that it holds already included. An answer that would exceed it
    /// sets [`Reply::has_overflowed`]; from then on nothing is written, so that the buffer ends within an answer and is
    /// of no use to the client. Without a limit the buffer takes what memory there is.
    #[inline]
    pub fn set_limit(&mut self, bytes: usize) {
        if !self.overflowed {
            self.limit = bytes;
        }
    }

    /// Bytes that may still be written.
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.buffer.len())
    }

    /// Whether an answer exceeded the limit. It does not end: the caller has to give up the client.
    #[inline]
    pub fn has_overflowed(&self) -> bool {
        self.overflowed
    }

    /// Notes that a part of the answer was lost elsewhere.
    #[cold]
    pub fn overflow(&mut self) {
        self.overflowed = true;
        self.limit = 0;
    }

    /// Answers that are encoded already.
    pub fn encoded(&mut self, bytes: &[u8]) {
        if self.has_room(bytes.len()) {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// All bytes so far.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// The buffer, for a caller that moves bytes out.
    pub fn buffer_mut(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Takes the bytes and leaves the buffer empty.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    /// Bytes so far: a mark to which [`Reply::truncate`] can return.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Forgets everything behind a mark.
    pub fn truncate(&mut self, mark: usize) {
        self.buffer.truncate(mark);
    }

    /// `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.encoded(b"+OK\r\n");
    }

    /// A status line. `text` has no line break.
    pub fn simple(&mut self, text: &str) {
        debug_assert!(!text.contains(['\r', '\n']));
        self.line(b'+', text.as_bytes());
    }

    /// An error line: `-CODE text`.
    pub fn error(&mut self, error: &CommandError) {
        self.error_text(&error.to_string());
    }

    /// An error line with the given text; line breaks in it become spaces.
    pub fn error_text(&mut self, text: &str) {
        if !self.has_room(text.len() + 3) {
            return;
        }
        self.buffer.push(b'-');
        self.buffer.extend(text.bytes().map(|byte| if byte == b'\r' || byte == b'\n' { b' ' } else { byte }));
        self.buffer.extend_from_slice(b"\r\n");
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        match value {
            0 => self.encoded(b":0\r\n"),
            1 => self.encoded(b":1\r\n"),
            _ => self.line(b':', itoa::Buffer::new().format(value).as_bytes()),
        }
    }

    /// A length or count as an integer.
    #[inline]
    pub fn count(&mut self, count: usize) {
        self.integer(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// A byte string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        if !self.has_room(bytes.len() + HEAD_BYTES) {
            return;
        }
        self.buffer.reserve(bytes.len() + HEAD_BYTES);
        self.line(b'$', itoa::Buffer::new().format(bytes.len()).as_bytes());
        self.buffer.extend_from_slice(bytes);
        self.buffer.extend_from_slice(b"\r\n");
    }

    /// A byte string of several parts, which are put together nowhere else.
    #[inline]
    pub fn bulk_of<const PARTS: usize>(&mut self, parts: [&[u8]; PARTS]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if !self.has_room(length + HEAD_BYTES) {
            return;
        }
        self.buffer.reserve(length + HEAD_BYTES);
        self.line(b'$', itoa::Buffer::new().format(length).as_bytes());
        for part in &parts {
            self.buffer.extend_from_slice(part);
        }
        self.buffer.extend_from_slice(b"\r\n");
    }

    /// An integer's decimal form as a byte string.
    #[inline]
    pub fn bulk_integer(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value).as_bytes());
    }

    /// A byte string, or null.
    pub fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// Nothing, where a value was asked for.
    #[inline]
    pub fn null(&mut self) {
        self.encoded(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n".as_slice(),
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Nothing, where an array was asked for.
    pub fn null_array(&mut self) {
        self.encoded(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n".as_slice(),
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// The head of an array; `len` answers follow.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.head(b'*', len);
    }

    /// The head of a map; `pairs` keys and values follow alternately. RESP2 shows a flat array.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.head(b'*', pairs * 2),
            Protocol::Resp3 => self.head(b'%', pairs),
        }
    }

    /// The head of a set; `len` answers follow. RESP2 shows an array.
    pub fn set(&mut self, len: usize) {
        self.head(if self.protocol == Protocol::Resp3 { b'~' } else { b'*' }, len);
    }

    /// The head of a push frame; `len` answers follow. RESP2 shows an array.
    pub fn push(&mut self, len: usize) {
        self.head(if self.protocol == Protocol::Resp3 { b'>' } else { b'*' }, len);
    }

    /// A floating-point number: RESP3's own type, in RESP2 a byte string.
    pub fn double(&mut self, value: f64) {
        let text = format_double(value);
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => self.line(b',', text.as_bytes()),
        }
    }

    /// A truth value: RESP3's own type, in RESP2 an integer.
    pub fn boolean(&mut self, value: bool) {
        match self.protocol {
            Protocol::Resp2 => self.integer(i64::from(value)),
            Protocol::Resp3 => self.line(b'#', if value { b"t" } else { b"f" }),
        }
    }

    /// Plain text with line breaks: RESP3's verbatim string, in RESP2 a byte string.
    pub fn verbatim(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => {
                if !self.has_room(text.len() + HEAD_BYTES) {
                    return;
                }
                self.head(b'=', text.len() + 4);
                self.buffer.extend_from_slice(b"txt:");
                self.buffer.extend_from_slice(text.as_bytes());
                self.buffer.extend_from_slice(b"\r\n");
            }
        }
    }

    #[inline]
    fn head(&mut self, kind: u8, len: usize) {
        self.line(kind, itoa::Buffer::new().format(len).as_bytes());
    }

    #[inline]
    fn line(&mut self, kind: u8, content: &[u8]) {
        if !self.has_room(content.len() + 3) {
            return;
        }
        self.buffer.push(kind);
        self.buffer.extend_from_slice(content);
        self.buffer.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn has_room(&mut self, bytes: usize) -> bool {
        let fits = self.buffer.len().saturating_add(bytes) <= self.limit;
        if !fits {
            self.overflow();
        }
        fits
    }
}

/// The text of a double as Redis clients expect it: `inf`, `-inf`, `nan`, integers without a fraction, otherwise the
/// shortest text that reads back to the same number.
pub fn format_double(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    // The bounds are those of C's `%.17g`, which Redis prints with: from 1e-4 to below 1e17 without an exponent, else
    // with one of at least two digits.
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("the scientific form has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a number");
    if (-4..17).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(write: impl Fn(&mut Reply)) -> (String, String) {
        let text = |protocol| {
            let mut reply = Reply::new(protocol);
            write(&mut reply);
            String::from_utf8(reply.take()).expect("ASCII")
        };
        (text(Protocol::Resp2), text(Protocol::Resp3))
    }

    #[test]
    fn types_that_resp2_lacks_take_their_older_form() {
        assert_eq!(both(Reply::null), ("$-1\r\n".into(), "_\r\n".into()));
        assert_eq!(both(|reply| reply.map(2)), ("*4\r\n".into(), "%2\r\n".into()));
        assert_eq!(both(|reply| reply.set(2)), ("*2\r\n".into(), "~2\r\n".into()));
        assert_eq!(both(|reply| reply.double(1.5)), ("$3\r\n1.5\r\n".into(), ",1.5\r\n".into()));
        assert_eq!(both(|reply| reply.boolean(true)), (":1\r\n".into(), "#t\r\n".into()));
        assert_eq!(both(|reply| reply.verbatim("a")), ("$1\r\na\r\n".into(), "=5\r\ntxt:a\r\n".into()));
    }

    #[test]
    fn an_error_is_always_one_line() {
        assert_eq!(both(|reply| reply.error_text("ERR a\r\nb")).0, "-ERR a  b\r\n");
    }

    #[test]
    fn beyond_the_limit_nothing_is_written_and_nothing_allocated() {
        let writers: [fn(&mut Reply); 8] = [
            |reply| reply.bulk(&[7; 100]),
            |reply| reply.verbatim("text"),
            |reply| reply.error_text("ERR what is wrong"),
            |reply| reply.simple("a rather long line of status"),
            |reply| reply.encoded(b"+encoded\r\n"),
            |reply| reply.integer(i64::MIN),
            |reply| reply.array(1000),
            Reply::null,
        ];
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            for write in writers {
                let mut reply = Reply::new(protocol);
                reply.ok();
                reply.set_limit(200);
                while !reply.has_overflowed() {
                    write(&mut reply);
                }
                let length = reply.len();
                assert!(length <= 200 && reply.room() == 0);
                reply.set_limit(usize::MAX);
                writers.iter().for_each(|write| write(&mut reply));
                assert_eq!(reply.len(), length, "an answer without an end is followed by nothing");
            }
        }
        let mut reply = Reply::new(Protocol::Resp2);
        let large = vec![7; 100_000];
        reply.set_limit(1 << 20);
        (0..1000).for_each(|_| reply.bulk(&large));
        assert!(reply.buffer_mut().capacity() <= 2 << 20);
    }

    #[test]
    fn doubles_read_as_in_redis() {
        for (value, text) in [
            (3.0, "3"),
            (-0.0, "-0"),
            (0.1, "0.1"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (99_999_999_999_999_980.0, "99999999999999980"),
            (-123_456.75, "-123456.75"),
            (1e-4, "0.0001"),
            (-0.000_15, "-0.00015"),
            (9.5e-5, "9.5e-05"),
            (-1e-5, "-1e-05"),
            (1.5e-7, "1.5e-07"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::MAX, "1.7976931348623157e+308"),
        ] {
            assert_eq!(format_double(value), text);
        }
    }
}
