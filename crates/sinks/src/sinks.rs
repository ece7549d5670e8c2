//! All sinks of a server, on one separate thread, so that their waits delay nothing else.

use crate::address::{Address, Target};
use crate::jetstream::JetStream;
use crate::kafka::Kafka;
use crate::relay::Relay;
use crate::status::Status;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use tidemark_changes::Feed;
use tidemark_log::Log;
use tokio::sync::{oneshot, watch};

/// The running sinks.
#[derive(Debug)]
pub struct Sinks {
    statuses: Vec<Arc<Status>>,
    /// Whether they deliver.
    active: watch::Sender<bool>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Sinks {
    /// Starts the sinks. Unless they are active, they wait for [`Sinks::set_active`].
    pub fn start(
        addresses: Vec<Address>,
        feed: &Arc<Feed>,
        log: &Arc<Log>,
        is_active: bool,
    ) -> io::Result<Sinks> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let (active, activity) = watch::channel(is_active);
        let relays: Vec<Relay> =
            addresses.into_iter().map(|address| Relay::new(feed, log, address)).collect();
        let statuses = relays.iter().map(|relay| Arc::clone(&relay.status)).collect();
        let run = move || {
            let local = tokio::task::LocalSet::new();
            for relay in relays {
                local.spawn_local(run(relay, activity.clone()));
            }
            // Messages in flight are found again at the next start.
            let _ = local.block_on(&runtime, stopped);
        };
        let thread = std::thread::Builder::new().name("tidemark-sinks".to_owned()).spawn(run)?;
        Ok(Sinks { statuses, active, stop, thread })
    }

    /// Returns the status of each sink, in the order in which they were given.
    pub fn statuses(&self) -> &[Arc<Status>] {
        &self.statuses
    }

    /// Has the sinks deliver, or wait. Each that begins to deliver finds out what its target has; so of
    /// several servers with the same log, one at a time should be active. Does not block.
    pub fn set_active(&self, is_active: bool) {
        self.active.send_replace(is_active);
    }

    /// Stops the sinks. They deliver the rest after the next start.
    pub fn stop(self) {
        // The send fails if the thread has ended already.
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

async fn run(relay: Relay, active: watch::Receiver<bool>) {
    match relay.address.target.clone() {
        Target::JetStream(target) => Box::pin(relay.run::<JetStream>(&target, active)).await,
        Target::Kafka(target) => Box::pin(relay.run::<Kafka>(&target, active)).await,
    }
}
