//! Identity of components: names, subjects, and the states that they carry.

pub(crate) mod extent;
pub(crate) mod interned;
pub(crate) mod interner;
pub(crate) mod name;
pub(crate) mod name_map;
pub(crate) mod slot;
pub(crate) mod state;
pub(crate) mod subject;
pub(crate) mod value;
