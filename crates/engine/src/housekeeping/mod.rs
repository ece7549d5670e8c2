//! Work that becomes due without a command: expiry of keys and fields, reservations of pools, commits of counters,
//! time that moves on for watched reads, compression of series.
//!
//! ```text
//! a type says which key is due when, and which command does it: KeyWork
//!            │ one walk over the shards: expire_due, commit_due
//!            ▼
//!        DUE_WORK ◄── tick_due: times of watched reads
//!            ▲
//!            └── the server's driver, whenever a thread is awake
//! ```

pub(crate) mod counter_commits;
pub(crate) mod expiry;
mod fields;
mod key_work;
mod reservations;
mod sealing;
pub(crate) mod series_memory;

use crate::engine::Engine;

/// Work that is due at some time and that no client has asked for. Its driver needs nothing else.
#[derive(Debug, Clone, Copy)]
pub struct DueWork {
    /// Lower bound of when it is due next, in milliseconds since 1970; `None` if it never is.
    pub next: fn(&Engine) -> Option<u64>,
    /// Does what is due at a time, in microseconds since 1970, at most so many items. Returns when it is
    /// due next.
    pub run: fn(&Engine, u64, usize) -> Option<u64>,
    /// Items of a run that take about a millisecond.
    pub budget: usize,
    /// Least time between two runs, in milliseconds.
    pub pause_ms: u64,
    /// Whether a run is not to begin while the log has no room.
    pub needs_room: bool,
}

/// All work of this kind.
pub const DUE_WORK: [DueWork; 3] = [
    DueWork {
        next: Engine::next_expiry,
        run: Engine::expire_due,
        budget: 1_000,
        pause_ms: 10,
        needs_room: false,
    },
    DueWork {
        next: Engine::next_commit,
        run: Engine::commit_due,
        budget: 1_000,
        pause_ms: 1,
        needs_room: true,
    },
    DueWork { next: Engine::next_tick, run: Engine::tick_due, budget: 1_000, pause_ms: 1, needs_room: true },
];
