//! A lock that is the word which it guards: who has it has taken the word's content out.
//!
//! It is held for tens of nanoseconds, or for one barrier, and never while anything is waited for; so those who find it taken spin
//! for a moment, and then let others run.

use crate::piece::Piece;
use crate::sync::{AtomicU64, Ordering, hint, thread};
use std::time::Duration;

/// Aborts the process if the lock's holder panics. The word would stay locked, and every thread
/// that acquires it would wait forever.
#[must_use = "it is to be put back before the lock ends"]
pub(crate) struct AbortOnUnwind;

impl AbortOnUnwind {
    /// Ends the guard: the content has been put back.
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

/// Takes the content out, unless that lies elsewhere for good: then it is the sign that says so, and nothing is locked.
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

/// Puts a content back.
#[inline]
pub(crate) fn release(word: &AtomicU64, content: u64) {
    assert!(content != Piece::LOCKED, "a word is given back as the sign that it is locked");
    word.store(content, Ordering::Release);
}

/// Returns when the word is not locked, or has been for long.
#[cold]
fn wait(word: &AtomicU64) -> u64 {
    if !cfg!(loom) {
        for round in 0..100 {
            match round {
                0..40 => hint::spin_loop(),
                40..90 => thread::yield_now(),
                // Whoever has it has been put aside, and there may be others of less urgency than this thread before it.
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
