//! A lock that is the word it guards: the holder has taken the content out.
//!
//! It is held for tens of nanoseconds, or for one barrier, and never across a wait. Waiters
//! therefore spin briefly and then yield.

use crate::piece::Piece;
use crate::sync::{AtomicU64, Ordering, hint, thread};
use std::time::Duration;

/// Aborts the process if the lock's holder panics. Otherwise the word would stay locked, and every
/// thread that acquires it would wait forever.
#[must_use = "it is to be put back before the lock ends"]
pub(crate) struct AbortOnUnwind;

impl AbortOnUnwind {
    /// Disarms the guard: the content has been written back.
    pub(crate) fn disarm(self) {
        std::mem::forget(self);
    }
}

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        // The panic hook has printed the reason.
        std::process::abort();
    }
}

/// Locks the word and returns its content. Returns `ELSEWHERE` without locking if the content has
/// moved for good.
#[inline]
pub(crate) fn acquire(word: &AtomicU64) -> u64 {
    let mut content = word.load(Ordering::Acquire);
    loop {
        match content {
            Piece::ELSEWHERE => return content,
            Piece::LOCKED => content = wait(word),
            _ => {
                match word.compare_exchange_weak(content, Piece::LOCKED, Ordering::SeqCst, Ordering::Acquire)
                {
                    Ok(_) => return content,
                    Err(now) => content = now,
                }
            }
        }
    }
}

/// Stores the content and unlocks the word.
#[inline]
pub(crate) fn release(word: &AtomicU64, content: u64) {
    assert!(content != Piece::LOCKED, "a word is given back as the sign that it is locked");
    word.store(content, Ordering::Release);
}

/// Waits until the word is not locked, and returns it; gives up after a bounded number of rounds.
#[cold]
fn wait(word: &AtomicU64) -> u64 {
    if !cfg!(loom) {
        for round in 0..100 {
            match round {
                0..40 => hint::spin_loop(),
                40..90 => thread::yield_now(),
                // The holder may have been preempted, and threads of lower priority than this one
                // may run before it.
                _ => pause(),
            }
            let content = word.load(Ordering::Acquire);
            if content != Piece::LOCKED {
                return content;
            }
        }
    }
    thread::yield_now();
    word.load(Ordering::Acquire)
}

fn pause() {
    std::thread::sleep(Duration::from_micros(50));
}
