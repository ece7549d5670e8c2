#![doc = include_str!("../README.md")]

mod account;
mod base;
mod cell;
mod compact;
mod counter;
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
