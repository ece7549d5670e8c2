//! What pools, their selectors, their services and their files do, in one program: a target for each file would link the crate again.

#[cfg(feature = "files")]
mod catalogue_files;
#[cfg(feature = "original")]
mod original;
mod pool;
mod selectors;
mod service;
