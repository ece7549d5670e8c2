//! Recording and replaying the inputs of a circuit.
#![allow(unsafe_code, reason = "see the parent module")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use super::state::Machine;
use crate::execution::event::Event;
use crate::identity::subject::Subject;
use crate::journal::Recorder;
use crate::sync::Ordering;

impl Machine {
    /// Sets the time of the next inputs, instead of the clock's. For circuits that their owner
    /// runs, between two runs.
    pub(crate) fn set_time(&self, nanos: u64) {
        if let Some(running) = self.enter() {
            // SAFETY: we are in the context.
            unsafe {
                (*self.inside.get()).attendance.get_or_insert_default().given_time = Some(nanos);
            }
            drop(running);
        }
    }

    /// Reserves the circuit for a recorder, which is passed to [`Machine::begin_recording`] next.
    /// Returns false if there is one.
    pub(crate) fn reserve_recording(&self) -> bool {
        !self.recorded.swap(true, Ordering::AcqRel)
    }

    /// Attaches the recorder that the circuit is reserved for: it records inputs from then on.
    pub(crate) fn begin_recording(&self, recorder: Arc<dyn Recorder>) {
        self.set_recorder(|_| true, Some(recorder));
    }

    /// Detaches this recorder, which is the active one.
    pub(crate) fn end_recording(&self, recorder: Arc<dyn Recorder>) {
        // Another recorder may have been attached inside the circuit before this job runs.
        let is_active =
            move |active: &Arc<dyn Recorder>| ptr::addr_eq(Arc::as_ptr(active), Arc::as_ptr(&recorder));
        self.set_recorder(is_active, None);
        self.recorded.store(false, Ordering::Release);
    }

    /// Replaces the recorder if there is none, or if `gives_way` returns true for the active one.
    fn set_recorder(
        &self,
        gives_way: impl FnOnce(&Arc<dyn Recorder>) -> bool + Send + 'static,
        recorder: Option<Arc<dyn Recorder>>,
    ) {
        self.submit(Event::Other, move || {
            Self::with_inside(|machine| {
                let machine = machine.expect("jobs run in the circuit's context");
                // SAFETY: in the context; recorders are dropped after the borrow.
                let before = unsafe {
                    let place = &mut (*machine.inside.get()).attendance;
                    let attendance = place.get_or_insert_default();
                    if !attendance.recorder.as_ref().is_none_or(gives_way) {
                        return;
                    }
                    let before = std::mem::replace(&mut attendance.recorder, recorder);
                    place.take_if(|attendance| attendance.is_over());
                    before
                };
                drop(before);
            });
        });
    }

    /// As [`Machine::record_as_emission`].
    ///
    /// # Safety
    ///
    /// The pipe with this subject takes an `E`.
    pub(crate) unsafe fn record_as_emission_to<E>(&self, pipe: &Subject, value: &mut E) {
        // SAFETY: as the caller says.
        self.record(|recorder, time| unsafe { recorder.emission(time, pipe, ptr::from_mut(value).cast()) });
    }

    /// Reports to the recorder, if there is one, an input that cannot be recorded. In the context
    /// only.
    pub(crate) fn record_gap(&self, what: &str) {
        self.record(|recorder, time| recorder.gap(time, what));
    }

    /// Reports the input that is being handled to the recorder, if there is one. In the context
    /// only.
    ///
    /// This calls user code: writers and values. Its panics are reported and caught here, so an
    /// input is handled whether it could be recorded or not.
    pub(super) fn record(&self, report: impl FnOnce(&dyn Recorder, u64)) {
        debug_assert!(self.is_inside());
        // SAFETY: in the context. The recorder is cloned, because the called code may change the
        // circuit's.
        let attendance = unsafe { &(*self.inside.get()).attendance };
        let recorder = attendance.as_ref().and_then(|attendance| attendance.recorder.clone());
        let Some(recorder) = recorder else { return };
        let time = self.stimulus_nanos();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| report(&*recorder, time))) {
            self.report("record", panic);
        }
    }

    /// Returns whether the input that is being handled made the circuit emit to itself. In the
    /// context only.
    pub(crate) fn has_caused(&self) -> bool {
        debug_assert!(self.is_inside());
        // SAFETY: in the context.
        unsafe { !(*self.inside.get()).transit.is_empty() }
    }

    /// Sets whether the circuit's own close is left to the journal that is replayed. For circuits
    /// that their owner runs, between two runs; returns false if the circuit is running.
    pub(crate) fn set_replayed(&self, replayed: bool) -> bool {
        let running = self.enter();
        if running.is_some() {
            // SAFETY: we are in the context.
            unsafe { (*self.inside.get()).replayed = replayed };
        }
        running.is_some()
    }
}
