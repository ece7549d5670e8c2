//! The request parser: turns a client's bytes into commands without copying them.
//!
//! A request is an array of bulk strings, or a line of words (an inline command):
//!
//! ```text
//! *3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\nhi\r\n        SET a hi\r\n
//! ```
//!
//! The caller passes all bytes received since the last whole command. The parser either yields a
//! command, whose arguments are ranges of those bytes, or records how far it has parsed, so a frame
//! in a thousand pieces is still read once. It reserves no memory for announced lengths, only for
//! bytes received.

use super::inline;

/// Longest line: an inline command, or the line with a count or a length. Bytes.
pub const LINE_LIMIT: usize = 64 * 1024;
/// Most arguments of one command before the client has authenticated.
pub const UNAUTHENTICATED_ARGUMENTS: usize = 10;
/// Longest argument before the client has authenticated, in bytes.
pub const UNAUTHENTICATED_BULK_BYTES: usize = 16 * 1024;

/// Limits for requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// Most arguments in one command, its name included.
    pub arguments: usize,
    /// Longest argument, in bytes.
    pub bulk_bytes: usize,
    /// Whether the client has authenticated; stricter limits apply until then.
    pub authenticated: bool,
}

impl Default for RequestLimits {
    fn default() -> RequestLimits {
        RequestLimits { arguments: 1024 * 1024, bulk_bytes: 512 * 1024 * 1024, authenticated: true }
    }
}

/// Error for bytes that are not a request. The server replies with this text and closes the
/// connection, because it cannot find the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The count of an array is not a number or exceeds the limit.
    #[error("Protocol error: invalid multibulk length")]
    ArrayLength,
    /// More arguments than a client may send before it has authenticated.
    #[error("Protocol error: unauthenticated multibulk length")]
    UnauthenticatedArrayLength,
    /// The length of an argument is not a number or exceeds the limit.
    #[error("Protocol error: invalid bulk length")]
    BulkLength,
    /// A longer argument than a client may send before it has authenticated.
    #[error("Protocol error: unauthenticated bulk length")]
    UnauthenticatedBulkLength,
    /// An argument does not begin with its length.
    #[error("Protocol error: expected '$', got '{}'", char::from(*.0))]
    ExpectedBulk(u8),
    /// An inline command is longer than [`LINE_LIMIT`].
    #[error("Protocol error: too big inline request")]
    InlineTooLong,
    /// The line with the count of an array is too long.
    #[error("Protocol error: too big mbulk count string")]
    ArrayLineTooLong,
    /// The line with the length of an argument is too long.
    #[error("Protocol error: too big bulk count string")]
    BulkLineTooLong,
    /// A quote of an inline command is not closed.
    #[error("Protocol error: unbalanced quotes in request")]
    UnbalancedQuotes,
}

/// Parses the requests of one client; see the [module](self).
///
/// ```
/// use tidemark_server::resp::request::{RequestLimits, RequestParser};
///
/// let mut parser = RequestParser::default();
/// let limits = RequestLimits::default();
/// let input = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nPI";
///
/// let consumed = parser.next(input, &limits)?.expect("the first command is whole");
/// assert_eq!(parser.argument(1, input), b"a");
/// assert_eq!(parser.next(&input[consumed..], &limits)?, None);
/// # Ok::<(), tidemark_server::resp::request::ProtocolError>(())
/// ```
#[derive(Debug, Default)]
pub struct RequestParser {
    /// Start and end of each argument: in the frame's bytes, or in `inline` for an inline command.
    arguments: Vec<(u32, u32)>,
    /// Unquoted words of an inline command.
    inline: Vec<u8>,
    is_inline: bool,
    /// Bytes of the frame that have been parsed.
    position: usize,
    /// Bytes after `position` that contain no end of line.
    searched: usize,
    /// Arguments of the frame that are still missing; 0 between frames.
    missing: usize,
    /// Length of the argument being received, once its line has been parsed.
    bulk_length: Option<usize>,
}

impl RequestParser {
    /// Parses the next command in `input`, which must start after the last whole command and hold
    /// all bytes received since.
    ///
    /// Returns `Some(consumed)` for a command of that many bytes; it has no arguments if the client
    /// sent an empty line or array. Returns `None` if more bytes are needed. After an error the
    /// parser must not be used again.
    pub fn next(&mut self, input: &[u8], limits: &RequestLimits) -> Result<Option<usize>, ProtocolError> {
        if self.missing == 0 {
            match input.first() {
                None => return Ok(None),
                Some(b'*') => {}
                Some(_) => return self.inline_command(input),
            }
            if !self.array_header(input, limits)? {
                return Ok(None);
            }
        }
        while self.missing > 0 {
            if !self.bulk(input, limits)? {
                return Ok(None);
            }
        }
        Ok(Some(self.end_of_frame()))
    }

    /// Returns the number of arguments of the command that [`next`](Self::next) has found.
    pub fn len(&self) -> usize {
        self.arguments.len()
    }

    /// Whether the client sent an empty line or an empty array, which gets no reply.
    pub fn is_empty(&self) -> bool {
        self.arguments.is_empty()
    }

    /// Returns an argument of the command that [`next`](Self::next) has found in `input`; empty if
    /// there is none at this index. Panics if `input` is not what the command was found in.
    #[inline]
    pub fn argument<'a>(&'a self, index: usize, input: &'a [u8]) -> &'a [u8] {
        let source = if self.is_inline { &self.inline } else { input };
        match self.arguments.get(index) {
            Some((start, end)) => &source[*start as usize..*end as usize],
            None => &[],
        }
    }

    /// Returns all arguments of the command that [`next`](Self::next) has found in `input`. Panics
    /// if `input` is not what the command was found in.
    pub fn arguments<'a>(&'a self, input: &'a [u8]) -> impl ExactSizeIterator<Item = &'a [u8]> {
        let source = if self.is_inline { &self.inline } else { input };
        self.arguments.iter().map(move |(start, end)| &source[*start as usize..*end as usize])
    }

    /// Whether the command that [`next`](Self::next) has found is an inline command.
    pub fn is_inline(&self) -> bool {
        self.is_inline
    }

    /// Returns where the arguments of the command that [`next`](Self::next) has found start and end in
    /// the input, unless it is an inline command.
    pub fn ranges(&self) -> &[(u32, u32)] {
        if self.is_inline { &[] } else { &self.arguments }
    }

    /// Forgets the part of a command that was parsed, and any error: the next input starts after the
    /// last whole command again.
    pub fn restart(&mut self) {
        (self.position, self.searched, self.missing, self.bulk_length) = (0, 0, 0, None);
    }

    /// Returns a lower bound of the input that the next command needs, in bytes.
    pub fn needed(&self) -> usize {
        self.position + self.bulk_length.map_or(1, |length| length + 2)
    }

    /// Returns the memory held, in bytes.
    pub fn capacity(&self) -> usize {
        self.arguments.capacity() * size_of::<(u32, u32)>() + self.inline.capacity()
    }

    /// Frees the memory of an unusually large command. Call it between commands.
    pub fn shrink(&mut self) {
        if self.missing == 0 {
            self.arguments = Vec::new();
            self.inline = Vec::new();
        }
    }

    fn end_of_frame(&mut self) -> usize {
        assert!(
            self.missing == 0 && self.bulk_length.is_none(),
            "a command ends although {} arguments are missing",
            self.missing
        );
        self.searched = 0;
        std::mem::take(&mut self.position)
    }

    /// Parses `*3\r\n`. Returns false if it is incomplete.
    #[inline]
    fn array_header(&mut self, input: &[u8], limits: &RequestLimits) -> Result<bool, ProtocolError> {
        self.arguments.clear();
        self.is_inline = false;
        let count = match self.length_line(input) {
            Line::Incomplete => return Ok(false),
            Line::TooLong => return Err(ProtocolError::ArrayLineTooLong),
            Line::Malformed => return Err(ProtocolError::ArrayLength),
            Line::Negative => 0,
            Line::Length(count) => count,
        };
        if count > limits.arguments {
            return Err(ProtocolError::ArrayLength);
        }
        if count > UNAUTHENTICATED_ARGUMENTS && !limits.authenticated {
            return Err(ProtocolError::UnauthenticatedArrayLength);
        }
        self.missing = count;
        Ok(true)
    }

    /// Parses one `$3\r\nSET\r\n`. Returns false if it is incomplete.
    #[inline]
    fn bulk(&mut self, input: &[u8], limits: &RequestLimits) -> Result<bool, ProtocolError> {
        let length = match self.bulk_length {
            Some(length) => length,
            None => match self.bulk_header(input, limits)? {
                Some(length) => length,
                None => return Ok(false),
            },
        };
        let end = self.position + length;
        if input.len() < end + 2 {
            self.bulk_length = Some(length);
            return Ok(false);
        }
        self.arguments.push((self.position as u32, end as u32));
        self.bulk_length = None;
        self.position = end + 2;
        self.missing -= 1;
        Ok(true)
    }

    #[inline]
    fn bulk_header(&mut self, input: &[u8], limits: &RequestLimits) -> Result<Option<usize>, ProtocolError> {
        let first = input.get(self.position).copied();
        let line = self.length_line(input);
        if let (Line::Length(_) | Line::Negative | Line::Malformed, Some(first)) = (line, first)
            && first != b'$'
        {
            return Err(ProtocolError::ExpectedBulk(first));
        }
        match line {
            Line::Incomplete => Ok(None),
            Line::TooLong => Err(ProtocolError::BulkLineTooLong),
            Line::Negative | Line::Malformed => Err(ProtocolError::BulkLength),
            // Offsets in a frame have 32 bits, regardless of the limits.
            Line::Length(length) if length > limits.bulk_bytes.min(u32::MAX as usize / 2) => {
                Err(ProtocolError::BulkLength)
            }
            Line::Length(length) if self.position + length + 2 > u32::MAX as usize => {
                Err(ProtocolError::BulkLength)
            }
            Line::Length(length) if length > UNAUTHENTICATED_BULK_BYTES && !limits.authenticated => {
                Err(ProtocolError::UnauthenticatedBulkLength)
            }
            Line::Length(length) => Ok(Some(length)),
        }
    }

    /// Parses a type byte, a number and a line end at `position`, and advances past them.
    ///
    /// As in Redis, the byte after the carriage return must arrive but is not checked.
    #[inline]
    fn length_line(&mut self, input: &[u8]) -> Line {
        // Fast path: up to three digits without leading zero, which covers nearly all lines.
        let (length, line) = match input.get(self.position + 1..).unwrap_or_default() {
            [ones @ b'0'..=b'9', b'\r', _, ..] => (digit(*ones), 4),
            [tens @ b'1'..=b'9', ones @ b'0'..=b'9', b'\r', _, ..] => (digit(*tens) * 10 + digit(*ones), 5),
            [hundreds @ b'1'..=b'9', tens @ b'0'..=b'9', ones @ b'0'..=b'9', b'\r', _, ..] => {
                (digit(*hundreds) * 100 + digit(*tens) * 10 + digit(*ones), 6)
            }
            _ => return self.unusual_length_line(input),
        };
        self.position += line;
        // An earlier search in a part of this line may have set it.
        self.searched = 0;
        Line::Length(length)
    }

    #[cold]
    fn unusual_length_line(&mut self, input: &[u8]) -> Line {
        let line = &input[self.position..];
        let within_limit = line.get(..LINE_LIMIT).unwrap_or(line);
        let unseen = &within_limit[self.searched..];
        let Some(end) = unseen.iter().position(|byte| *byte == b'\r').map(|index| index + self.searched)
        else {
            self.searched = within_limit.len();
            return if within_limit.len() == LINE_LIMIT { Line::TooLong } else { Line::Incomplete };
        };
        if line.len() < end + 2 {
            self.searched = end;
            return Line::Incomplete;
        }
        self.searched = 0;
        self.position += end + 2;
        // The line's first byte may itself be a carriage return.
        strict_length(line.get(1..end).unwrap_or_default())
    }

    fn inline_command(&mut self, input: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let within_limit = input.get(..LINE_LIMIT).unwrap_or(input);
        let unseen = &within_limit[self.searched..];
        let Some(end) = unseen.iter().position(|byte| *byte == b'\n').map(|index| index + self.searched)
        else {
            self.searched = within_limit.len();
            let too_long = within_limit.len() == LINE_LIMIT;
            return if too_long { Err(ProtocolError::InlineTooLong) } else { Ok(None) };
        };
        let line = &input[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.arguments.clear();
        self.inline.clear();
        self.is_inline = true;
        inline::split(line, &mut self.inline, &mut self.arguments)
            .map_err(|inline::UnbalancedQuotes| ProtocolError::UnbalancedQuotes)?;
        self.position = end + 1;
        Ok(Some(self.end_of_frame()))
    }
}

/// A parsed line with a count or a length.
#[derive(Clone, Copy)]
enum Line {
    Incomplete,
    TooLong,
    Malformed,
    Negative,
    Length(usize),
}

fn digit(byte: u8) -> usize {
    usize::from(byte - b'0')
}

/// Parses a canonical 64-bit decimal number: no plus sign, leading zero or space.
fn strict_length(text: &[u8]) -> Line {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let canonical = match digits {
        [b'0'] => !negative,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !canonical {
        return Line::Malformed;
    }
    let magnitude = digits
        .iter()
        .try_fold(0_u64, |number, digit| number.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
    match magnitude {
        Some(magnitude) if negative && magnitude <= 1 << 63 => Line::Negative,
        Some(magnitude) if !negative && i64::try_from(magnitude).is_ok() => Line::Length(magnitude as usize),
        _ => Line::Malformed,
    }
}

#[cfg(test)]
mod tests;
