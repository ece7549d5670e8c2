//! Splits the bytes after a header into lines, as a stream. A file of the original may end in zero
//! bytes, as a mapped file is as long as its capacity; so zero bytes separate lines too.

use std::io::{self, Read};

/// Size of one read.
const CHUNK_BYTES: usize = 64 << 10;

/// Bytes between two separators.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A complete line, without its end.
    Line(&'a [u8]),
    /// A line cut off by a zero byte or the end of the file.
    Torn(&'a [u8]),
    /// A line above the maximum length.
    TooLong,
    /// Zero bytes only.
    Zeros,
}

/// Lines of a source. Holds one line and one chunk.
#[derive(Debug)]
pub(super) struct Lines<R> {
    source: R,
    /// Bytes read; `buffer[start..end]` is not split yet.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `buffer[start]` in the file.
    offset: u64,
    line_bytes_max: usize,
}

impl<R: Read> Lines<R> {
    /// Reads lines from a source that is at this offset of its file.
    pub(super) fn new(source: R, offset: u64, line_bytes_max: usize) -> Self {
        Self { source, buffer: Vec::new(), start: 0, end: 0, offset, line_bytes_max }
    }

    /// Returns the offset of the next piece; at the end, the size of the file.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the next piece; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Piece<'_>>> {
        if self.start == self.end && !self.fill()? {
            return Ok(None);
        }
        if self.buffer[self.start] == 0 {
            self.skip_while(|byte| byte == 0)?;
            return Ok(Some(Piece::Zeros));
        }
        let mut searched = 0;
        loop {
            let window = &self.buffer[self.start..self.end];
            let found = window[searched..].iter().position(|&byte| is_separator(byte));
            let length = found.map_or(window.len(), |at| searched + at);
            if length > self.line_bytes_max {
                self.skip_while(|byte| !is_separator(byte))?;
                self.skip_line_end();
                return Ok(Some(Piece::TooLong));
            }
            searched = length;
            if found.is_none() && self.fill()? {
                continue;
            }
            let begin = self.start;
            self.consume(length);
            let whole = self.skip_line_end();
            let line = &self.buffer[begin..begin + length];
            return Ok(Some(if whole { Piece::Line(line) } else { Piece::Torn(line) }));
        }
    }

    fn skip_while(&mut self, skipped: impl Fn(u8) -> bool) -> io::Result<()> {
        loop {
            let window = &self.buffer[self.start..self.end];
            let count = window.iter().position(|&byte| !skipped(byte)).unwrap_or(window.len());
            self.consume(count);
            if self.start < self.end || !self.fill()? {
                return Ok(());
            }
        }
    }

    /// Skips a line end. Returns whether there was one.
    fn skip_line_end(&mut self) -> bool {
        let here = self.start < self.end && self.buffer[self.start] == b'\n';
        if here {
            self.consume(1);
        }
        here
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
        self.offset += count as u64;
        debug_assert!(self.start <= self.end);
    }

    /// Reads more bytes; `false` at the end of the source.
    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < self.end + CHUNK_BYTES {
            self.buffer.resize(self.end + CHUNK_BYTES, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn is_separator(byte: u8) -> bool {
    byte == b'\n' || byte == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives one byte at a time.
    struct Trickle<'a>(&'a [u8]);

    impl Read for Trickle<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let Some((&first, rest)) = self.0.split_first() else { return Ok(0) };
            into[0] = first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn pieces(source: impl Read, line_bytes_max: usize) -> Vec<(u64, String)> {
        let mut lines = Lines::new(source, 0, line_bytes_max);
        let mut all = Vec::new();
        loop {
            let offset = lines.offset();
            let Some(piece) = lines.next().expect("memory") else {
                all.push((offset, "end".into()));
                return all;
            };
            all.push((offset, format!("{piece:?}")));
        }
    }

    fn kinds(bytes: &[u8]) -> Vec<(u64, String)> {
        pieces(bytes, 4)
    }

    #[test]
    fn zeros_and_ends_cut_lines_off() {
        let line = |text: &str| format!("{:?}", Piece::Line(text.as_bytes()));
        let torn = |text: &str| format!("{:?}", Piece::Torn(text.as_bytes()));
        assert_eq!(kinds(b""), [(0, "end".into())]);
        assert_eq!(kinds(b"ab\n\ncd"), [(0, line("ab")), (3, line("")), (4, torn("cd")), (6, "end".into())]);
        let expected = [(0, torn("ab")), (2, "Zeros".into()), (5, line("cd")), (8, "end".into())];
        assert_eq!(kinds(b"ab\0\0\0cd\n"), expected);
    }

    #[test]
    fn a_line_has_no_more_bytes_than_allowed() {
        let line = |text: &str| format!("{:?}", Piece::Line(text.as_bytes()));
        let expected = [(0, line("abcd")), (5, "TooLong".into()), (11, line("f")), (13, "end".into())];
        assert_eq!(kinds(b"abcd\nabcde\nf\n"), expected);
        let expected = [(0, "TooLong".into()), (5, "Zeros".into()), (6, "end".into())];
        assert_eq!(kinds(b"abcde\0"), expected);
    }

    proptest! {
        #[test]
        fn how_much_a_read_gives_makes_no_difference(
            bytes in proptest::collection::vec(prop_oneof![Just(0), Just(b'\n'), any::<u8>()], 0..200),
        ) {
            prop_assert_eq!(pieces(&bytes[..], 8), pieces(Trickle(&bytes), 8));
        }
    }
}
