//! Position of a watch: all that is needed to resume it, here or in another process.

use std::fmt::{self, Write};
use std::str::FromStr;

/// Position of a [`Watch`](crate::Watch). As text ([`Display`](fmt::Display), [`FromStr`]) it is
/// one word of ASCII letters, digits and `-._%,:`. Store it together with the effects of the
/// events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Id of the subscription on the server.
    pub(crate) subscription: Vec<u8>,
    /// LSN of the last emission, or of the snapshot if none came since.
    pub(crate) lsn: u64,
    /// Number of the last emission.
    pub(crate) seq: u64,
    /// First key of the read; empty if it has none.
    pub(crate) key: Vec<u8>,
    /// The read, as given by the caller.
    pub(crate) read: Vec<Vec<u8>>,
    /// The read, as listed by the server. A server that has lost its data may give the id to
    /// another subscription.
    pub(crate) listed: Vec<Vec<u8>>,
}

/// Place of an emission relative to a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EmissionOrder {
    /// At the position or before it: already received.
    Known,
    /// Directly after it.
    Next,
    /// After a gap of missing emissions.
    Gap,
}

impl Position {
    /// Returns the LSN of the last emission, or of the snapshot if none came since.
    pub fn lsn(&self) -> u64 {
        self.lsn
    }

    /// Returns the number of the last emission; 0 if none came since a new subscription began.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the watched read: its name and its arguments.
    pub fn read(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.read.iter().map(Vec::as_slice)
    }

    pub(crate) fn place(&self, lsn: u64, seq: u64) -> EmissionOrder {
        if lsn <= self.lsn {
            EmissionOrder::Known
        } else if seq == self.seq_next() {
            EmissionOrder::Next
        } else {
            EmissionOrder::Gap
        }
    }

    /// Returns the number of the next emission.
    pub(crate) fn seq_next(&self) -> u64 {
        self.seq.saturating_add(1)
    }
}

/// First field of a position's text: the version of its format.
const VERSION: &str = "1";

/// Writes the position as `1:2-0:17:4:key:GET,key:get,key`.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION}:")?;
        write_word(f, &self.subscription)?;
        write!(f, ":{}:{}:", self.lsn, self.seq)?;
        write_word(f, &self.key)?;
        for words in [&self.read, &self.listed] {
            let mut before = ':';
            for word in words {
                f.write_char(before)?;
                write_word(f, word)?;
                before = ',';
            }
        }
        Ok(())
    }
}

fn write_word(f: &mut fmt::Formatter<'_>, word: &[u8]) -> fmt::Result {
    for &byte in word {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => f.write_char(byte.into())?,
            _ => write!(f, "%{byte:02x}")?,
        }
    }
    Ok(())
}

/// Error of a text that is not a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PositionError {
    /// What is wrong with the text.
    what: &'static str,
}

impl fmt::Display for PositionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a position: {}", self.what)
    }
}

impl std::error::Error for PositionError {}

impl FromStr for Position {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Position, PositionError> {
        let error = |what| PositionError { what };
        let mut fields = text.trim().split(':');
        if fields.next() != Some(VERSION) {
            return Err(error("it does not begin with a version that is known"));
        }
        let mut field = || fields.next().ok_or(error("it is too short"));
        let number = |text: &str| text.parse().map_err(|_| error("a number is expected where there is none"));
        let words = |text: &str| text.split(',').map(word).collect::<Result<Vec<_>, _>>();
        let position = Position {
            subscription: word(field()?)?,
            lsn: number(field()?)?,
            seq: number(field()?)?,
            key: word(field()?)?,
            read: words(field()?)?,
            listed: words(field()?)?,
        };
        match fields.next() {
            None => Ok(position),
            Some(_) => Err(error("it is too long")),
        }
    }
}

fn word(text: &str) -> Result<Vec<u8>, PositionError> {
    let mut bytes = text.bytes();
    let mut word = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let decoded = if byte == b'%' {
            let mut digit = || bytes.next().and_then(|digit| char::from(digit).to_digit(16));
            let (high, low) = (digit(), digit());
            high.zip(low).and_then(|(high, low)| u8::try_from(high * 16 + low).ok())
        } else {
            Some(byte)
        };
        word.push(decoded.ok_or(PositionError { what: "'%' stands without two digits" })?);
    }
    Ok(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position() -> Position {
        Position {
            subscription: b"2-0".to_vec(),
            lsn: 17,
            seq: 4,
            key: b"a:b, %\xff\n".to_vec(),
            read: vec![b"Get".to_vec(), b"a:b, %\xff\n".to_vec(), Vec::new()],
            listed: vec![b"get".to_vec()],
        }
    }

    #[test]
    fn a_position_is_the_same_after_it_was_text() {
        let text = position().to_string();
        assert_eq!(text, "1:2-0:17:4:a%3ab%2c%20%25%ff%0a:Get,a%3ab%2c%20%25%ff%0a,:get");
        assert_eq!(text.parse(), Ok(position()));
        // As in a file that an editor has touched.
        assert_eq!(format!("{text}\n").parse(), Ok(position()));
    }

    #[test]
    fn what_is_not_a_position_is_refused() {
        let whole = position().to_string();
        for text in ["", "1", "2:2-0:17:4:k:GET,k:get,k", "1:2-0:x:4:k:GET,k:get,k", "1:2-0:-1:4:k:GET:get"] {
            assert!(text.parse::<Position>().is_err(), "{text}");
        }
        for text in ["1:%:1:1:k:GET:get", "1:%a:1:1:k:GET:get", "1:%\u{e9}:1:1:k:G:g", "1:2-0:1:1:k:GET:get:"]
        {
            assert!(text.parse::<Position>().is_err(), "{text}");
        }
        for end in (0..whole.rfind(':').expect("fields")).filter(|end| whole.is_char_boundary(*end)) {
            let beginning: String = whole.chars().take(end).collect();
            assert!(beginning.parse::<Position>().is_err(), "{beginning}");
        }
    }

    #[test]
    fn an_emission_is_known_or_next_or_others_are_missing() {
        let position = position();
        for (lsn, seq, place) in [
            (17, 4, EmissionOrder::Known),
            (3, 1, EmissionOrder::Known),
            (18, 5, EmissionOrder::Next),
            (1800, 5, EmissionOrder::Next),
            (18, 6, EmissionOrder::Gap),
            // Another history: the number belongs to another LSN.
            (18, 4, EmissionOrder::Gap),
        ] {
            assert_eq!(position.place(lsn, seq), place, "{lsn} {seq}");
        }
    }
}
