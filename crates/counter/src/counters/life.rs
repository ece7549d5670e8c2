//! Use-after-free detection for models; a no-op otherwise.

/// Part of memory that is shared without a lock. Each use and the end of the memory's life are
/// reported to it.
///
/// Under loom every use must happen before the end, in the sense of the memory model. Memory that
/// has ended is not freed in models, so a late use is a detected error and not undefined behaviour.
#[cfg(not(loom))]
#[derive(Debug)]
pub(super) struct Life;

#[cfg(not(loom))]
#[allow(clippy::unused_self, reason = "the other form uses it")]
impl Life {
    pub(super) fn begin() -> Self {
        Self
    }

    #[inline]
    pub(super) fn is_used(&self) {}

    /// Whether the memory may be freed.
    #[inline]
    pub(super) fn ends(&self) -> bool {
        true
    }
}

#[cfg(loom)]
pub(super) struct Life(loom::cell::UnsafeCell<bool>);

#[cfg(loom)]
#[allow(unsafe_code, reason = "loom's cells are read and written by pointers")]
impl Life {
    pub(super) fn begin() -> Self {
        Self(loom::cell::UnsafeCell::new(true))
    }

    pub(super) fn is_used(&self) {
        // SAFETY: loom reports concurrent writers.
        self.0.with(|is_there| assert!(unsafe { *is_there }, "used behind its end"));
    }

    pub(super) fn ends(&self) -> bool {
        // SAFETY: loom reports concurrent readers and writers.
        self.0.with_mut(|is_there| unsafe {
            assert!(*is_there, "given back twice");
            *is_there = false;
        });
        false
    }
}
