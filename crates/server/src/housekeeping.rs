//! Work that is due at a time, on behalf of no client: the worker that is awake first does it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tidemark_engine::Engine;

/// Delay of work that appends to the log while that has no room, in milliseconds.
const ROOM_PAUSE_MS: u64 = 100;

/// A kind of work.
struct Work {
    /// When it is due next, in milliseconds since 1970.
    next: fn(&Engine) -> Option<u64>,
    /// Does what is due, at most so much of it.
    run: fn(&Engine, now_us: u64, budget: usize) -> Option<u64>,
    /// Most items of one run.
    budget: usize,
    /// Least time between two runs, in milliseconds.
    pause_ms: u64,
    /// Whether it waits for room in the log by itself, or is not to begin without.
    needs_room: bool,
}

const EXPIRY: usize = 0;

const WORKS: [Work; 3] = [
    // A thousand keys take about a millisecond.
    Work {
        next: Engine::next_deadline,
        run: Engine::expire_due,
        budget: 1_000,
        pause_ms: 10,
        needs_room: false,
    },
    Work { next: Engine::next_commit, run: Engine::commit_due, budget: 1_000, pause_ms: 1, needs_room: true },
    Work { next: Engine::next_tick, run: Engine::tick_due, budget: 1_000, pause_ms: 1, needs_room: true },
];

/// When each kind of work may run next, and whether expiry is on.
pub(crate) struct Housekeeping {
    /// Milliseconds since 1970.
    earliest_ms: [AtomicU64; WORKS.len()],
    /// Whether expired keys are removed before a client meets them.
    pub(crate) active_expiry: AtomicBool,
}

impl Default for Housekeeping {
    fn default() -> Self {
        Self { earliest_ms: Default::default(), active_expiry: AtomicBool::new(true) }
    }
}

impl Housekeeping {
    /// When [`Housekeeping::run`] has work next, not before `held_until_ms`; both in milliseconds since
    /// 1970.
    pub(crate) fn next(&self, engine: &Engine, held_until_ms: u64) -> Option<u64> {
        (0..WORKS.len()).filter_map(|index| self.next_of(index, engine, held_until_ms)).min()
    }

    /// Does the work that is due, unless another worker is doing so.
    pub(crate) fn run(&self, engine: &Engine, held_until_ms: u64, now_us: u64) {
        let now_ms = now_us / 1000;
        for (index, work) in WORKS.iter().enumerate() {
            if self.next_of(index, engine, held_until_ms).is_none_or(|at| at > now_ms) {
                continue;
            }
            let earliest = &self.earliest_ms[index];
            if work.needs_room && !engine.log().has_room() {
                earliest.store(now_ms + ROOM_PAUSE_MS, Ordering::Relaxed);
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
        if index == EXPIRY && !self.active_expiry.load(Ordering::Relaxed) {
            return None;
        }
        let earliest = self.earliest_ms[index].load(Ordering::Relaxed);
        Some((WORKS[index].next)(engine)?.max(earliest).max(held_until_ms))
    }
}
