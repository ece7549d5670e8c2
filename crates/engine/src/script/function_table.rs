//! The functions of the libraries that there are, by their names.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use tidemark_script::functions::Library;

/// The functions that there are.
#[derive(Default)]
pub(super) struct Functions {
    /// By their names.
    pub(super) libraries: BTreeMap<String, Arc<Library>>,
    /// By their names in small letters: the library, and the number in it.
    pub(super) by_name: HashMap<String, (Arc<Library>, usize)>,
}

impl Functions {
    pub(super) fn of(libraries: BTreeMap<String, Arc<Library>>) -> Self {
        let mut by_name = HashMap::new();
        for library in libraries.values() {
            for (index, function) in library.functions.iter().enumerate() {
                by_name.insert(function.name.to_ascii_lowercase(), (Arc::clone(library), index));
            }
        }
        Self { libraries, by_name }
    }

    /// Finds a function by its name, in letters of either case.
    pub(super) fn find(&self, name: &[u8]) -> Option<(&Arc<Library>, usize)> {
        let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
        self.by_name.get(&name).map(|(library, index)| (library, *index))
    }
}

/// The table of functions, and of which change of the libraries it is.
pub(super) struct FunctionTable(RwLock<(Option<u64>, Arc<Functions>)>);

impl Default for FunctionTable {
    fn default() -> Self {
        Self(RwLock::new((None, Arc::default())))
    }
}

impl FunctionTable {
    /// The table as it was when it was needed last.
    pub(super) fn last(&self) -> Arc<Functions> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner).1)
    }

    pub(super) fn of(&self, change: u64) -> Option<Arc<Functions>> {
        let (own, functions) = &*self.0.read().unwrap_or_else(PoisonError::into_inner);
        (*own == Some(change)).then(|| Arc::clone(functions))
    }

    pub(super) fn set(&self, change: u64, functions: &Arc<Functions>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = (Some(change), Arc::clone(functions));
    }
}
