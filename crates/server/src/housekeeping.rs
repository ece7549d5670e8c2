//! Work that is due at a time, on behalf of no client: the worker that is awake first does it.

use std::sync::atomic::{AtomicU64, Ordering};
use tidemark_engine::{DUE_WORK, Engine};

/// Delay of work that appends to the log while that has no room, in milliseconds.
const ROOM_PAUSE_MS: u64 = 100;
/// Delay of work while a script runs that may take long, in milliseconds.
const SCRIPT_PAUSE_MS: u64 = 10;

/// When each kind of work may run next, in milliseconds since 1970.
#[derive(Default)]
pub(crate) struct Housekeeping {
    earliest_ms: [AtomicU64; DUE_WORK.len()],
}

impl Housekeeping {
    /// When [`Housekeeping::run`] has work next, not before `held_until_ms`; both in milliseconds since
    /// 1970.
    pub(crate) fn next(&self, engine: &Engine, held_until_ms: u64) -> Option<u64> {
        (0..DUE_WORK.len()).filter_map(|index| self.next_of(index, engine, held_until_ms)).min()
    }

    /// Does the work that is due, unless another worker is doing so.
    pub(crate) fn run(&self, engine: &Engine, held_until_ms: u64, now_us: u64) {
        let now_ms = now_us / 1000;
        for (index, work) in DUE_WORK.iter().enumerate() {
            if self.next_of(index, engine, held_until_ms).is_none_or(|at| at > now_ms) {
                continue;
            }
            let earliest = &self.earliest_ms[index];
            if work.needs_room && !engine.log().has_room() {
                earliest.store(now_ms + ROOM_PAUSE_MS, Ordering::Relaxed);
                continue;
            }
            // It would wait for the locks of the script.
            if engine.scripts().running().any() {
                earliest.store(now_ms + SCRIPT_PAUSE_MS, Ordering::Relaxed);
                continue;
            }
            let before = earliest.load(Ordering::Relaxed);
            let next = now_ms + work.pause_ms;
            // Only one worker wins this run.
            if earliest.compare_exchange(before, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                (work.run)(engine, now_us, work.budget);
            }
        }
    }

    fn next_of(&self, index: usize, engine: &Engine, held_until_ms: u64) -> Option<u64> {
        let earliest = self.earliest_ms[index].load(Ordering::Relaxed);
        Some((DUE_WORK[index].next)(engine)?.max(earliest).max(held_until_ms))
    }
}
