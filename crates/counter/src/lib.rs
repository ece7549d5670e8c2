#![doc = include_str!("../README.md")]

mod account;
mod base;
mod cell;
#[cfg(not(loom))]
mod committer;
mod compact;
mod counter;
#[cfg(not(loom))]
pub mod counters;
mod heat;
mod ledger;
pub mod limiter;
mod lock;
#[cfg(all(test, loom))]
mod models;
mod piece;
mod promise;
mod slot;
pub mod store;
mod striped;
mod sync;
pub mod variant;

pub use account::{Account, Kind, MAX, Refusal};
pub use counter::Counter;
pub use promise::Promise;
