//! Sinks that forward the log's changes, if the program was built with the feature `sinks`.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_changes::Feed;
use tidemark_log::{Log, Lsn};

/// Uninhabited: the program was built without sinks.
#[cfg(not(feature = "sinks"))]
type Running = std::convert::Infallible;
#[cfg(feature = "sinks")]
type Running = tidemark_sinks::Sinks;

/// Status of one sink.
#[derive(Debug)]
pub(crate) struct SinkFigures {
    /// Its address without secrets.
    pub(crate) name: String,
    pub(crate) state: &'static str,
    /// LSN up to which all changes have been forwarded.
    pub(crate) position: u64,
    /// Committed records after `position`.
    pub(crate) lag: u64,
    pub(crate) messages: u64,
    pub(crate) errors: u64,
    pub(crate) last_error: String,
}

/// A server's sinks.
#[derive(Debug, Default)]
pub(crate) struct Sinks(Mutex<Option<Running>>);

impl Sinks {
    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why the address of a sink is invalid; `None` if it is valid.
#[cfg(feature = "sinks")]
pub(crate) fn objection(address: &str) -> Option<String> {
    let parsed: Result<tidemark_sinks::Address, _> = address.parse();
    parsed.err().map(|error| error.to_string())
}

#[cfg(feature = "sinks")]
impl Sinks {
    /// Starts a sink for each address. They deliver if `leads` says so.
    pub(crate) fn start(
        &self,
        addresses: &[String],
        feed: &Arc<Feed>,
        log: &Arc<Log>,
        leads: impl Fn() -> bool,
    ) -> io::Result<()> {
        // The configuration has refused invalid addresses.
        let addresses: Vec<_> = addresses.iter().filter_map(|address| address.parse().ok()).collect();
        if !addresses.is_empty() {
            let mut running = self.lock();
            *running = Some(Running::start(addresses, feed, log, leads())?);
        }
        Ok(())
    }

    /// Has the sinks deliver if `leads` says so, and else wait.
    pub(crate) fn lead_changed(&self, leads: impl Fn() -> bool) {
        let running = self.lock();
        // Asked under the lock: the last call sets what holds then.
        running.iter().for_each(|running| running.set_active(leads()));
    }

    /// Stops all sinks.
    pub(crate) fn stop(&self) {
        let running = self.lock().take();
        running.into_iter().for_each(Running::stop);
    }

    /// Status of each sink, relative to a log that is committed up to `committed`.
    pub(crate) fn figures(&self, committed: Lsn) -> Vec<SinkFigures> {
        let running = self.lock();
        let statuses = running.iter().flat_map(Running::statuses);
        statuses
            .map(|status| {
                let report = status.report();
                SinkFigures {
                    name: status.name().to_owned(),
                    state: report.state.name(),
                    position: report.position.0,
                    lag: committed.0.saturating_sub(report.position.0),
                    messages: report.messages,
                    errors: report.errors,
                    last_error: report.last_error,
                }
            })
            .collect()
    }
}

#[cfg(not(feature = "sinks"))]
pub(crate) fn objection(_address: &str) -> Option<String> {
    Some("cannot be used: this program was built without its feature `sinks`".to_owned())
}

#[cfg(not(feature = "sinks"))]
impl Sinks {
    #[expect(clippy::unused_self, reason = "the same with the feature")]
    pub(crate) fn start(
        &self,
        _: &[String],
        _: &Arc<Feed>,
        _: &Arc<Log>,
        _: impl Fn() -> bool,
    ) -> io::Result<()> {
        Ok(())
    }

    #[expect(clippy::unused_self, reason = "the same with the feature")]
    pub(crate) fn lead_changed(&self, _: impl Fn() -> bool) {}

    pub(crate) fn stop(&self) {
        self.lock().take();
    }

    #[expect(clippy::unused_self, reason = "the same with the feature")]
    pub(crate) fn figures(&self, _: Lsn) -> Vec<SinkFigures> {
        Vec::new()
    }
}
