//! Immutable bytes: short ones in place, longer ones shared by reference counting.

use std::hash::{Hash, Hasher};
use std::ops::Deref;
use triomphe::ThinArc;

/// Maximum length that is stored in place.
const FEW: usize = 14;
/// Heap bytes before longer content: reference count and length.
const HEAD_BYTES: usize = 2 * size_of::<usize>();

/// Bytes that may have several owners. A clone copies only short ones.
#[derive(Clone)]
pub struct SharedBytes(Kept);

#[derive(Clone)]
enum Kept {
    Few { len: u8, bytes: [u8; FEW] },
    Many(ThinArc<(), u8>),
}

const _: () = assert!(size_of::<SharedBytes>() == 16, "a length and a few bytes, or a pointer");

impl SharedBytes {
    /// Heap bytes of the content, counted in full even if it is shared.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Kept::Few { .. } => 0,
            Kept::Many(many) => HEAD_BYTES + many.slice.len(),
        }
    }

    /// Whether both are equal without a comparison of long content: one is a clone of the other, or
    /// they are short and equal.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kept::Many(one), Kept::Many(other)) => std::ptr::eq(one.slice.as_ptr(), other.slice.as_ptr()),
            _ => self == other,
        }
    }
}

impl Default for SharedBytes {
    fn default() -> Self {
        Self(Kept::Few { len: 0, bytes: [0; FEW] })
    }
}

impl From<&[u8]> for SharedBytes {
    fn from(bytes: &[u8]) -> Self {
        let mut few = [0; FEW];
        match few.get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                Self(Kept::Few { len: bytes.len() as u8, bytes: few })
            }
            None => Self(Kept::Many(ThinArc::from_header_and_slice((), bytes))),
        }
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Kept::Few { len, bytes } => &bytes[..usize::from(*len)],
            Kept::Many(many) => &many.slice,
        }
    }
}

impl PartialEq for SharedBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SharedBytes {}

impl Hash for SharedBytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl std::fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_the_bytes_that_they_were_made_of() {
        for len in 0..3 * FEW {
            let bytes: Vec<u8> = (0..len as u8).collect();
            let (one, other) = (SharedBytes::from(&bytes[..]), SharedBytes::from(&bytes[..]));
            assert_eq!((&*one, &one), (&bytes[..], &other));
            assert_eq!(one.heap_bytes(), if len <= FEW { 0 } else { HEAD_BYTES + len });
            let clone = one.clone();
            drop(one);
            assert!(clone.is_same(&clone.clone()) && clone.is_same(&other) == (len <= FEW));
            assert_eq!(*clone, bytes[..]);
            assert_ne!(clone, SharedBytes::from(&[&bytes[..], b"x"].concat()[..]));
        }
        assert!(SharedBytes::default().is_empty());
    }
}
