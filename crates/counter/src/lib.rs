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
/// The lock-free parts only; the rest depends on stores and clocks.
#[cfg(all(test, loom))]
#[allow(dead_code, reason = "what models do not use")]
mod counters {
    mod key;
    mod life;
    mod readers;
    mod table;
}
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
#[cfg_attr(loom, allow(dead_code, reason = "counters by name use it"))]
mod together;

pub use account::{Account, Kind, MAX, Refusal};
pub use counter::Counter;
pub use ledger::Move;
pub use promise::Promise;

/// The page of the book; its examples run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/counters.md")]
mod book {}
