//! Encoding of numbers and texts in events.

/// Appends a number as LEB128: seven bits a byte, low bits first, high bit set in all but the last
/// byte. 1 to 10 bytes.
#[inline]
pub(crate) fn put_number(into: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

/// Appends bytes, preceded by their length.
pub(crate) fn put_bytes(into: &mut Vec<u8>, bytes: &[u8]) {
    put_number(into, bytes.len() as u64);
    into.extend_from_slice(bytes);
}

/// Reader of encoded values. Returns `None` if the bytes end early or are not a possible encoding.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// Returns the position in bytes from the beginning.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.offset == self.bytes.len()
    }

    /// Reads a number in the one encoding that [`put_number`] gives it.
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.offset)?;
            self.offset += 1;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                // Only the number 0 ends with a zero byte.
                return (byte > 0 || shift == 0).then_some(number);
            }
        }
        None
    }

    pub(crate) fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        T::try_from(self.number()?).ok()
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.small()?;
        self.take(length)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.offset.checked_add(length)?;
        let taken = self.bytes.get(self.offset..end)?;
        self.offset = end;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(number: u64, text in ".*", tail in any::<[u8; 5]>()) {
            let mut bytes = Vec::new();
            put_number(&mut bytes, number);
            put_bytes(&mut bytes, text.as_bytes());
            bytes.extend_from_slice(&tail);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!((reader.number(), reader.text()), (Some(number), Some(&*text)));
            prop_assert_eq!((reader.array::<5>(), reader.is_at_end()), (Some(tail), true));
            prop_assert_eq!(reader.array::<1>(), None);
        }

        #[test]
        fn a_number_has_one_form(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let mut reader = Reader::new(&bytes);
            if let Some(number) = reader.number() {
                let mut again = Vec::new();
                put_number(&mut again, number);
                prop_assert_eq!(&again, &bytes[..reader.offset()]);
            }
        }
    }
}
