//! Lenses: series seen through transforms. See [`tidemark_series::View`].

mod words;

use super::links::{LinkUse, Linking};
use super::{InParts, Labels, Unit, Value};
use crate::persist::record::{Cursor, put_bytes, put_varint};
use tidemark_series::Transform;
use xxhash_rust::xxh3::xxh3_64;

pub(crate) use words::{WordError, WordedTransform, key_positions, names};
use words::{split_labels, transforms};

/// Most bytes of a lens's words, labels included.
pub(crate) const BYTES_MAX: usize = 16 << 10;

/// Most transforms of a lens.
pub(crate) const TRANSFORMS_MAX: usize = 64;

/// A series, or another lens, seen through transforms.
///
/// It holds names, so it sees whatever has the names when it is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Lens {
    source: Box<[u8]>,
    /// The transforms as they were given.
    words: Vec<Box<[u8]>>,
    /// Where the words of each transform end.
    ends: Vec<usize>,
    /// Unit of the times for which the transforms were compiled.
    unit: Unit,
    transforms: Vec<WordedTransform>,
    labels: Labels,
}

impl Lens {
    /// Makes a lens over a key: of words for transforms, and of `LABELS` with its labels behind them.
    ///
    /// # Errors
    /// The words are no transforms and labels, or too many.
    pub(crate) fn new(source: &[u8], words: &[&[u8]], unit: Unit) -> Result<Self, WordError> {
        let bytes: usize = words.iter().map(|word| word.len() + 1).sum();
        if bytes > BYTES_MAX {
            return Err(WordError::TooLong { bytes });
        }
        let (words, labels) = split_labels(words);
        let labels = match labels {
            None => Labels::default(),
            Some(labels) if labels.is_empty() || labels.len() % 2 == 1 => return Err(WordError::Labels),
            Some(labels) => Labels::parse(labels).ok_or(WordError::Labels)?,
        };
        let (transforms, ends): (Vec<_>, Vec<_>) = transforms(words, unit)?.into_iter().unzip();
        if transforms.len() > TRANSFORMS_MAX {
            return Err(WordError::TooMany { transforms: transforms.len() });
        }
        let words = words.iter().map(|word| Box::from(*word)).collect();
        Ok(Self { source: source.into(), words, ends, unit, transforms, labels })
    }

    /// Returns the key that it sees.
    pub(crate) fn source(&self) -> &[u8] {
        &self.source
    }

    /// Returns its labels.
    pub(crate) fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Returns its transforms, as they were given.
    pub(crate) fn words(&self) -> Vec<&[u8]> {
        self.words.iter().map(|word| &**word).collect()
    }

    /// Returns its transforms for a series with this unit, each with the key that it reads beside.
    ///
    /// # Errors
    /// A duration is none in this unit.
    pub(crate) fn transforms(&self, unit: Unit) -> Result<Vec<WordedTransform>, WordError> {
        if unit == self.unit {
            return Ok(self.transforms.clone());
        }
        let transforms = transforms(&self.words(), unit)?;
        Ok(transforms.into_iter().map(|(transform, _)| transform).collect())
    }

    /// Returns each transform as it was given, and which points it reads.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (Vec<&[u8]>, String)> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).zip(&self.transforms).map(|((start, end), transform)| {
            let words = self.words[start..*end].iter().map(|word| &**word).collect();
            (words, transform.reads())
        })
    }

    /// Returns the keys that it sees, its source first.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&*self.source).chain(self.transforms.iter().filter_map(|transform| match transform {
            Transform::Join { other, .. } => Some(&**other),
            _ => None,
        }))
    }
}

impl Value for Lens {
    fn is_empty(&self) -> bool {
        false
    }

    fn elements(&self) -> usize {
        self.words.len()
    }

    fn encoding(&self) -> &'static str {
        "raw"
    }

    fn encode(&self, into: &mut Vec<u8>) {
        put_bytes(into, &self.source);
        into.push(self.unit as u8);
        let labels: Vec<&[u8]> = self.labels.iter().flat_map(|(name, value)| [name, value]).collect();
        let option = (!labels.is_empty()).then_some(&b"LABELS"[..]);
        let words: Vec<&[u8]> = self.words().into_iter().chain(option).chain(labels).collect();
        put_varint(into, words.len() as u64);
        words.iter().for_each(|word| put_bytes(into, word));
    }

    fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let source = bytes.bytes()?;
        let unit = Unit::of_code(bytes.u8()?)?;
        let count = usize::try_from(bytes.varint()?).ok().filter(|count| *count <= bytes.remaining())?;
        let words = (0..count).map(|_| bytes.bytes()).collect::<Option<Vec<_>>>()?;
        Self::new(source, &words, unit).ok()
    }

    fn digest(&self) -> u64 {
        let mut encoded = Vec::new();
        self.encode(&mut encoded);
        xxh3_64(&encoded)
    }

    fn in_parts(&self) -> Option<&dyn InParts> {
        None
    }

    fn in_parts_mut(&mut self) -> Option<&mut dyn InParts> {
        None
    }
}

/// A lens reads the keys that it sees, and knows them by name alone: it stays as it is when they go, or
/// get another name.
impl Linking for Lens {
    fn has_links(&self) -> bool {
        true
    }

    fn for_each_link(&self, visit: &mut dyn FnMut(&[u8], LinkUse)) {
        self.keys().for_each(|key| visit(key, LinkUse::Sees));
    }

    fn cut_link(&mut self, _: &[u8]) {}

    fn rename_link(&mut self, _: &[u8], _: &[u8]) {}

    fn cut_all_links(&mut self) {}
}

#[cfg(test)]
mod tests;
