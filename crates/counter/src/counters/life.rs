//! What models see of memory that others may still look at when it is given back. Elsewhere it is nothing.

/// In a piece of memory that is shared without a lock: whoever uses it says so, and whoever gives it back.
///
/// Under loom every use must have happened before the end, in the sense of the memory model, and none comes behind it. Memory that has
/// ended stays there then, so that a use behind the end is an error that is found, and not one that is undefined.
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

    /// Whether the memory may be given back to the allocator.
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
        // SAFETY: loom reports whoever writes at the same time.
        self.0.with(|is_there| assert!(unsafe { *is_there }, "used behind its end"));
    }

    pub(super) fn ends(&self) -> bool {
        // SAFETY: loom reports whoever reads or writes at the same time.
        self.0.with_mut(|is_there| unsafe {
            assert!(*is_there, "given back twice");
            *is_there = false;
        });
        false
    }
}
