#![doc = include_str!("../README.md")]

mod account;
mod counter;
mod promise;
pub mod store;

pub use account::{Account, Kind, MAX, Refusal};
pub use counter::Counter;
pub use promise::Promise;
