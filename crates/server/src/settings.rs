//! The configuration in force, which clients may change while the server runs.

use crate::config::Config;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tidemark_log::Durability;

/// The configuration in force. Workers keep a copy and compare versions.
pub(crate) struct Settings {
    current: RwLock<Arc<Config>>,
    version: AtomicU64,
    /// Whether the durability mode is `always`. Separate, so that all workers see a change
    /// immediately without the lock.
    always_durable: AtomicBool,
}

impl Settings {
    pub(crate) fn new(config: Config) -> Settings {
        let always_durable = AtomicBool::new(config.durability == Durability::Always);
        Settings { current: RwLock::new(Arc::new(config)), version: AtomicU64::new(0), always_durable }
    }

    /// The configuration.
    pub(crate) fn current(&self) -> Arc<Config> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Version number, incremented by every change.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// Whether every change is synced before its reply.
    #[inline]
    pub(crate) fn is_always_durable(&self) -> bool {
        self.always_durable.load(Ordering::Acquire)
    }

    /// Changes the configuration: all of it or, on an error, nothing. Calls `announce` with the new
    /// one under the lock, so announcements arrive in the order of the changes.
    pub(crate) fn change<E>(
        &self,
        change: impl FnOnce(&mut Config) -> Result<(), E>,
        announce: impl FnOnce(&Config),
    ) -> Result<(), E> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let mut config = Config::clone(&current);
        change(&mut config)?;
        self.always_durable.store(config.durability == Durability::Always, Ordering::Release);
        announce(&config);
        *current = Arc::new(config);
        self.version.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}
