//! Threads that look something up without a lock, and who waits until they have finished.
//!
//! Whoever looks up a counter by its name follows pointers that another thread may be taking away. It says before, in a word of its own
//! thread, that it is [`inside`](enter), and afterwards that it is not; these are ordinary stores. Who takes something away first makes
//! sure that nobody finds it any more, and then [waits](wait) until everybody has left who was inside: nobody has it now.

use crate::slot;
use crate::sync::{AtomicU64, Ordering, hint, thread};
use std::marker::PhantomData;
use tidemark_barrier as barrier;

/// A thread's word, alone in its cache lines. Odd while the thread is inside, and never the same again.
#[repr(align(128))]
struct Word(AtomicU64);

#[cfg(not(loom))]
static WORDS: [Word; slot::SLOTS] = [const { Word(AtomicU64::new(0)) }; slot::SLOTS];

#[cfg(loom)]
loom::lazy_static! {
    static ref WORDS: [Word; slot::SLOTS] = std::array::from_fn(|_| Word(AtomicU64::new(0)));
}

/// While there is one of these, nothing is freed that could be found when it was made.
pub(crate) struct Inside {
    word: &'static Word,
    is_odd_at: u64,
    /// It is its thread's own.
    _thread: PhantomData<*const ()>,
}

/// Goes inside. `None` if the thread has no slot or is inside already: then whatever is looked up takes a lock.
#[inline]
pub(crate) fn enter() -> Option<Inside> {
    enter_as(slot::current()?)
}

/// As [`enter`], of the thread that has this slot.
#[inline]
pub(crate) fn enter_as(slot: usize) -> Option<Inside> {
    let word = &WORDS[slot];
    let before = word.0.load(Ordering::Relaxed);
    if before % 2 == 1 {
        return None;
    }
    // Releasing, because who waits may see this and not that the thread has been outside in between: what it did inside before must have
    // happened all the same.
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

/// Returns when everybody has left who may have found what cannot be found any more. To be called by threads that are not inside.
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
    fn who_waits_does_so_for_those_who_are_inside() {
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

/// Every interleaving of one who looks and one who takes away, explored by loom.
#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicBool;

    /// What is found inside is not changed before everybody has left who may have found it.
    #[test]
    fn loom_nobody_uses_what_is_taken_away_behind_a_wait() {
        loom::model(|| {
            let (is_there, thing) = (Arc::new(AtomicBool::new(true)), Arc::new(UnsafeCell::new(())));
            let (is_found, found) = (is_there.clone(), thing.clone());
            let reader = loom::thread::spawn(move || {
                for _ in 0..2 {
                    let inside = enter_as(1).expect("it is not inside");
                    if is_found.load(Ordering::Acquire) {
                        // Loom reports whoever writes at the same time.
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
