//! Replies of GET, SET and PING, parsed in place: the load generator must cost less than the
//! server.

use std::fmt;

/// A reply that is not an aggregate.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply<'a> {
    Simple(&'a [u8]),
    Error(&'a [u8]),
    Integer(&'a [u8]),
    Bulk(&'a [u8]),
    Null,
}

/// The input is not a reply to GET, SET or PING; the start of the next reply is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server answered with something that is no reply to GET, SET or PING")]
pub(super) struct Unexpected;

const LINE_BYTES_MAX: usize = 64 << 10;
const BULK_BYTES_MAX: usize = 512 << 20;

impl<'a> Reply<'a> {
    /// Returns the reply at the start of `input` and its length in bytes; `None` while it is
    /// incomplete.
    pub(super) fn read(input: &'a [u8]) -> Result<Option<(Self, usize)>, Unexpected> {
        let Some(line_feed) = input.iter().take(LINE_BYTES_MAX).position(|byte| *byte == b'\n') else {
            return if input.len() < LINE_BYTES_MAX { Ok(None) } else { Err(Unexpected) };
        };
        let line = input.get(..line_feed).and_then(|line| line.strip_suffix(b"\r")).ok_or(Unexpected)?;
        let (kind, text) = line.split_first().ok_or(Unexpected)?;
        let after = line_feed + 1;
        let reply = match kind {
            b'+' => Reply::Simple(text),
            b'-' => Reply::Error(text),
            b':' => Reply::Integer(text),
            b'_' => Reply::Null,
            b'$' if text == b"-1" => Reply::Null,
            b'$' => return Reply::read_bulk(input, text, after),
            _ => return Err(Unexpected),
        };
        Ok(Some((reply, after)))
    }

    fn read_bulk(input: &'a [u8], length: &[u8], start: usize) -> Result<Option<(Self, usize)>, Unexpected> {
        let length = std::str::from_utf8(length).ok().and_then(|digits| digits.parse::<usize>().ok());
        let length = length.filter(|length| *length <= BULK_BYTES_MAX).ok_or(Unexpected)?;
        let end = start + length + 2;
        let Some(body) = input.get(start..end) else { return Ok(None) };
        let body = body.strip_suffix(b"\r\n").ok_or(Unexpected)?;
        Ok(Some((Reply::Bulk(body), end)))
    }
}

impl fmt::Display for Reply<'_> {
    /// For reports: enough to recognise the reply.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_BYTES: usize = 120;
        let shown =
            |text: &[u8]| String::from_utf8_lossy(text.get(..SHOWN_BYTES).unwrap_or(text)).into_owned();
        match self {
            Reply::Simple(text) | Reply::Error(text) | Reply::Integer(text) => {
                write!(formatter, "{:?}", shown(text))
            }
            Reply::Bulk(body) => write!(formatter, "a value of {} bytes", body.len()),
            Reply::Null => write!(formatter, "nil"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Reply, Unexpected};

    #[test]
    fn every_prefix_of_a_reply_waits_and_the_whole_is_read() {
        let replies: [(&[u8], Reply<'_>); 7] = [
            (b"+OK\r\n", Reply::Simple(b"OK")),
            (b"-ERR x\r\n", Reply::Error(b"ERR x")),
            (b":12\r\n", Reply::Integer(b"12")),
            (b"$4\r\na\r\nb\r\n", Reply::Bulk(b"a\r\nb")),
            (b"$0\r\n\r\n", Reply::Bulk(b"")),
            (b"$-1\r\n", Reply::Null),
            (b"_\r\n", Reply::Null),
        ];
        for (bytes, reply) in replies {
            for end in 0..bytes.len() {
                assert_eq!(Reply::read(&bytes[..end]), Ok(None));
            }
            let with_more = [bytes, b"+next"].concat();
            assert_eq!(Reply::read(&with_more), Ok(Some((reply, bytes.len()))));
        }
    }

    #[test]
    fn what_no_such_command_answers_is_refused() {
        for bytes in [
            &b"*1\r\n"[..],
            b"HTTP/1.1 400\r\n",
            b"\r\n",
            b"+OK\n",
            b"$x\r\n",
            b"$999999999999\r\n",
            b"$1\r\nabc",
        ] {
            assert_eq!(Reply::read(bytes), Err(Unexpected), "{}", String::from_utf8_lossy(bytes));
        }
        assert_eq!(Reply::read(&b"+".repeat(70_000)), Err(Unexpected));
    }
}
