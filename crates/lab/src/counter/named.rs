//! Values under the names of a run's keys.

use foldhash::{HashMap, HashMapExt};
use std::sync::Arc;

/// A value for every name, looked up by name as in requests.
pub(super) struct Named<T> {
    names: Arc<[String]>,
    values: HashMap<Box<str>, T>,
}

impl<T> Named<T> {
    pub(super) fn new(names: &Arc<[String]>, mut make: impl FnMut(&str) -> T) -> Self {
        let mut values = HashMap::with_capacity(names.len());
        for name in names.iter() {
            values.insert(name.as_str().into(), make(name));
        }
        Named { names: Arc::clone(names), values }
    }

    /// Returns the value of the key with this number.
    #[inline]
    pub(super) fn get(&self, key: usize) -> &T {
        let name = &self.names[key];
        self.values.get(name.as_str()).expect("every name has a value")
    }

    /// Iterates over the values in the order of the keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.names.len()).map(|key| self.get(key))
    }
}
