//! How a machine handles and reports failures in its context.
#![allow(unsafe_code, reason = "see the parent module")]

use std::any::Any;

use super::state::Machine;
use crate::execution::node::{self, Header};
use crate::failure::failure_report::{Failure, Trouble};
use crate::failure::supervision::{Remedy, Restarts, Supervision};
use crate::identity::subject::Subject;
use crate::observe::telemetry;

impl Machine {
    /// Returns whether a component of the circuit was already notified of a failure that the
    /// current input led to. In the context only.
    pub(crate) fn has_reported_failure(&self) -> bool {
        debug_assert!(self.is_inside());
        // SAFETY: in the context.
        unsafe { (*self.inside.get()).has_reported }
    }

    /// Marks that a component of the circuit is notified of a failure next. In the context only.
    pub(crate) fn mark_failure_reported(&self) {
        debug_assert!(self.is_inside());
        // SAFETY: in the context, and the borrow ends here.
        unsafe { (*self.inside.get()).has_reported = true };
    }

    /// Applies the receptor's supervision to its panic, and reports it.
    ///
    /// # Safety
    ///
    /// In the context; the node exists and is not being run.
    pub(crate) unsafe fn report_panic(&self, node: *mut Header, panic: Box<dyn Any + Send>) {
        // SAFETY: the node exists, and no borrow is held while user code runs.
        let (count, subject, supervision) =
            unsafe { ((*node).count_failure(), (*node).subject().clone(), (*node).supervision()) };
        let failure = Failure::of_panic(subject, "receive", panic);
        // SAFETY: as above.
        let restarts = unsafe { (*node).care().and_then(|care| care.restarts()) };
        // SAFETY: as above.
        let own = if unsafe { (*node).is_built_in() } { Some(Supervision::Resume) } else { supervision };
        let mut remedy = self.remedy(own, count, restarts);
        let mut trouble = None;
        if remedy == Remedy::Restarted {
            // SAFETY: as the caller says.
            trouble = unsafe { node::renew_node(node) }.err();
        }
        if remedy == Remedy::Quarantined || trouble.is_some() {
            remedy = Remedy::Quarantined;
            // SAFETY: as the caller says.
            unsafe { node::empty_node(node) };
        }
        self.report_remedied(failure.was(count, remedy), trouble);
    }

    /// Decides what to do about failure number `count` of a component. See [`Supervision::remedy`].
    pub(crate) fn remedy(
        &self,
        own: Option<Supervision>,
        count: u32,
        restarts: Option<&mut Restarts>,
    ) -> Remedy {
        self.supervises(own).remedy(count, restarts, || self.stimulus_nanos())
    }

    /// The supervision of a component whose own is `own`.
    pub(crate) fn supervises(&self, own: Option<Supervision>) -> Supervision {
        own.unwrap_or_else(|| self.failures.supervision())
    }

    /// Reports a failure and its remedy, and why the remedy failed, if it did.
    pub(crate) fn report_remedied(&self, failure: Failure, trouble: Option<Trouble>) {
        self.failures.report(&failure);
        if let Some(trouble) = trouble {
            let subject = failure.subject().clone();
            self.failures.report(&Failure::of_restart(subject, failure.count(), trouble));
        }
        match failure.remedy() {
            Remedy::Resumed => {}
            Remedy::Restarted => telemetry::restarted(failure.subject(), failure.count()),
            Remedy::Quarantined => telemetry::quarantined(failure.subject(), failure.count()),
        }
    }

    /// Reports panic number `count` of a callback that continues unchanged, to the circuit in whose
    /// context this runs, or that it has stepped out of.
    #[cold]
    pub(crate) fn report_inside(
        subject: &Subject,
        operation: &'static str,
        count: u32,
        panic: Box<dyn Any + Send>,
    ) {
        let machine = Self::entered_here().expect("callbacks are called in a circuit's context");
        let failure = Failure::of_panic(subject.clone(), operation, panic);
        machine.failures.report(&failure.was(count, Remedy::Resumed));
    }

    /// Reports a panic in the circuit's own work.
    pub(super) fn report(&self, operation: &'static str, panic: Box<dyn Any + Send>) {
        let count = u32::try_from(self.failures.count().saturating_add(1)).unwrap_or(u32::MAX);
        let failure = Failure::of_panic(self.subject.clone(), operation, panic);
        self.failures.report(&failure.was(count, Remedy::Resumed));
    }
}
