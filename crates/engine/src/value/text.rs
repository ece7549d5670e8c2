//! A string as bytes, whether it is stored as bytes or as an integer.

/// A string's bytes: stored ones, or an integer's decimal form.
#[derive(Debug)]
pub enum Text<'a> {
    /// Bytes as stored.
    Bytes(&'a [u8]),
    /// An integer and its decimal form.
    Int(i64, Decimal),
}

impl std::ops::Deref for Text<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Int(_, decimal) => decimal.as_bytes(),
        }
    }
}

/// Decimal form of an integer: at most 20 bytes of ASCII, without allocation.
#[derive(Debug, Clone, Copy)]
pub struct Decimal {
    bytes: [u8; 20],
    len: u8,
}

impl Decimal {
    /// Formats an integer.
    #[inline]
    pub fn of(value: i64) -> Self {
        let mut buffer = itoa::Buffer::new();
        let text = buffer.format(value).as_bytes();
        let mut bytes = [0; 20];
        bytes[..text.len()].copy_from_slice(text);
        Self { bytes, len: text.len() as u8 }
    }

    /// Returns the digits.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }
}
