//! IDs of entries.

use std::fmt;

/// The ID of an entry: a time in milliseconds, and a number among the entries of that time. Shown as
/// `ms-seq`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Id {
    /// Milliseconds, usually since 1970.
    pub ms: u64,
    /// Number among the entries of the millisecond.
    pub seq: u64,
}

impl Id {
    /// The smallest ID, which no entry has.
    pub const MIN: Self = Self { ms: 0, seq: 0 };
    /// The greatest ID.
    pub const MAX: Self = Self { ms: u64::MAX, seq: u64::MAX };

    /// Returns the next greater ID; `None` after the greatest.
    pub fn next(self) -> Option<Self> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(Self { seq, ..self }),
            None => self.ms.checked_add(1).map(|ms| Self { ms, seq: 0 }),
        }
    }

    /// Returns the next smaller ID; `None` before the smallest.
    pub fn previous(self) -> Option<Self> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(Self { seq, ..self }),
            None => self.ms.checked_sub(1).map(|ms| Self { ms, seq: u64::MAX }),
        }
    }

    /// Returns the shown form, without allocation.
    pub fn text(self) -> IdText {
        let mut text = IdText { bytes: [0; IdText::LONGEST], len: 0 };
        let mut buffer = itoa::Buffer::new();
        text.push(buffer.format(self.ms).as_bytes());
        text.push(b"-");
        text.push(buffer.format(self.seq).as_bytes());
        text
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

/// The shown form of an ID.
#[derive(Debug, Clone, Copy)]
pub struct IdText {
    bytes: [u8; Self::LONGEST],
    len: u8,
}

impl IdText {
    /// Two numbers of 20 digits, and a hyphen.
    const LONGEST: usize = 41;

    fn push(&mut self, bytes: &[u8]) {
        let start = self.len as usize;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len() as u8;
    }

    /// Returns the text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_cross_the_millisecond() {
        let id = |ms, seq| Id { ms, seq };
        assert_eq!(id(1, u64::MAX).next(), Some(id(2, 0)));
        assert_eq!(id(2, 0).previous(), Some(id(1, u64::MAX)));
        assert_eq!((id(1, 1).next(), id(1, 1).previous()), (Some(id(1, 2)), Some(id(1, 0))));
        assert_eq!((Id::MAX.next(), Id::MIN.previous()), (None, None));
    }

    #[test]
    fn the_longest_text_fits() {
        let longest = "18446744073709551615-18446744073709551615";
        assert_eq!(Id::MAX.text().as_bytes(), longest.as_bytes());
        assert_eq!(Id::MIN.text().as_bytes(), b"0-0");
        assert_eq!(Id::MAX.to_string(), longest);
    }
}
