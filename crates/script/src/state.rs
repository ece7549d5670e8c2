//! What an interpreter knows of the script that it runs.

use crate::caller::with_caller;
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// State of the running script.
#[derive(Debug)]
pub(crate) struct RunState {
    /// Why the script must end.
    killed: Cell<Option<&'static str>>,
    /// State of `math.random`.
    random: Cell<u64>,
}

/// The bits of the state of `lrand48`.
const RANDOM_BITS: u64 = (1 << 48) - 1;

/// Largest number of `lrand48`, which `math.random` divides by.
const RANDOM_MAX: u64 = i32::MAX as u64;

impl RunState {
    /// The state of a new interpreter: other random numbers than those of any other.
    pub(crate) fn new() -> Self {
        let random = RandomState::new().hash_one(()) & RANDOM_BITS;
        Self { killed: Cell::new(None), random: Cell::new(random) }
    }

    /// Begins a script, whose random numbers go on where those of the last one ended, as in Redis.
    pub(crate) fn begin(&self) {
        self.killed.set(None);
    }

    /// Why the script must end, if it must.
    pub(crate) fn killed(&self) -> Option<&'static str> {
        self.killed.get()
    }

    /// Asks the caller whether the script must end. Returns whether it must.
    pub(crate) fn looks_stopped(&self) -> bool {
        if self.killed.get().is_none()
            && let Some(Some(reason)) = with_caller(|caller| caller.interrupt())
        {
            self.killed.set(Some(reason));
        }
        self.killed.get().is_some()
    }

    /// Sets the state of the generator as `srand48` does.
    pub(crate) fn seed(&self, seed: i64) {
        self.random.set((u64::from(seed as u32) << 16) | 0x330e);
    }

    /// The next random number: from 0 to below 1, as Redis computes it.
    pub(crate) fn random(&self) -> f64 {
        let next = self.random.get().wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & RANDOM_BITS;
        self.random.set(next);
        let number = next >> 17;
        (number % RANDOM_MAX) as f64 / RANDOM_MAX as f64
    }
}
