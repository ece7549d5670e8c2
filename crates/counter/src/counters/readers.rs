//! Threads that look something up without a lock, and who waits until they have finished.
//!
//! Whoever looks up a counter by its name follows pointers that another thread may be taking away. It says before, in a word of its own
//! thread, that it is [`inside`](enter), and afterwards that it is not; these are ordinary stores. Who takes something away first makes
//! sure that nobody finds it any more, and then [waits](wait) until everybody has left who was inside: nobody has it now.

use crate::slot;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use tidemark_barrier as barrier;

/// A thread's word, alone in its cache lines. Odd while the thread is inside, and never the same again.
#[repr(align(128))]
struct Word(AtomicU64);

static WORDS: [Word; slot::SLOTS] = [const { Word(AtomicU64::new(0)) }; slot::SLOTS];

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
    let word = &WORDS[slot::current()?];
    let before = word.0.load(Ordering::Relaxed);
    if before % 2 == 1 {
        return None;
    }
    word.0.store(before + 1, Ordering::Relaxed);
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
    for word in &WORDS {
        let seen = word.0.load(Ordering::Acquire);
        let mut looks = 0_u32;
        while seen % 2 == 1 && word.0.load(Ordering::Acquire) == seen {
            looks += 1;
            if looks < 100 { std::hint::spin_loop() } else { thread::yield_now() }
        }
    }
}

#[cfg(test)]
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
