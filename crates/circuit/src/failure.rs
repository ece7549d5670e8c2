//! Failures of user code that were kept from spreading: what is known of them, and who is told.

use std::any::Any;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::subject::Subject;
use crate::supervision::{Remedy, Supervision};
use crate::sync::unpoisoned;
use crate::telemetry;

/// A panic in a callback, which cost the value that the callback was given, and what was done about it.
///
/// Its text says everything, for a log: `cortex:cortex/circuit:plant/pipe:valve#5 failed to receive: 7 is too much (2 times,
/// restarted)`.
#[derive(Clone, Debug)]
pub struct Failure {
    subject: Subject,
    operation: &'static str,
    message: Arc<str>,
    count: u32,
    remedy: Remedy,
}

impl Failure {
    pub(crate) fn of_panic(subject: Subject, operation: &'static str, panic: Box<dyn Any + Send>) -> Self {
        Self { subject, operation, message: message_of(panic), count: 1, remedy: Remedy::Resumed }
    }

    /// That something could not be made anew, and why.
    pub(crate) fn of_restart(subject: Subject, count: u32, trouble: Trouble) -> Self {
        let operation = "restart";
        let failure = match trouble {
            Trouble::Panic(panic) => Self::of_panic(subject, operation, panic),
            Trouble::Refusal(message) => {
                Self { subject, operation, message: message.into(), count, remedy: Remedy::Resumed }
            }
        };
        failure.was(count, Remedy::Quarantined)
    }

    /// The failure with how many there were and what was done about it.
    pub(crate) fn was(mut self, count: u32, remedy: Remedy) -> Self {
        debug_assert!(count > 0, "this one is counted");
        self.count = count;
        self.remedy = remedy;
        self
    }

    /// Whose callback failed.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// What was being done:
    ///
    /// - `receive`: a pipe or a receptor was given a value;
    /// - `clone`: a pipe of a conduit copied a value for one who has subscribed, who goes without;
    /// - `subscribe`, `close`: a subscriber, or the end of a subscription, was told of a pipe or of the end;
    /// - `update`: a port was to be changed;
    /// - `emit`: a receptor emitted to a circuit whose queue was full, and would have waited for room in a circle; the value was dropped,
    ///   and the subject is the circuit of the receptor. How threads meet decides whether that happens, so a replay does not repeat it;
    /// - `restart`: what had failed was to be made anew;
    /// - `record`: a value, or the writer of a [`crate::Recording`], was to tell of an input;
    /// - `run`: the circuit did something of its own.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// What the panic said.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How often this callback has failed until now, this time included. Of `run` and `record`, which are nobody's callbacks: how many
    /// failures of all kinds the circuit has counted.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// What was done about it.
    pub fn remedy(&self) -> Remedy {
        self.remedy
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, operation, message, count, remedy } = self;
        let times = if *count == 1 { "time" } else { "times" };
        write!(f, "{subject:?} failed to {operation}: {message} ({count} {times}, {remedy})")
    }
}

/// Why something could not be made anew.
pub(crate) enum Trouble {
    Panic(Box<dyn Any + Send>),
    Refusal(String),
}

/// Who hears of failures.
pub(crate) struct Hook {
    /// Whether it still wants to. Calls no code of users.
    pub(crate) is_wanted: Box<dyn Fn() -> bool + Send>,
    /// Tells it of one; false if it does not want to any more.
    pub(crate) tell: Box<dyn FnMut(&Failure) -> bool + Send>,
}

/// A circuit's account of failures.
#[derive(Default)]
pub(crate) struct Failures {
    count: AtomicU64,
    /// None if circuits do what they do unless something else is said. Most do, and should be small.
    supervision: Option<Box<Supervision>>,
    /// As seldom.
    #[allow(clippy::box_collection, reason = "three words less in circuits without hooks")]
    hooks: Mutex<Option<Box<Vec<Hook>>>>,
}

impl Failures {
    pub(crate) fn new(supervision: Supervision) -> Self {
        let supervision = (supervision != Supervision::default()).then(|| Box::new(supervision));
        Self { supervision, ..Self::default() }
    }

    /// What is done about those who have no supervision of their own.
    pub(crate) fn supervision(&self) -> Supervision {
        self.supervision.as_deref().copied().unwrap_or_default()
    }

    /// Has `hook` told of each failure, in the circuit's context. Now and then forgets those that want to hear nothing more.
    pub(crate) fn add_hook(&self, hook: Hook) {
        let mut place = self.hooks();
        let hooks = place.get_or_insert_default();
        let mut unwanted = Vec::new();
        if hooks.len() == hooks.capacity() {
            let looked_at = hooks.len();
            unwanted.extend(hooks.extract_if(.., |hook| !(hook.is_wanted)()));
            // Before they are looked at again, half as many have to come as there were.
            hooks.reserve(looked_at / 2 + 1);
        }
        hooks.push(hook);
        drop(place);
        // Not under the lock: what they held may add hooks as it is dropped.
        drop(unwanted);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn report(&self, failure: &Failure) {
        self.count.fetch_add(1, Ordering::Relaxed);
        telemetry::failed(failure);
        let Some(mut hooks) = self.hooks().take() else { return };
        // Not under the lock: what hooks call and drop may add hooks. Those come behind, and hear of the next failure.
        hooks.retain_mut(|hook| {
            let mut wants_more = true;
            shielded(|| wants_more = (hook.tell)(failure));
            wants_more
        });
        let mut place = self.hooks();
        hooks.extend(place.take().into_iter().flat_map(|added| *added));
        *place = Some(hooks).filter(|hooks| !hooks.is_empty());
    }

    #[allow(clippy::box_collection, reason = "see the field")]
    fn hooks(&self) -> MutexGuard<'_, Option<Box<Vec<Hook>>>> {
        unpoisoned(self.hooks.lock())
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Adds a hook when it is dropped.
    struct Late(Arc<Failures>, mpsc::Sender<&'static str>);

    impl Drop for Late {
        fn drop(&mut self) {
            let sender = self.1.clone();
            self.0.add_hook(hook(move |_| sender.send("late").is_ok()));
        }
    }

    fn hook(tell: impl FnMut(&Failure) -> bool + Send + 'static) -> Hook {
        Hook { is_wanted: Box::new(|| true), tell: Box::new(tell) }
    }

    #[test]
    fn hooks_that_nobody_wants_any_more_take_no_room() {
        let failures = Failures::default();
        for number in 0..10_000 {
            let is_wanted = Box::new(move || number % 1000 == 0);
            failures.add_hook(Hook { is_wanted, tell: Box::new(|_| true) });
        }
        assert!(failures.hooks().as_ref().is_some_and(|hooks| (10..100).contains(&hooks.capacity())));
    }

    fn failure() -> Failure {
        Failure::of_panic(Subject::cortex().clone(), "receive", Box::new("broken"))
    }

    #[test]
    fn a_hook_and_what_it_drops_may_add_hooks() {
        let failures = Arc::new(Failures::default());
        let (sender, told) = mpsc::channel();
        let late = Late(Arc::clone(&failures), sender.clone());
        failures.add_hook(hook(move |_| {
            let _dropped_with_the_hook = &late;
            false
        }));
        let first = sender.clone();
        failures.add_hook(hook(move |_| first.send("first").is_ok()));
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || {
            failures.report(&failure());
            failures.report(&failure());
            done.send(()).expect("somebody waits");
        });
        is_done.recv_timeout(Duration::from_secs(30)).expect("reporting comes to an end");
        drop(sender);
        assert_eq!(told.iter().collect::<Vec<_>>(), ["first", "first", "late"]);
    }
}
