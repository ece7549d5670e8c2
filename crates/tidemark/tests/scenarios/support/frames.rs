//! Bytes of whole values, for relays that do not decode them.

use std::io::{self, BufRead, BufReader, Read};
use std::net::TcpStream;

/// Splits what a server sends into values.
pub(crate) struct Frames {
    reader: BufReader<TcpStream>,
}

impl Frames {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { reader: BufReader::with_capacity(1 << 16, stream) }
    }

    /// Returns the next whole value.
    pub(crate) fn next_frame(&mut self) -> io::Result<Vec<u8>> {
        let mut frame = Vec::new();
        self.append(&mut frame)?;
        Ok(frame)
    }

    fn append(&mut self, frame: &mut Vec<u8>) -> io::Result<()> {
        let start = frame.len();
        if self.reader.read_until(b'\n', frame)? == 0 || !frame.ends_with(b"\r\n") {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = String::from_utf8_lossy(&frame[start..frame.len() - 2]).into_owned();
        let (kind, count) = line.split_at(1);
        let count = || count.parse::<i64>().map(|count| count.max(-1)).map_err(io::Error::other);
        match kind {
            "$" | "!" | "=" => {
                let length = count()?;
                if length >= 0 {
                    let body = frame.len();
                    frame.resize(body + length as usize + 2, 0);
                    self.reader.read_exact(&mut frame[body..])?;
                }
            }
            "*" | "~" | ">" => (0..count()?).try_for_each(|_| self.append(frame))?,
            "%" => (0..count()? * 2).try_for_each(|_| self.append(frame))?,
            _ => {}
        }
        Ok(())
    }
}
