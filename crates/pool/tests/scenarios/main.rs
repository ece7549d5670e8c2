//! Scenarios of pools, their selectors, services and files. One test binary: a target per file
//! would link the crate each time.

#[cfg(feature = "files")]
mod catalogue_files;
#[cfg(feature = "original")]
mod original;
mod pool;
mod selectors;
mod service;
