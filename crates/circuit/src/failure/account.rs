//! Number of a circuit's failures, and the hooks that are notified of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::failure::failure_report::Failure;
use crate::failure::supervision::Supervision;
use crate::failure::thrown::shielded;
use crate::observe::telemetry;
use crate::sync::unpoisoned;

/// A callback for failures.
pub(crate) struct Hook {
    /// Returns whether the hook is still needed. Calls no user code.
    pub(crate) is_wanted: Box<dyn Fn() -> bool + Send>,
    /// Notifies the hook of a failure; returns false if the hook is not needed any more.
    pub(crate) report: Box<dyn FnMut(&Failure) -> bool + Send>,
}

/// Failures of a circuit.
#[derive(Default)]
pub(crate) struct Failures {
    count: AtomicU64,
    /// None for the default, which most circuits have and which should be small.
    supervision: Option<Box<Supervision>>,
    /// Rarely set, likewise.
    #[allow(clippy::box_collection, reason = "three words less in circuits without hooks")]
    hooks: Mutex<Option<Box<Vec<Hook>>>>,
}

impl Failures {
    pub(crate) fn new(supervision: Supervision) -> Self {
        let supervision = (supervision != Supervision::default()).then(|| Box::new(supervision));
        Self { supervision, ..Self::default() }
    }

    /// The supervision of components that have none of their own.
    pub(crate) fn supervision(&self) -> Supervision {
        self.supervision.as_deref().copied().unwrap_or_default()
    }

    /// Adds a hook, which is called for each failure in the circuit's context. From time to time
    /// removes those not needed any more.
    pub(crate) fn add_hook(&self, hook: Hook) {
        let mut place = self.hooks();
        let hooks = place.get_or_insert_default();
        let mut unwanted = Vec::new();
        if hooks.len() == hooks.capacity() {
            let looked_at = hooks.len();
            unwanted.extend(hooks.extract_if(.., |hook| !(hook.is_wanted)()));
            // At least half as many must be added as were scanned before the next scan.
            hooks.reserve(looked_at / 2 + 1);
        }
        hooks.push(hook);
        drop(place);
        // Not under the lock: dropping them may add hooks.
        drop(unwanted);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn report(&self, failure: &Failure) {
        self.count.fetch_add(1, Ordering::Relaxed);
        telemetry::failed(failure);
        let Some(mut hooks) = self.hooks().take() else { return };
        // Not under the lock: hooks and their drops may add hooks. Those are appended, and called
        // from the next failure on.
        hooks.retain_mut(|hook| {
            let mut wants_more = true;
            shielded(|| wants_more = (hook.report)(failure));
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::identity::subject::Subject;

    /// Adds a hook when it is dropped.
    struct Late(Arc<Failures>, mpsc::Sender<&'static str>);

    impl Drop for Late {
        fn drop(&mut self) {
            let sender = self.1.clone();
            self.0.add_hook(hook(move |_| sender.send("late").is_ok()));
        }
    }

    fn hook(report: impl FnMut(&Failure) -> bool + Send + 'static) -> Hook {
        Hook { is_wanted: Box::new(|| true), report: Box::new(report) }
    }

    #[test]
    fn dropped_hooks_take_no_memory() {
        let failures = Failures::default();
        for number in 0..10_000 {
            let is_wanted = Box::new(move || number % 1000 == 0);
            failures.add_hook(Hook { is_wanted, report: Box::new(|_| true) });
        }
        assert!(failures.hooks().as_ref().is_some_and(|hooks| (10..100).contains(&hooks.capacity())));
    }

    fn failure() -> Failure {
        Failure::of_panic(Subject::cortex().clone(), "receive", Box::new("broken"))
    }

    #[test]
    fn a_hook_and_what_it_drops_may_add_hooks() {
        let failures = Arc::new(Failures::default());
        let (sender, reports) = mpsc::channel();
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
            done.send(()).expect("the receiver waits");
        });
        is_done.recv_timeout(Duration::from_secs(30)).expect("reporting comes to an end");
        drop(sender);
        assert_eq!(reports.iter().collect::<Vec<_>>(), ["first", "first", "late"]);
    }
}
