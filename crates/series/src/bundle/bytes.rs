//! Bytes that are being written, and read with bounds.

/// Appends an integer, seven bits a byte, the lowest first.
pub(super) fn put_varint(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

/// Appends words, the lowest byte of each first.
pub(super) fn put_words(words: &[u64], into: &mut Vec<u8>) {
    into.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

/// A position in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes all that is left.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Takes `count` bytes; `None` if fewer are left.
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn word(&mut self) -> Option<u64> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*taken))
    }

    /// Takes `count` words as bytes; `None` if fewer are left.
    pub(super) fn words(&mut self, count: usize) -> Option<&'a [[u8; 8]]> {
        Some(self.take(count.checked_mul(8)?)?.as_chunks().0)
    }

    /// Takes what [`put_varint`] wrote; `None` if it is longer than an integer.
    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// Takes a varint that is at most `most`.
    pub(super) fn length(&mut self, most: usize) -> Option<usize> {
        usize::try_from(self.varint()?).ok().filter(|length| *length <= most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_back_and_longer_ones_are_refused() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX >> 1, u64::MAX] {
            let mut written = Vec::new();
            put_varint(&mut written, value);
            let mut bytes = Bytes::new(&written);
            assert_eq!((bytes.varint(), bytes.is_empty()), (Some(value), true));
            assert_eq!(Bytes::new(&written[..written.len() - 1]).varint(), None, "{value} is cut");
        }
        let mut beyond = [0xff; 10];
        beyond[9] = 2;
        assert_eq!(Bytes::new(&beyond).varint(), None);
        assert_eq!(Bytes::new(&[0xff; 11]).varint(), None);
    }
}
