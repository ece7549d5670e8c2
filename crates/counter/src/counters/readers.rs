//! Lock-free readers, and the grace period after which what they may have seen is freed (as in
//! RCU).
//!
//! A lookup by name follows pointers that another thread may be removing. The reader marks itself
//! [inside](enter) in a word of its own, and leaves afterwards; both are ordinary stores. A thread
//! that removes something first makes it unreachable, and then [waits](wait) until all readers that
//! were inside have left.

use crate::slot;
use crate::sync::{AtomicU64, Ordering, hint, thread};
use std::marker::PhantomData;
use tidemark_barrier as barrier;

/// A thread's word, alone in its cache lines. Odd while the thread is inside; never repeats a
/// value.
#[repr(align(128))]
struct Word(AtomicU64);

#[cfg(not(loom))]
static WORDS: [Word; slot::SLOTS] = [const { Word(AtomicU64::new(0)) }; slot::SLOTS];

#[cfg(loom)]
loom::lazy_static! {
    static ref WORDS: [Word; slot::SLOTS] = std::array::from_fn(|_| Word(AtomicU64::new(0)));
}

/// While this exists, nothing is freed that was reachable when it was made.
pub(crate) struct Inside {
    word: &'static Word,
    is_odd_at: u64,
    /// Not `Send`: the word is the thread's own.
    _thread: PhantomData<*const ()>,
}

/// Enters. `None` if the thread has no slot or is inside already: the caller then takes a lock.
#[inline]
pub(crate) fn enter() -> Option<Inside> {
    enter_as(slot::current()?)
}

/// As [`enter`], for a given slot.
#[inline]
pub(crate) fn enter_as(slot: usize) -> Option<Inside> {
    let word = &WORDS[slot];
    let before = word.0.load(Ordering::Relaxed);
    if before % 2 == 1 {
        return None;
    }
    // Release ordering, because the waiting thread may see only this store and miss that the thread
    // left in between. What the thread did inside before must be ordered before it too.
    word.0.store(before + 1, Ordering::Release);
    barrier::light();
    Some(Inside { word, is_odd_at: before + 1, _thread: PhantomData })
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        self.word.0.store(self.is_odd_at + 1, Ordering::Release);
    }
}

/// Waits until all readers have left that may have found what is unreachable now. Must not be
/// called by a thread that is inside.
pub(crate) fn wait() {
    barrier::heavy();
    let words: &[Word; slot::SLOTS] = &WORDS;
    for word in words {
        let seen = word.0.load(Ordering::Acquire);
        let mut looks = 0_u32;
        while seen % 2 == 1 && word.0.load(Ordering::Acquire) == seen {
            looks = looks.saturating_add(1);
            if looks < 100 && !cfg!(loom) {
                hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_writer_waits_for_readers_inside() {
        let (is_inside, has_left) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|threads| {
            threads.spawn(|| {
                let inside = enter().unwrap();
                assert!(enter().is_none());
                is_inside.store(true, Ordering::SeqCst);
                (0..50).for_each(|_| thread::yield_now());
                has_left.store(true, Ordering::SeqCst);
                drop(inside);
                assert!(enter().is_some());
            });
            while !is_inside.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            wait();
            assert!(has_left.load(Ordering::SeqCst));
        });
    }
}

/// All interleavings of a reader and a thread that removes, explored by loom.
#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicBool;

    /// What a reader finds is not changed before every reader that may have found it has left.
    #[test]
    fn loom_no_reader_uses_what_is_removed_before_a_wait() {
        loom::model(|| {
            let (is_there, thing) = (Arc::new(AtomicBool::new(true)), Arc::new(UnsafeCell::new(())));
            let (is_found, found) = (is_there.clone(), thing.clone());
            let reader = loom::thread::spawn(move || {
                for _ in 0..2 {
                    let inside = enter_as(1).expect("it is not inside");
                    if is_found.load(Ordering::Acquire) {
                        // SAFETY: loom reports concurrent writers.
                        found.with(|thing| {
                            assert_eq!(std::ptr::NonNull::new(thing.cast_mut()).is_some(), true)
                        });
                    }
                    drop(inside);
                }
            });
            is_there.store(false, Ordering::Release);
            wait();
            thing.with_mut(|_| ());
            reader.join().unwrap();
        });
    }
}
