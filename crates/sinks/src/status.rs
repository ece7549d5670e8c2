//! Status of a sink, for operators.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_changes::Follower;
use tidemark_log::Lsn;

/// State of a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// Not connected yet.
    #[default]
    Connecting,
    /// Delivering changes.
    Running,
    /// Retrying after an error.
    Retrying,
    /// Stopped by an error that only an operator can fix.
    Stopped,
    /// Waiting while another member of the cluster delivers.
    StandingBy,
}

impl State {
    /// Returns the name of the state.
    pub fn name(self) -> &'static str {
        match self {
            State::Connecting => "connecting",
            State::Running => "running",
            State::Retrying => "retrying",
            State::Stopped => "stopped",
            State::StandingBy => "standing-by",
        }
    }
}

/// Snapshot of a sink's status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// State of the sink.
    pub state: State,
    /// All selected changes up to this LSN have been delivered.
    pub position: Lsn,
    /// Messages delivered since the start.
    pub messages: u64,
    /// Errors since the start.
    pub errors: u64,
    /// The last error, even if it is resolved; empty if there was none.
    pub last_error: String,
}

/// Status of one sink, written by the sink and read by other threads.
#[derive(Debug)]
pub struct Status {
    name: String,
    inner: Mutex<StatusInner>,
}

#[derive(Debug, Default)]
struct StatusInner {
    state: State,
    passed_on: Lsn,
    messages: u64,
    errors: u64,
    last_error: String,
    /// The sink's follower, while no change that it has taken is in flight.
    idle: Option<Arc<Follower>>,
}

impl Status {
    pub(crate) fn new(name: String) -> Status {
        Status { name, inner: Mutex::default() }
    }

    /// Returns the sink's address, without secrets.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the current status.
    pub fn report(&self) -> Report {
        let inner = self.lock();
        // The position also covers records that were not selected.
        let read = inner.idle.as_ref().and_then(|follower| follower.caught_up_to());
        Report {
            state: inner.state,
            position: read.map_or(inner.passed_on, |read| read.max(inner.passed_on)),
            messages: inner.messages,
            errors: inner.errors,
            last_error: inner.last_error.clone(),
        }
    }

    /// Records that the sink is to deliver.
    pub(crate) fn wake(&self) {
        self.lock().state = State::Connecting;
    }

    /// Records that another member delivers.
    pub(crate) fn stand_by(&self) {
        let mut inner = self.lock();
        inner.idle = None;
        inner.state = State::StandingBy;
    }

    /// Sets the state to running, after record `seen`. Returns whether the sink was retrying.
    pub(crate) fn run(&self, seen: Lsn) -> bool {
        let mut inner = self.lock();
        inner.passed_on = seen;
        std::mem::replace(&mut inner.state, State::Running) == State::Retrying
    }

    /// Records that nothing is in flight: from now on the follower's position is the sink's.
    pub(crate) fn rest(&self, follower: &Arc<Follower>) {
        self.lock().idle = Some(Arc::clone(follower));
    }

    /// Records that changes are in flight.
    pub(crate) fn work(&self) {
        self.lock().idle = None;
    }

    /// Records the delivery of messages up to `lsn`.
    pub(crate) fn pass(&self, messages: usize, lsn: Lsn) {
        let mut inner = self.lock();
        inner.passed_on = lsn;
        inner.messages += messages as u64;
    }

    /// Records an error. Returns whether the state is new.
    pub(crate) fn fail(&self, state: State, error: String) -> bool {
        let mut inner = self.lock();
        let is_new = inner.state != state;
        inner.errors += 1;
        inner.last_error = error;
        inner.idle = None;
        inner.state = state;
        is_new
    }

    fn lock(&self) -> MutexGuard<'_, StatusInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_shows_what_the_sink_reported() {
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
        status.stand_by();
        assert_eq!(status.report().state.name(), "standing-by");
        status.wake();
        assert_eq!(status.report().state, State::Connecting);
        assert!(!status.run(Lsn(9)), "it was not retrying");
    }
}
