//! Interned dotted names.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::ArgumentError;

/// A dotted path of non-empty parts. Equal text is the same name, and comparing is comparing one pointer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name(&'static str);

impl Name {
    /// The name of this text.
    pub fn new(path: &str) -> Result<Self, ArgumentError> {
        static ALL: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
        if path.split('.').any(str::is_empty) {
            return Err(ArgumentError::new("name", format!("\"{path}\" has an empty part")));
        }
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.get_or_insert_default();
        if let Some(known) = all.get(path) {
            return Ok(Self(known));
        }
        let text: &'static str = Box::leak(path.to_owned().into_boxed_str());
        all.insert(text);
        Ok(Self(text))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
