//! Failures of user code that were kept from spreading: what is known of them, and what is done about them.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::subject::Subject;
use crate::telemetry;

/// A panic in a callback, which cost the value that the callback was given and nothing else.
#[derive(Clone, Debug)]
pub struct Failure {
    subject: Subject,
    operation: &'static str,
    message: Arc<str>,
}

impl Failure {
    pub(crate) fn of_panic(subject: Subject, operation: &'static str, panic: Box<dyn Any + Send>) -> Self {
        Self { subject, operation, message: message_of(panic) }
    }

    /// Whose callback failed.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// What the callback was called for: `receive`, `subscribe`, `close` …
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// What the panic said.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// What a circuit does about a receptor that panics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Supervision {
    /// It loses the value and is given the next one.
    #[default]
    Resume,
    /// After this many failures a pipe's receptor is dropped, and the pipe drops what it is given.
    Quarantine {
        /// How many failures are enough, at least one.
        after: u32,
    },
}

/// Who hears of failures; false if it does not want to any more.
type Hook = Box<dyn FnMut(&Failure) -> bool + Send>;

/// A circuit's account of failures.
#[derive(Default)]
pub(crate) struct Failures {
    count: AtomicU64,
    quarantine_after: AtomicU32,
    hooks: Mutex<Vec<Hook>>,
}

impl Failures {
    pub(crate) fn supervise(&self, supervision: Supervision) {
        let after = match supervision {
            Supervision::Resume => 0,
            Supervision::Quarantine { after } => after.max(1),
        };
        self.quarantine_after.store(after, Ordering::Relaxed);
    }

    pub(crate) fn quarantines_after(&self, failures: u32) -> bool {
        let after = self.quarantine_after.load(Ordering::Relaxed);
        after != 0 && failures >= after
    }

    /// Has `hook` told of each failure, in the circuit's context.
    pub(crate) fn add_hook(&self, hook: Hook) {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner).push(hook);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn report(&self, failure: &Failure) {
        self.count.fetch_add(1, Ordering::Relaxed);
        telemetry::failed(failure);
        let mut hooks = self.hooks.lock().unwrap_or_else(PoisonError::into_inner);
        hooks.retain_mut(|hook| {
            let mut wants_more = true;
            shielded(|| wants_more = hook(failure));
            wants_more
        });
    }
}

/// Calls code of users whose failure nobody is told of: `drop`, above all. Never unwinds.
pub(crate) fn shielded(call: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
        drop_payload(panic);
    }
}

/// What a panic has said.
pub(crate) fn message_of(panic: Box<dyn Any + Send>) -> Arc<str> {
    let message = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).into(),
        (None, Some(text)) => text.as_str().into(),
        (None, None) => "a panic without a message".into(),
    };
    drop_payload(panic);
    message
}

/// Drops what a panic has thrown, which may throw again.
fn drop_payload(panic: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        // There is no end to this but here.
        mem::forget(again);
    }
}
