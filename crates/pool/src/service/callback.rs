//! A function that is called once, stored in place if it is small, so a draw by callback does not
//! allocate.
#![allow(
    unsafe_code,
    reason = "a closure of any type lies in place; a box for each draw costs more than the draw"
)]

use super::request::Outcome;
use std::mem::{ManuallyDrop, MaybeUninit};

/// Maximum size of a closure stored in place, in words; a larger one is boxed.
const WORDS: usize = 4;

type InlineClosure = [MaybeUninit<usize>; WORDS];

/// A function that is called at most once.
pub(super) struct Callback {
    /// Holds a value of the type that `finish` is instantiated for.
    place: InlineClosure,
    /// Takes the value out of the place, and calls it if there is an outcome. Call it only once.
    finish: unsafe fn(*mut InlineClosure, Option<Outcome>),
}

impl Callback {
    pub(super) fn new(function: impl FnOnce(Outcome) + Send + 'static) -> Self {
        fn fits<F>(_: &F) -> bool {
            size_of::<F>() <= size_of::<InlineClosure>() && align_of::<F>() <= align_of::<InlineClosure>()
        }
        if fits(&function) {
            Self::in_place(function)
        } else {
            let boxed: Box<dyn FnOnce(Outcome) + Send> = Box::new(function);
            Self::in_place(boxed)
        }
    }

    fn in_place<F: FnOnce(Outcome) + Send + 'static>(function: F) -> Self {
        assert!(
            size_of::<F>() <= size_of::<InlineClosure>() && align_of::<F>() <= align_of::<InlineClosure>()
        );
        let mut place: InlineClosure = [MaybeUninit::uninit(); WORDS];
        // SAFETY: the place is as large as the value and aligned for it, as was just asserted.
        unsafe { place.as_mut_ptr().cast::<F>().write(function) };
        Self { place, finish: finish::<F> }
    }

    pub(super) fn call(self, outcome: Outcome) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the place holds the value, and `this` is not dropped, so the value is taken out
        // once.
        unsafe { (this.finish)(&raw mut this.place, Some(outcome)) };
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        // SAFETY: the place holds the value, because `call` prevents this drop.
        unsafe { (self.finish)(&raw mut self.place, None) };
    }
}

/// # Safety
/// `place` holds an `F`, whose ownership passes to this function.
unsafe fn finish<F: FnOnce(Outcome)>(place: *mut InlineClosure, outcome: Option<Outcome>) {
    // SAFETY: guaranteed by the caller.
    let function = unsafe { place.cast::<F>().read() };
    if let Some(outcome) = outcome {
        function(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::CallError;
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// Calls some functions and drops others; all of them release what they captured.
    #[test]
    fn functions_of_all_sizes_are_called_once_or_dropped() {
        fn of_size<const N: usize>(expected_calls: &mut u64) {
            let calls = Arc::new(AtomicU64::new(0));
            for is_called in [true, false, true] {
                let (counted, ballast) = (Arc::clone(&calls), [N; N]);
                let callback = Callback::new(move |outcome| {
                    assert_eq!(outcome, Err(CallError::Stopped));
                    assert!(ballast.iter().all(|&word| word == N));
                    counted.fetch_add(1, Relaxed);
                });
                if is_called {
                    callback.call(Err(CallError::Stopped));
                }
            }
            *expected_calls += 2;
            assert_eq!((calls.load(Relaxed), Arc::strong_count(&calls)), (2, 1));
        }
        let mut calls = 0;
        of_size::<0>(&mut calls);
        of_size::<3>(&mut calls);
        of_size::<4>(&mut calls);
        of_size::<40>(&mut calls);
        assert_eq!(calls, 8);
    }

    #[test]
    fn a_function_that_needs_more_alignment_is_kept_elsewhere() {
        #[repr(align(64))]
        struct Wide(u8);
        let (wide, seen) = (Wide(7), Arc::new(AtomicU64::new(0)));
        let noted = Arc::clone(&seen);
        Callback::new(move |_| {
            let wide = &wide;
            assert_eq!(std::ptr::from_ref(wide).addr() % 64, 0);
            noted.store(u64::from(wide.0), Relaxed);
        })
        .call(Err(CallError::Stopped));
        assert_eq!(seen.load(Relaxed), 7);
    }
}
