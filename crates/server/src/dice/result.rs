//! `wire.Result`: encodes an answer as a frame.

use super::frame::{FRAME_LIMIT, HEADER_BYTES};
use super::protobuf::{put_number, put_text};

/// Longest error message that is sent, in bytes; errors quote little of the client's input.
const ERROR_BYTES: usize = 1 << 20;

/// Error for an answer that this protocol cannot represent.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum Unanswerable {
    #[error("ERR the answer is not UTF-8, which the strings of this protocol have to be; read it by RESP")]
    NotText,
    #[error(
        "ERR the score {0} is not an integer of 64 bits, which this protocol's scores have to be; read it by RESP"
    )]
    NotAnInteger(f64),
    #[error("ERR the answer takes {0} bytes, and the frames of this protocol hold 33554432")]
    TooLong(usize),
    /// The answer does not have the form that the command's row declares.
    #[error("ERR the answer has another form than expected")]
    Unexpected,
}

/// Fields before the body of a result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head<'a> {
    pub(super) message: &'a [u8],
    /// Subscription of the result; 0 for none.
    pub(super) fingerprint: u64,
}

impl Head<'_> {
    /// Head of every answer that belongs to no subscription.
    pub(super) const OK: Head<'static> = Head { message: b"OK", fingerprint: 0 };
}

/// Replaces the buffer's content with a frame of status OK, whose body `put_body` writes. An answer
/// that cannot be represented becomes an error.
pub(super) fn write(
    buffer: &mut Vec<u8>,
    head: &Head<'_>,
    put_body: impl FnOnce(&mut Vec<u8>) -> Result<(), Unanswerable>,
) {
    if let Err(why) = try_write(buffer, head, put_body) {
        write_error(buffer, why.to_string().as_bytes(), head.fingerprint);
    }
}

/// Like [`write`], but returns the error to the caller; the buffer is then invalid.
pub(super) fn try_write(
    buffer: &mut Vec<u8>,
    head: &Head<'_>,
    put_body: impl FnOnce(&mut Vec<u8>) -> Result<(), Unanswerable>,
) -> Result<(), Unanswerable> {
    if std::str::from_utf8(head.message).is_err() {
        return Err(Unanswerable::NotText);
    }
    begin(buffer);
    // Status OK is 0, the default, and is not written.
    put_text(buffer, 2, head.message);
    put_number(buffer, 3, head.fingerprint);
    put_body(buffer)?;
    end(buffer)
}

/// Replaces the buffer's content with an error frame. The message is cut after [`ERROR_BYTES`].
pub(super) fn write_error(buffer: &mut Vec<u8>, message: &[u8], fingerprint: u64) {
    const ERR: u64 = 1;
    let message = &message[..message.len().min(ERROR_BYTES)];
    begin(buffer);
    put_number(buffer, 1, ERR);
    put_text(buffer, 2, String::from_utf8_lossy(message).as_bytes());
    put_number(buffer, 3, fingerprint);
    end(buffer)
        .expect("a message of ERROR_BYTES fits into a frame, each byte replaced by a character of three");
}

fn begin(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.extend_from_slice(&[0; HEADER_BYTES]);
}

fn end(buffer: &mut [u8]) -> Result<(), Unanswerable> {
    let length = buffer.len() - HEADER_BYTES;
    let header = u32::try_from(length).ok().filter(|length| *length <= FRAME_LIMIT);
    let header = header.ok_or(Unanswerable::TooLong(length))?;
    buffer[..HEADER_BYTES].copy_from_slice(&header.to_be_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::frame::{self, Framed};
    use super::super::protobuf::put_message;
    use super::*;

    #[test]
    fn a_result_is_the_frame_that_clients_read() {
        let mut buffer = b"left over".to_vec();
        let head = Head { message: b"OK", fingerprint: 150 };
        write(&mut buffer, &head, |buffer| {
            put_message(buffer, 16, |buffer| {
                put_text(buffer, 1, b"v");
                Ok(())
            })
        });
        assert_eq!(buffer, b"\0\0\0\x0d\x12\x02OK\x18\x96\x01\x82\x01\x03\x0a\x01v");
    }

    #[test]
    fn what_cannot_be_said_becomes_an_error() {
        let mut buffer = Vec::new();
        write(&mut buffer, &Head::OK, |_| Err(Unanswerable::Unexpected));
        let text = "ERR the answer has another form than expected";
        assert_eq!(buffer, [b"\0\0\0\x31\x08\x01\x12\x2d".as_slice(), text.as_bytes()].concat());
        write(&mut buffer, &Head { message: b"\xff", fingerprint: 0 }, |_| Ok(()));
        assert!(buffer.ends_with(Unanswerable::NotText.to_string().as_bytes()));
    }

    #[test]
    fn no_frame_exceeds_the_limit() {
        let mut buffer = Vec::new();
        let rest = FRAME_LIMIT as usize - 4;
        for (bytes, fits) in [(rest, true), (rest + 1, false)] {
            write(&mut buffer, &Head::OK, |buffer| {
                buffer.resize(buffer.len() + bytes, 0);
                Ok(())
            });
            let whole = matches!(frame::read(&buffer, FRAME_LIMIT), Ok(Framed::Whole(payload)) if fits == (payload.len() > 1000));
            assert!(whole, "{bytes}");
        }
    }

    #[test]
    fn an_error_is_text_whatever_it_quotes() {
        let mut buffer = Vec::new();
        write_error(&mut buffer, b"ERR \xff", 0);
        assert_eq!(buffer, "\0\0\0\x0b\x08\x01\x12\x07ERR \u{fffd}".as_bytes());
    }
}
