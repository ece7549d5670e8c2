//! Counted references to machines: a machine ends with the last one.
#![allow(unsafe_code, reason = "see the parent module")]

use std::ops::Deref;
use std::ptr::NonNull;

use super::Machine;
use crate::sync::Ordering;

/// A counted reference to a machine.
pub(crate) struct MachineRef(pub(super) NonNull<Machine>);

// SAFETY: a machine may be used and dropped from any thread.
unsafe impl Send for MachineRef {}
// SAFETY: as above.
unsafe impl Sync for MachineRef {}

impl MachineRef {
    /// A reference to the machine in whose context this runs.
    pub(crate) fn inside() -> Self {
        Machine::with_inside(|machine| machine.expect("in a circuit's context").to_ref())
    }

    /// The pointer holds the reference from now on.
    pub(crate) fn into_raw(self) -> NonNull<Machine> {
        std::mem::ManuallyDrop::new(self).0
    }

    /// # Safety
    ///
    /// The pointer came from [`MachineRef::into_raw`], and this is its one way back.
    pub(crate) unsafe fn from_raw(raw: NonNull<Machine>) -> Self {
        Self(raw)
    }
}

impl Deref for MachineRef {
    type Target = Machine;

    #[inline]
    fn deref(&self) -> &Machine {
        // SAFETY: a counted reference keeps the machine.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for MachineRef {
    fn clone(&self) -> Self {
        self.to_ref()
    }
}

impl Drop for MachineRef {
    fn drop(&mut self) {
        // What the driver has to be told after this reference is gone must outlive the machine.
        let last_words = self.driver.on_abandoned();
        match self.references.fetch_sub(1, Ordering::AcqRel) {
            1 => self.free(),
            2 => {
                if let Some(tell) = last_words {
                    tell.tell();
                }
            }
            _ => {}
        }
    }
}

impl MachineRef {
    #[cold]
    fn free(&self) {
        if self.driver.is_run_by_waiters() && self.has_work() && !self.has_ended() {
            // Nobody will wait any more, so what was accepted is handled now; then it is closed, and this comes again.
            self.references.store(1, Ordering::Relaxed);
            let again = Self(self.0);
            if let Some(mut running) = again.enter() {
                running.run(usize::MAX, u64::MAX);
                running.end();
            }
            return;
        }
        self.followers.gone();
        // SAFETY: this was the last reference, so nobody else is here, and no node has handles.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
