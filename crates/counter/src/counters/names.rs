//! Deduplication of names in a request for many.

use std::collections::HashMap;

/// Distinct names in the order of their first occurrence, with all places of each.
#[derive(Default)]
pub(crate) struct Names<'name> {
    list: Vec<&'name [u8]>,
    /// The places of each name in the list.
    places: Vec<Vec<usize>>,
    numbers: HashMap<&'name [u8], usize>,
}

impl<'name> Names<'name> {
    /// Adds an occurrence of the name at `place`.
    pub(crate) fn push(&mut self, name: &'name [u8], place: usize) {
        let number = *self.numbers.entry(name).or_insert(self.list.len());
        if number == self.list.len() {
            self.list.push(name);
            self.places.push(Vec::with_capacity(1));
        }
        self.places[number].push(place);
        debug_assert_eq!(self.list.len(), self.places.len());
    }

    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.numbers.contains_key(name)
    }

    /// Returns the distinct names.
    pub(crate) fn list(&self) -> &[&'name [u8]] {
        &self.list
    }

    /// Returns the places of the name with this number, in order.
    pub(crate) fn places(&self, number: usize) -> &[usize] {
        &self.places[number]
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn a_name_is_there_once_and_knows_all_its_places() {
        let mut names = Names::default();
        assert!(names.list().is_empty() && !names.has(b"a"));
        for (place, name) in [b"a", b"b", b"a", b"c", b"a"].into_iter().enumerate() {
            names.push(name, place);
        }
        assert!(names.has(b"c") && !names.has(b"d"));
        assert_eq!(names.list(), [b"a", b"b", b"c"]);
        assert_eq!([0, 1, 2].map(|number| names.places(number)), [&[0, 2, 4][..], &[1], &[3]]);
    }
}
