//! The configuration in force, which clients may change while the server runs.

use crate::config::Config;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tidemark_log::Durability;

/// The configuration in force. Workers keep a copy and compare versions.
pub(crate) struct Settings {
    current: RwLock<Arc<Config>>,
    version: AtomicU64,
    /// Whether this node is a member of a group. Fixed for a run.
    is_member: bool,
    /// See [`Settings::waits_for_commit`]. Separate, so that all workers see a change immediately
    /// without the lock.
    waits_for_commit: AtomicBool,
}

impl Settings {
    /// Creates the settings of a node, which may be a member of a group.
    pub(crate) fn new(config: Config, is_member: bool) -> Settings {
        let waits_for_commit = AtomicBool::new(must_wait(&config, is_member));
        let current = RwLock::new(Arc::new(config));
        Settings { current, version: AtomicU64::new(0), is_member, waits_for_commit }
    }

    /// The configuration.
    pub(crate) fn current(&self) -> Arc<Config> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Version number, incremented by every change.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// Whether everything that a client is told waits until it is committed: its own changes, and
    /// the changes of other clients that an answer or a message may show.
    ///
    /// Alone, a node waits in mode `always`. A member of a group waits in every mode, because
    /// another leader may take back what is not committed. Costs one load.
    #[inline]
    pub(crate) fn waits_for_commit(&self) -> bool {
        self.waits_for_commit.load(Ordering::Acquire)
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
        self.waits_for_commit.store(must_wait(&config, self.is_member), Ordering::Release);
        announce(&config);
        *current = Arc::new(config);
        self.version.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// The rule of [`Settings::waits_for_commit`].
fn must_wait(config: &Config, is_member: bool) -> bool {
    is_member || config.durability == Durability::Always
}
