//! Incremental decoder of RESP2 and RESP3: takes bytes in any split, returns whole values.

use super::Value;

/// Decodes a server's bytes to [`Value`]s.
///
/// The result does not depend on how the bytes were split. After the first error the decoder stays
/// failed, because the start of the next value is unknown.
///
/// ```text
///  feed ─► buffer [consumed│ line or bulk being read │ …]   a step reads a header line or bulk
///                                    │
///                                    ▼
///  stack   [ Array 2/3 ][ Map 1/4 ] ◄─ a finished value closes every aggregate that it completes
/// ```
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that are already part of a value.
    consumed: usize,
    /// Bytes after `consumed` that are known to hold no line feed.
    scanned: usize,
    /// The bulk whose body is still arriving.
    bulk: Option<BulkHeader>,
    /// Incomplete aggregates, outermost first.
    stack: Vec<Aggregate>,
    /// Elements declared by the current top-level value.
    elements: usize,
    /// Bulk bytes declared by the current top-level value.
    bytes: usize,
    failure: Option<ProtocolError>,
}

/// Limits for one top-level value; the stream is refused before more memory is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one header line, simple string or error, without its terminator.
    pub line_bytes: usize,
    /// Bytes of one bulk string.
    pub bulk_bytes: usize,
    /// Bytes of all bulk strings of one top-level value together.
    pub value_bytes: usize,
    /// Elements of all aggregates of one top-level value together; a map entry counts twice.
    pub elements: usize,
    /// Nesting depth of aggregates.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            line_bytes: 64 << 10,
            bulk_bytes: 512 << 20,
            value_bytes: 2 << 30,
            elements: 64 << 20,
            depth: 128,
        }
    }
}

/// Capacity above which a mostly empty buffer is shrunk, in bytes.
const KEPT_BUFFER_BYTES: usize = 1 << 20;

/// Error for bytes that are not RESP or exceed the limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The first byte of a value is not a type.
    #[error("a value cannot start with byte 0x{0:02x}: the peer does not speak RESP")]
    UnknownType(u8),
    /// A line feed without the carriage return before it.
    #[error("a line must end with CR LF, and a bare LF was received")]
    BareLineFeed,
    /// The body of a bulk is not followed by CR LF.
    #[error("a bulk string is longer than its declared length")]
    UnterminatedBulk,
    /// The text after `$`, `*` and so on is not a length.
    #[error("invalid length {0:?}")]
    InvalidLength(String),
    /// The text after `:`, `,`, `(`, `#` or `_` does not fit the type.
    #[error("invalid {kind} {text:?}")]
    InvalidScalar {
        /// The type's name.
        kind: &'static str,
        /// The received text.
        text: String,
    },
    /// A verbatim string without its three-byte format and colon.
    #[error("a verbatim string must start with a three-byte format and a colon")]
    InvalidVerbatim,
    /// See [`Limits::line_bytes`].
    #[error("a line exceeds the limit of {0} bytes")]
    LineTooLong(usize),
    /// See [`Limits::bulk_bytes`].
    #[error("a bulk string exceeds the limit of {0} bytes")]
    BulkTooLong(usize),
    /// See [`Limits::value_bytes`].
    #[error("a reply exceeds the limit of {0} bytes")]
    ValueTooLong(usize),
    /// See [`Limits::elements`].
    #[error("a reply exceeds the limit of {0} elements")]
    TooManyElements(usize),
    /// See [`Limits::depth`].
    #[error("a reply is nested deeper than the limit of {0}")]
    TooDeep(usize),
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new(Limits::default())
    }
}

impl Decoder {
    /// Creates an empty decoder, which allocates when bytes arrive.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Decoder {
            limits,
            buffer: Vec::new(),
            consumed: 0,
            scanned: 0,
            bulk: None,
            stack: Vec::new(),
            elements: 0,
            bytes: 0,
            failure: None,
        }
    }

    /// Adds received bytes. Take all finished values with [`Decoder::next_value`] first, so that
    /// the buffer holds at most one incomplete line or bulk and these bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.consumed > 0 {
            self.buffer.drain(..self.consumed);
            self.consumed = 0;
            // A huge reply must not occupy memory for the rest of the connection.
            if self.buffer.capacity() > KEPT_BUFFER_BYTES && self.buffer.len() < KEPT_BUFFER_BYTES / 4 {
                self.buffer.shrink_to(KEPT_BUFFER_BYTES / 2);
            }
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next whole value, `None` until more bytes arrive, or the stream's error.
    pub fn next_value(&mut self) -> Result<Option<Value>, ProtocolError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let result = self.advance();
        if let Err(failure) = &result {
            self.failure = Some(failure.clone());
        }
        result
    }

    /// Whether the decoder is between values: if the peer closes now, nothing is lost.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.failure.is_none()
            && self.bulk.is_none()
            && self.stack.is_empty()
            && self.consumed == self.buffer.len()
    }

    fn advance(&mut self) -> Result<Option<Value>, ProtocolError> {
        loop {
            let finished = if let Some(header) = self.bulk {
                let Some(value) = self.take_bulk(header)? else { return Ok(None) };
                self.bulk = None;
                Some(value)
            } else {
                let Some(line) = self.take_line()? else { return Ok(None) };
                self.start(line)?
            };
            let Some(value) = finished else { continue };
            if let Some(value) = self.close(value) {
                self.elements = 0;
                self.bytes = 0;
                return Ok(Some(value));
            }
        }
    }

    /// Returns the range of the next line in the buffer, without CR LF.
    fn take_line(&mut self) -> Result<Option<std::ops::Range<usize>>, ProtocolError> {
        let unread = &self.buffer[self.consumed..];
        // The limit excludes the type byte and CR LF.
        let longest = self.limits.line_bytes.saturating_add(3);
        let found = unread.iter().skip(self.scanned).position(|byte| *byte == b'\n');
        let Some(offset) = found else {
            if unread.len() >= longest {
                return Err(ProtocolError::LineTooLong(self.limits.line_bytes));
            }
            self.scanned = unread.len();
            return Ok(None);
        };
        let line_feed = self.scanned + offset;
        if line_feed >= longest {
            return Err(ProtocolError::LineTooLong(self.limits.line_bytes));
        }
        if !unread[..line_feed].ends_with(b"\r") {
            return Err(ProtocolError::BareLineFeed);
        }
        let line = self.consumed..self.consumed + line_feed - 1;
        self.consumed += line_feed + 1;
        self.scanned = 0;
        Ok(Some(line))
    }

    /// Parses a header line: a whole value, or the start of a bulk or an aggregate.
    fn start(&mut self, line: std::ops::Range<usize>) -> Result<Option<Value>, ProtocolError> {
        let line = &self.buffer[line];
        let Some((&kind, text)) = line.split_first() else {
            return Err(ProtocolError::UnknownType(b'\r'));
        };
        let value = match kind {
            b'+' => Value::Simple(text.to_vec()),
            b'-' => Value::Error(text.to_vec()),
            b':' => Value::Integer(integer(text)?),
            b',' => Value::Double(double(text)?),
            b'#' => Value::Boolean(boolean(text)?),
            b'(' => Value::BigNumber(big_number(text)?),
            b'_' if text.is_empty() => Value::Null,
            b'_' => return Err(invalid("null", text)),
            b'$' | b'!' | b'=' => match length(text)? {
                None if kind == b'$' => Value::Null,
                None => return Err(invalid_length(text)),
                Some(length) => {
                    self.start_bulk(kind, length)?;
                    return Ok(None);
                }
            },
            b'*' | b'~' | b'>' | b'%' | b'|' => match length(text)? {
                None if kind == b'*' => Value::Null,
                None => return Err(invalid_length(text)),
                Some(count) => return self.start_aggregate(kind, count),
            },
            other => return Err(ProtocolError::UnknownType(other)),
        };
        Ok(Some(value))
    }

    fn start_bulk(&mut self, kind: u8, length: usize) -> Result<(), ProtocolError> {
        if length > self.limits.bulk_bytes {
            return Err(ProtocolError::BulkTooLong(self.limits.bulk_bytes));
        }
        self.bytes = self.bytes.saturating_add(length);
        if self.bytes > self.limits.value_bytes {
            return Err(ProtocolError::ValueTooLong(self.limits.value_bytes));
        }
        self.bulk = Some(BulkHeader { kind, length });
        Ok(())
    }

    fn take_bulk(&mut self, header: BulkHeader) -> Result<Option<Value>, ProtocolError> {
        let unread = &self.buffer[self.consumed..];
        // The terminator is checked as it arrives, so that errors do not depend on the split.
        let (Some(body), Some(rest)) = (unread.get(..header.length), unread.get(header.length..)) else {
            return Ok(None);
        };
        match rest {
            [b'\r', b'\n', ..] => {}
            [] | [b'\r'] => return Ok(None),
            _ => return Err(ProtocolError::UnterminatedBulk),
        }
        let value = match header.kind {
            b'$' => Value::Bulk(body.to_vec()),
            b'!' => Value::Error(body.to_vec()),
            _ => verbatim(body)?,
        };
        self.consumed += header.length + 2;
        Ok(Some(value))
    }

    /// Opens an aggregate; an empty one is complete immediately.
    fn start_aggregate(&mut self, kind: u8, count: usize) -> Result<Option<Value>, ProtocolError> {
        let expected = if matches!(kind, b'%' | b'|') { count.saturating_mul(2) } else { count };
        self.elements = self.elements.saturating_add(expected);
        if self.elements > self.limits.elements {
            return Err(ProtocolError::TooManyElements(self.limits.elements));
        }
        if self.stack.len() >= self.limits.depth {
            return Err(ProtocolError::TooDeep(self.limits.depth));
        }
        let aggregate = Aggregate { kind: AggregateKind::of(kind), expected, items: Vec::new() };
        if expected == 0 {
            return Ok(self.finish(aggregate));
        }
        self.stack.push(aggregate);
        Ok(None)
    }

    /// Adds a value to the innermost aggregate and closes all that are complete. Returns a
    /// top-level value.
    fn close(&mut self, mut value: Value) -> Option<Value> {
        loop {
            let Some(innermost) = self.stack.last_mut() else { return Some(value) };
            innermost.items.push(value);
            if innermost.items.len() < innermost.expected {
                return None;
            }
            let complete = self.stack.pop().expect("the innermost has just been filled");
            value = self.finish(complete)?;
        }
    }

    /// Builds the value of a complete aggregate. Attributes wait for the value that they describe.
    fn finish(&mut self, aggregate: Aggregate) -> Option<Value> {
        assert_eq!(aggregate.items.len(), aggregate.expected, "an aggregate is finished when it is full");
        let Aggregate { kind, items, .. } = aggregate;
        Some(match kind {
            AggregateKind::Array => Value::Array(items),
            AggregateKind::Set => Value::Set(items),
            AggregateKind::Push => Value::Push(items),
            AggregateKind::Map => Value::Map(pairs(items)),
            AggregateKind::Attributes => {
                let kind = AggregateKind::Attributed(pairs(items));
                self.stack.push(Aggregate { kind, expected: 1, items: Vec::new() });
                return None;
            }
            AggregateKind::Attributed(attributes) => {
                let value = items.into_iter().next().expect("attributes wait for one value");
                Value::Attributed { attributes, value: Box::new(value) }
            }
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct BulkHeader {
    kind: u8,
    length: usize,
}

#[derive(Debug)]
struct Aggregate {
    kind: AggregateKind,
    expected: usize,
    /// Grows with received elements; a declared count reserves nothing.
    items: Vec<Value>,
}

#[derive(Debug)]
enum AggregateKind {
    Array,
    Set,
    Push,
    Map,
    Attributes,
    Attributed(Vec<(Value, Value)>),
}

impl AggregateKind {
    fn of(kind: u8) -> Self {
        match kind {
            b'~' => AggregateKind::Set,
            b'>' => AggregateKind::Push,
            b'%' => AggregateKind::Map,
            b'|' => AggregateKind::Attributes,
            _ => AggregateKind::Array,
        }
    }
}

fn pairs(items: Vec<Value>) -> Vec<(Value, Value)> {
    let mut pairs = Vec::with_capacity(items.len() / 2);
    let mut items = items.into_iter();
    while let Some(name) = items.next() {
        pairs.push((name, items.next().expect("a map is full when it has a value for each name")));
    }
    pairs
}

/// Parses a length; `None` for -1, the length of RESP2's nulls.
fn length(text: &[u8]) -> Result<Option<usize>, ProtocolError> {
    if text == b"-1" {
        return Ok(None);
    }
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(invalid_length(text));
    }
    let parsed = std::str::from_utf8(text).ok().and_then(|digits| digits.parse().ok());
    parsed.map(Some).ok_or_else(|| invalid_length(text))
}

fn integer(text: &[u8]) -> Result<i64, ProtocolError> {
    let parsed = std::str::from_utf8(text).ok().and_then(|digits| digits.parse().ok());
    parsed.ok_or_else(|| invalid("integer", text))
}

fn double(text: &[u8]) -> Result<f64, ProtocolError> {
    match text {
        b"inf" | b"+inf" => return Ok(f64::INFINITY),
        b"-inf" => return Ok(f64::NEG_INFINITY),
        b"nan" | b"-nan" => return Ok(f64::NAN),
        _ => {}
    }
    // The standard library would also accept words such as "infinity".
    let numeric = text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    let parsed = std::str::from_utf8(text).ok().filter(|_| numeric).and_then(|digits| digits.parse().ok());
    parsed.ok_or_else(|| invalid("double", text))
}

fn boolean(text: &[u8]) -> Result<bool, ProtocolError> {
    match text {
        b"t" => Ok(true),
        b"f" => Ok(false),
        _ => Err(invalid("boolean", text)),
    }
}

fn big_number(text: &[u8]) -> Result<Vec<u8>, ProtocolError> {
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(invalid("big number", text));
    }
    Ok(text.to_vec())
}

fn verbatim(body: &[u8]) -> Result<Value, ProtocolError> {
    match body {
        [a, b, c, b':', text @ ..] => Ok(Value::Verbatim { format: [*a, *b, *c], text: text.to_vec() }),
        _ => Err(ProtocolError::InvalidVerbatim),
    }
}

fn invalid(kind: &'static str, text: &[u8]) -> ProtocolError {
    ProtocolError::InvalidScalar { kind, text: excerpt(text) }
}

fn invalid_length(text: &[u8]) -> ProtocolError {
    ProtocolError::InvalidLength(excerpt(text))
}

/// Returns the beginning of the text, enough to recognise it.
fn excerpt(text: &[u8]) -> String {
    const EXCERPT_BYTES: usize = 64;
    String::from_utf8_lossy(text.get(..EXCERPT_BYTES).unwrap_or(text)).into_owned()
}

#[cfg(test)]
mod tests;
