//! How a sink is doing, for operators.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_changes::Follower;
use tidemark_log::Lsn;

/// What a sink is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// It has not been connected yet.
    #[default]
    Connecting,
    /// It passes changes on.
    Running,
    /// Something went wrong, and it tries again.
    Retrying,
    /// Something went wrong that only an operator can repair.
    Stopped,
}

impl State {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            State::Connecting => "connecting",
            State::Running => "running",
            State::Retrying => "retrying",
            State::Stopped => "stopped",
        }
    }
}

/// A sink at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What it is about.
    pub state: State,
    /// Everything up to here has been passed on, as far as it was selected.
    pub position: Lsn,
    /// Messages that were passed on since the start.
    pub messages: u64,
    /// How often something went wrong since the start.
    pub errors: u64,
    /// What went wrong last, even if all is well again; empty if nothing did.
    pub last_error: String,
}

/// One sink's status: the sink writes it, others look.
#[derive(Debug)]
pub struct Status {
    name: String,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    state: State,
    passed_on: Lsn,
    messages: u64,
    errors: u64,
    last_error: String,
    /// Who follows the log for it, while nothing that was taken is on its way.
    idle: Option<Arc<Follower>>,
}

impl Status {
    pub(crate) fn new(name: String) -> Status {
        Status { name, inner: Mutex::default() }
    }

    /// Which sink it is: its address without anything secret.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the sink is doing now.
    pub fn report(&self) -> Report {
        let inner = self.lock();
        // What was not selected is behind it too.
        let read = inner.idle.as_ref().and_then(|follower| follower.caught_up_to());
        Report {
            state: inner.state,
            position: read.map_or(inner.passed_on, |read| read.max(inner.passed_on)),
            messages: inner.messages,
            errors: inner.errors,
            last_error: inner.last_error.clone(),
        }
    }

    /// It is connected and goes on behind `seen`; whether something had been wrong.
    pub(crate) fn run(&self, seen: Lsn) -> bool {
        let mut inner = self.lock();
        inner.passed_on = seen;
        std::mem::replace(&mut inner.state, State::Running) == State::Retrying
    }

    /// All that was taken has been passed on; from now on the follower's place is the sink's.
    pub(crate) fn rest(&self, follower: &Arc<Follower>) {
        self.lock().idle = Some(Arc::clone(follower));
    }

    /// Something has been taken and is on its way.
    pub(crate) fn work(&self) {
        self.lock().idle = None;
    }

    /// Messages have been passed on, up to `lsn`.
    pub(crate) fn pass(&self, messages: usize, lsn: Lsn) {
        let mut inner = self.lock();
        inner.passed_on = lsn;
        inner.messages += messages as u64;
    }

    /// Something went wrong; whether it is the first time since all was well.
    pub(crate) fn fail(&self, state: State, error: String) -> bool {
        let mut inner = self.lock();
        let is_new = inner.state != state;
        inner.errors += 1;
        inner.last_error = error;
        inner.idle = None;
        inner.state = state;
        is_new
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_tells_what_the_sink_has_told_it() {
        let status = Status::new("nats://host/S".to_owned());
        assert_eq!(status.report().state, State::Connecting);
        assert!(status.fail(State::Retrying, "refused".to_owned()));
        assert!(!status.fail(State::Retrying, "refused".to_owned()), "it has been said");
        assert!(status.run(Lsn(7)));
        status.pass(2, Lsn(9));
        let expected = Report {
            state: State::Running,
            position: Lsn(9),
            messages: 2,
            errors: 2,
            last_error: "refused".to_owned(),
        };
        assert_eq!((status.name(), status.report()), ("nats://host/S", expected));
        assert!(status.fail(State::Stopped, "a gap".to_owned()));
        assert_eq!(status.report().state.name(), "stopped");
    }
}
