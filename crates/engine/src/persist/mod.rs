//! Persistence of the whole state: records, snapshots, and a digest that compares states.

pub(crate) mod added_points;
pub(crate) mod apply;
pub(crate) mod apply_error;
pub(crate) mod blocks;
pub mod change;
#[cfg(test)]
pub(crate) mod damage;
pub(crate) mod digest;
pub(crate) mod following;
pub mod level;
pub(crate) mod loader;
pub(crate) mod points;
pub mod record;
pub mod section;
pub(crate) mod snapshot;
pub(crate) mod taking;
