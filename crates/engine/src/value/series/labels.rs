//! Labels: pairs of a name and a value, by which series are found.

use crate::persist::record::{Cursor, put_bytes};

/// The labels of a series or a lens, in the order in which they were given; a name may be given twice.
///
/// One block of memory: for each label, its name and its value, each with its length.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Labels(Box<[u8]>);

impl Labels {
    /// Collects labels.
    pub(crate) fn of<'a>(labels: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        let mut bytes = Vec::new();
        for (name, value) in labels {
            put_bytes(&mut bytes, name);
            put_bytes(&mut bytes, value);
        }
        Self(bytes.into())
    }

    /// Collects labels as clients give them: names and values in turn, of which a last name without a
    /// value counts for nothing. Returns `None` if one is empty, or a value has a character of lists.
    pub(crate) fn parse(words: &[&[u8]]) -> Option<Self> {
        let (pairs, _) = words.as_chunks::<2>();
        let is_list = |value: &[u8]| value.iter().any(|byte| b"(),".contains(byte));
        let is_label = |[name, value]: &[&[u8]; 2]| !name.is_empty() && !value.is_empty() && !is_list(value);
        pairs.iter().all(is_label).then(|| Self::of(pairs.iter().map(|[name, value]| (*name, *value))))
    }

    /// Returns the labels, names first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut bytes = Cursor::new(&self.0);
        std::iter::from_fn(move || Some((bytes.bytes()?, bytes.bytes()?)))
    }

    /// Whether there is no label.
    pub(crate) fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Returns the value of the first label of this name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.values(name).next()
    }

    /// Returns the values of all labels of this name.
    pub(crate) fn values<'a>(&'a self, name: &[u8]) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(other, _)| *other == name).map(|(_, value)| value)
    }

    /// Returns the memory that they use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len()
    }

    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        put_bytes(into, &self.0);
    }

    pub(super) fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let bytes = bytes.bytes()?;
        let mut check = Cursor::new(bytes);
        while !check.is_empty() {
            check.bytes()?;
            check.bytes()?;
        }
        Some(Self(bytes.into()))
    }
}
