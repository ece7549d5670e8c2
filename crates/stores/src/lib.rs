#![doc = include_str!("../README.md")]

mod deadlines;
#[cfg(feature = "log")]
mod log_store;
#[cfg(feature = "nats")]
mod nats_store;
#[cfg(feature = "pool")]
mod pool_journal;
#[cfg(feature = "postgres")]
mod postgres_store;
#[cfg(any(feature = "log", feature = "nats"))]
mod record;
#[cfg(feature = "redis")]
mod redis_store;
#[cfg(any(feature = "nats", feature = "postgres"))]
mod runner;
#[cfg(any(feature = "log", feature = "nats"))]
mod state;
#[cfg(any(feature = "log", feature = "nats", feature = "postgres", feature = "redis"))]
mod trouble;

pub use deadlines::Deadlines;
#[cfg(feature = "log")]
pub use log_store::{LogOptions, LogStore};
#[cfg(feature = "nats")]
pub use nats_store::{NatsOptions, NatsStore};
#[cfg(feature = "pool")]
pub use pool_journal::{OpenedPool, PoolJournal, PoolLogError, PoolLogOptions, PoolRecovery, SnapshotHealth};
#[cfg(feature = "postgres")]
pub use postgres_store::{PostgresOptions, PostgresStore};
#[cfg(feature = "redis")]
pub use redis_store::{RedisOptions, RedisStore};

/// The page of the book; its examples run as tests.
#[cfg(all(doctest, feature = "pool"))]
#[doc = include_str!("../../../docs/pools.md")]
mod book {}
