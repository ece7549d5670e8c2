//! Replies, encoded as RESP2 or RESP3 directly into the connection's output buffer.

use crate::error::CommandError;
use crate::memory_budget::{MemoryBudget, MemoryCharge};
use std::sync::Arc;

/// The protocol that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Protocol {
    /// RESP2, with which every Redis client starts.
    #[default]
    Resp2,
    /// RESP3: typed maps, sets, doubles, nulls and push frames; selected by `HELLO 3`.
    Resp3,
}

/// Maximum bytes around a string: type, length and line ends.
const HEAD_BYTES: usize = 32;

/// Size up to which a reply needs no memory from its budget, so that small replies are possible
/// however little memory is left. Bytes.
const UNASKED_BYTES: usize = 64 * 1024;

/// Appends replies to the content of a buffer.
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
/// Output that does not fit below the limit is dropped, as is everything after it: see
/// [`Reply::set_limit`]. The same holds for output that a memory budget refuses: see
/// [`Reply::set_budget`].
#[derive(Debug)]
pub struct Reply {
    buffer: Vec<u8>,
    protocol: Protocol,
    /// Current maximum length of the buffer: at most `ceiling`, and at most what the budget has
    /// granted. 0 after an overflow, so that one comparison covers all cases.
    limit: usize,
    /// The limit that the caller has set.
    ceiling: usize,
    overflowed: bool,
    /// Whether the budget refused memory.
    refused: bool,
    charge: Option<MemoryCharge>,
}

impl Default for Reply {
    fn default() -> Self {
        Self::new(Protocol::default())
    }
}

impl Reply {
    /// Creates an empty reply.
    pub fn new(protocol: Protocol) -> Self {
        Self::with_buffer(Vec::new(), protocol)
    }

    /// Creates a reply that is appended to `buffer`'s content.
    pub fn with_buffer(buffer: Vec<u8>, protocol: Protocol) -> Self {
        let (limit, ceiling) = (usize::MAX, usize::MAX);
        Self { buffer, protocol, limit, ceiling, overflowed: false, refused: false, charge: None }
    }

    /// The current protocol.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Changes the protocol of everything that follows.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// Sets the maximum length of the buffer in bytes, including its current content. A reply that
    /// would exceed it sets [`Reply::has_overflowed`]; nothing is written after that, so the buffer
    /// ends within a reply and is useless to the client. The default is no limit.
    #[inline]
    pub fn set_limit(&mut self, bytes: usize) {
        if !self.overflowed {
            self.ceiling = bytes;
            self.limit = bytes.min(self.granted());
        }
    }

    /// Charges the buffer's memory to a budget. A reply that the budget refuses overflows and sets
    /// [`Reply::was_refused`].
    pub fn set_budget(&mut self, budget: &Arc<MemoryBudget>) {
        self.charge = Some(budget.charge());
        self.settle();
        self.set_limit(self.ceiling);
    }

    /// Returns an empty reply with the same protocol and budget, limited to what this one may still
    /// grow by.
    #[must_use]
    pub fn apart(&self) -> Reply {
        let mut reply = Reply::new(self.protocol);
        if let Some(charge) = &self.charge {
            reply.set_budget(charge.budget());
        }
        reply.set_limit(self.room());
        reply
    }

    /// Charges what the buffer has allocated. Call it when a reply is complete or bytes were moved
    /// out.
    #[inline]
    pub fn settle(&mut self) {
        let capacity = self.buffer.capacity();
        if let Some(charge) = &mut self.charge
            && charge.bytes() != capacity
        {
            charge.set(capacity);
            self.set_limit(self.ceiling);
        }
    }

    /// Frees memory that a long reply has allocated and does not use. Copies the reply.
    pub fn trim(&mut self) {
        if self.buffer.capacity() > UNASKED_BYTES && self.buffer.len() <= self.buffer.capacity() / 4 * 3 {
            self.buffer.shrink_to_fit();
        }
        self.settle();
    }

    /// Bytes that the buffer may hold without a request to the budget.
    fn granted(&self) -> usize {
        self.charge.as_ref().map_or(usize::MAX, |charge| charge.bytes().max(UNASKED_BYTES))
    }

    /// Bytes that may still be written, if the budget grants them.
    pub fn room(&self) -> usize {
        self.ceiling.saturating_sub(self.buffer.len())
    }

    /// Whether a reply overflowed because the budget refused memory.
    #[inline]
    pub fn was_refused(&self) -> bool {
        self.refused
    }

    /// Records that the budget refused memory for a part of the reply that was built elsewhere.
    #[cold]
    pub fn refuse(&mut self) {
        self.refused = true;
        self.overflow();
    }

    /// Discards everything after `mark` and clears the refusal, so that the caller can write a
    /// shorter reply of up to `ceiling` bytes in total.
    #[cold]
    pub fn recover(&mut self, mark: usize, ceiling: usize) {
        assert!(self.refused, "only what was refused is recovered from");
        self.buffer.truncate(mark);
        self.buffer.shrink_to(UNASKED_BYTES);
        (self.refused, self.overflowed) = (false, false);
        self.settle();
        self.set_limit(ceiling);
    }

    /// Whether a reply exceeded the limit. The reply is incomplete: the caller must disconnect the
    /// client.
    #[inline]
    pub fn has_overflowed(&self) -> bool {
        self.overflowed
    }

    /// Records that a part of the reply was lost elsewhere.
    #[cold]
    pub fn overflow(&mut self) {
        self.overflowed = true;
        (self.limit, self.ceiling) = (0, 0);
    }

    /// Appends replies that are encoded already.
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

    /// Length so far: a mark for [`Reply::truncate`].
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Bytes that the buffer has allocated.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Discards everything after a mark.
    pub fn truncate(&mut self, mark: usize) {
        self.buffer.truncate(mark);
    }

    /// Writes `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.encoded(b"+OK\r\n");
    }

    /// Writes a status line. `text` must have no line break.
    pub fn simple(&mut self, text: &str) {
        debug_assert!(!text.contains(['\r', '\n']));
        self.line(b'+', text.as_bytes());
    }

    /// Writes an error line: `-CODE text`.
    pub fn error(&mut self, error: &CommandError) {
        self.error_text(&error.to_string());
    }

    /// Writes an error line with the given text; line breaks become spaces.
    pub fn error_text(&mut self, text: &str) {
        if !self.has_room(text.len() + 3) {
            return;
        }
        self.buffer.push(b'-');
        self.buffer.extend(text.bytes().map(|byte| if byte == b'\r' || byte == b'\n' { b' ' } else { byte }));
        self.buffer.extend_from_slice(b"\r\n");
    }

    /// Writes an integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        match value {
            0 => self.encoded(b":0\r\n"),
            1 => self.encoded(b":1\r\n"),
            _ => self.line(b':', itoa::Buffer::new().format(value).as_bytes()),
        }
    }

    /// Writes an integer from its decimal form, in which it must have been parsed.
    #[inline]
    pub(crate) fn integer_text(&mut self, digits: &[u8]) {
        debug_assert!(digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-'));
        self.line(b':', digits);
    }

    /// Writes a length or count as an integer.
    #[inline]
    pub fn count(&mut self, count: usize) {
        self.integer(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Writes a byte string.
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

    /// Writes a byte string of several parts without joining them first.
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

    /// Writes an integer's decimal form as a byte string.
    #[inline]
    pub fn bulk_integer(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value).as_bytes());
    }

    /// Writes a byte string, or null.
    pub fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// Writes null in place of a value.
    #[inline]
    pub fn null(&mut self) {
        self.encoded(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n".as_slice(),
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Writes null in place of an array.
    pub fn null_array(&mut self) {
        self.encoded(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n".as_slice(),
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Writes the head of an array; `len` replies follow.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.head(b'*', len);
    }

    /// Writes the head of a map; `pairs` keys and values follow alternately. A flat array in RESP2.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.head(b'*', pairs * 2),
            Protocol::Resp3 => self.head(b'%', pairs),
        }
    }

    /// Writes the head of a set; `len` replies follow. An array in RESP2.
    pub fn set(&mut self, len: usize) {
        self.head(if self.protocol == Protocol::Resp3 { b'~' } else { b'*' }, len);
    }

    /// Writes the head of a push frame; `len` replies follow. An array in RESP2.
    pub fn push(&mut self, len: usize) {
        self.head(if self.protocol == Protocol::Resp3 { b'>' } else { b'*' }, len);
    }

    /// Writes a floating-point number. A byte string in RESP2.
    pub fn double(&mut self, value: f64) {
        let text = format_double(value);
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => self.line(b',', text.as_bytes()),
        }
    }

    /// Writes a floating-point number with at most 17 digits behind the point, and no exponent. A byte
    /// string in RESP2.
    pub(crate) fn decimal(&mut self, value: f64) {
        let text = format!("{value:.17}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        match (self.protocol, if text == "-0" { "0" } else { text }) {
            (Protocol::Resp2, text) => self.bulk(text.as_bytes()),
            (Protocol::Resp3, text) => self.line(b',', text.as_bytes()),
        }
    }

    /// Writes a boolean. An integer in RESP2.
    pub fn boolean(&mut self, value: bool) {
        match self.protocol {
            Protocol::Resp2 => self.integer(i64::from(value)),
            Protocol::Resp3 => self.line(b'#', if value { b"t" } else { b"f" }),
        }
    }

    /// Writes plain text with line breaks: a verbatim string, or a byte string in RESP2.
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
        self.buffer.len().saturating_add(bytes) <= self.limit || self.grow(bytes)
    }

    /// Requests memory for `bytes` more bytes from the budget, and overflows if it is refused.
    #[cold]
    fn grow(&mut self, bytes: usize) -> bool {
        let needed = self.buffer.len().saturating_add(bytes);
        if needed <= self.ceiling
            && let Some(charge) = &mut self.charge
        {
            // Grows as a vector does, so that copying stays proportional to the output.
            let capacity = self.buffer.capacity();
            let wanted = capacity.saturating_mul(2).clamp(needed, self.ceiling);
            // Both buffers exist while one is copied into the other.
            if charge.reach(capacity + needed, capacity.saturating_add(wanted)) {
                self.buffer.reserve_exact(charge.bytes() - capacity - self.buffer.len());
                charge.set(self.buffer.capacity());
                self.limit = self.ceiling.min(charge.bytes());
                return true;
            }
            self.refused = true;
        }
        self.overflow();
        false
    }
}

/// Formats a double as Redis clients expect it: `inf`, `-inf`, `nan`, integers without a fraction,
/// otherwise the shortest text that reads back as the same number.
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
    // The bounds are those of C's `%.17g`, which Redis uses: from 1e-4 to below 1e17 without an
    // exponent, otherwise with one of at least two digits.
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
    fn a_budget_that_is_used_up_stops_long_answers_and_gives_short_ones() {
        let budget = Arc::new(MemoryBudget::new(1 << 20));
        let mut reply = Reply::new(Protocol::Resp2);
        reply.set_budget(&budget);
        reply.ok();
        let mark = reply.len();
        let chunk = vec![7; 10_000];
        while !reply.has_overflowed() {
            reply.bulk(&chunk);
            let (capacity, used) = (reply.buffer_mut().capacity(), budget.used());
            assert!(capacity <= 1 << 20 && used <= 1 << 20, "{capacity} bytes are allocated and {used} used");
        }
        assert!(reply.was_refused() && reply.len() > 450_000, "half of the budget is given: {}", reply.len());
        assert_eq!(budget.refusals(), 1);
        reply.recover(mark, usize::MAX);
        reply.error_text("OOM");
        assert_eq!(reply.bytes(), b"+OK\r\n-OOM\r\n");
        assert!(budget.used() <= 2 * UNASKED_BYTES, "{} bytes", budget.used());

        let mut hog = budget.charge();
        hog.set(10 << 20);
        (0..5).for_each(|_| reply.bulk(&chunk));
        assert!(!reply.has_overflowed(), "a short answer needs no permission");
        reply.settle();
        assert_eq!(budget.used(), (10 << 20) + reply.buffer_mut().capacity());
        drop((reply, hog));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn the_callers_limit_is_no_matter_of_the_budget() {
        let budget = Arc::new(MemoryBudget::new(1 << 20));
        let mut reply = Reply::new(Protocol::Resp2);
        reply.set_budget(&budget);
        reply.set_limit(200_000);
        assert_eq!(reply.room(), 200_000, "the budget grants more when it is needed");
        let mut part = reply.apart();
        part.bulk(&vec![7; 150_000]);
        assert!(!part.has_overflowed() && budget.used() >= 150_000);
        part.bulk(&vec![7; 150_000]);
        assert!(part.has_overflowed() && !part.was_refused());
        drop((reply, part));
        assert_eq!(budget.used(), 0);
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
