//! Spans and events for `tracing`, with the feature of that name. Without it every function here is
//! empty.
//!
//! | span or event | level | target | fields |
//! |---|---|---|---|
//! | span `circuit`: one run of a circuit that has something to do | debug | `tidemark_circuit` | `name` |
//! | event `failure`: a callback panicked | error | `tidemark_circuit` | `subject`, `operation`, `message` |
//! | event `restart`: a failed receptor was replaced by a fresh one | debug | `tidemark_circuit` | `subject`, `failures` |
//! | event `quarantine`: a pipe's receptor was dropped after failures | debug | `tidemark_circuit` | `subject`, `failures` |
//! | event `overflow`: an emission was dropped by a full queue | debug | `tidemark_circuit` | `subject` |
//! | event `close`: a circuit was closed | debug | `tidemark_circuit` | `subject` |
//!
//! The code of a `tracing` subscriber runs outside the circuit's context: its emissions are inputs,
//! and its panics do not reach the circuit, as with all user code. What circuits do on the thread
//! during such a call is not reported, as this could recurse without end.

#[cfg(feature = "tracing")]
pub(crate) use with::{Listener, closed, failed, overflowed, quarantined, restarted, run};

#[cfg(not(feature = "tracing"))]
pub(crate) use without::{Listener, closed, failed, overflowed, quarantined, restarted, run};

#[cfg(feature = "tracing")]
mod with {
    use std::cell::Cell;

    use tracing::dispatcher::{self, Dispatch};
    use tracing::span::EnteredSpan;
    use tracing::{Level, debug, debug_span, enabled, error};

    use crate::execution::context::call_outside;
    use crate::failure::failure_report::Failure;
    use crate::identity::subject::Subject;

    thread_local! {
        /// Whether a subscriber is being called on this thread.
        static CALLING: Cell<bool> = const { Cell::new(false) };
    }

    /// Calls a subscriber, unless one is being called already.
    fn guarded(call: impl FnOnce()) {
        if !CALLING.replace(true) {
            call_outside(call);
            CALLING.set(false);
        }
    }

    /// The span of a run, until it is dropped.
    pub(crate) struct Span(Option<EnteredSpan>);

    impl Drop for Span {
        fn drop(&mut self) {
            if let Some(span) = self.0.take() {
                guarded(|| drop(span));
            }
        }
    }

    /// The `tracing` context of a thread, for another thread that works on its behalf.
    pub(crate) struct Listener {
        /// The subscriber, and the thread's current span. None during a call of the subscriber.
        subscriber: Option<(Dispatch, tracing::Span)>,
    }

    impl Listener {
        /// Returns the context of this thread.
        pub(crate) fn here() -> Self {
            let mut subscriber = None;
            guarded(|| subscriber = Some((dispatcher::get_default(Clone::clone), tracing::Span::current())));
            Self { subscriber }
        }

        /// Runs `work` with this context, on a thread without one.
        pub(crate) fn hears<R>(self, work: impl FnOnce() -> R) -> R {
            let Some((subscriber, span)) = self.subscriber else {
                CALLING.set(true);
                return work();
            };
            let _default = dispatcher::set_default(&subscriber);
            let mut entered = None;
            guarded(|| entered = Some(span.entered()));
            let _span = Span(entered);
            work()
        }
    }

    #[inline]
    pub(crate) fn run(circuit: &Subject, has_work: impl FnOnce() -> bool) -> Span {
        let mut span = None;
        guarded(|| {
            // Drivers often find empty queues.
            if enabled!(target: "tidemark_circuit", Level::DEBUG) && has_work() {
                let name = circuit.name();
                span =
                    Some(debug_span!(target: "tidemark_circuit", "circuit", name = %name.path()).entered());
            }
        });
        Span(span)
    }

    #[cold]
    pub(crate) fn failed(failure: &Failure) {
        guarded(|| {
            error!(
                target: "tidemark_circuit",
                subject = %failure.subject(),
                operation = failure.operation(),
                message = failure.message(),
            );
        });
    }

    #[cold]
    pub(crate) fn quarantined(subject: &Subject, failures: u32) {
        guarded(|| debug!(target: "tidemark_circuit", %subject, failures, "quarantine"));
    }

    #[cold]
    pub(crate) fn restarted(subject: &Subject, failures: u32) {
        guarded(|| debug!(target: "tidemark_circuit", %subject, failures, "restart"));
    }

    #[cold]
    pub(crate) fn overflowed(subject: &Subject) {
        guarded(|| debug!(target: "tidemark_circuit", %subject, "overflow"));
    }

    #[cold]
    pub(crate) fn closed(subject: &Subject) {
        guarded(|| debug!(target: "tidemark_circuit", %subject, "close"));
    }
}

#[cfg(not(feature = "tracing"))]
mod without {
    use crate::failure::failure_report::Failure;
    use crate::identity::subject::Subject;

    pub(crate) struct Span;

    pub(crate) struct Listener;

    impl Listener {
        #[inline]
        pub(crate) fn here() -> Self {
            Self
        }

        #[inline]
        #[allow(clippy::unused_self, reason = "as where there is one")]
        pub(crate) fn hears<R>(self, work: impl FnOnce() -> R) -> R {
            work()
        }
    }

    #[inline]
    pub(crate) fn run(_: &Subject, _: impl FnOnce() -> bool) -> Span {
        Span
    }

    #[inline]
    pub(crate) fn failed(_: &Failure) {}

    #[inline]
    pub(crate) fn quarantined(_: &Subject, _: u32) {}

    #[inline]
    pub(crate) fn restarted(_: &Subject, _: u32) {}

    #[inline]
    pub(crate) fn overflowed(_: &Subject) {}

    #[inline]
    pub(crate) fn closed(_: &Subject) {}
}
