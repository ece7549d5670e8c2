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
use tokio::sync::oneshot;

/// The running sinks.
#[derive(Debug)]
pub struct Sinks {
    statuses: Vec<Arc<Status>>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Sinks {
    /// Starts the sinks.
    pub fn start(addresses: Vec<Address>, feed: &Arc<Feed>, log: &Arc<Log>) -> io::Result<Sinks> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let relays: Vec<Relay> =
            addresses.into_iter().map(|address| Relay::new(feed, log, address)).collect();
        let statuses = relays.iter().map(|relay| Arc::clone(&relay.status)).collect();
        let run = move || {
            let local = tokio::task::LocalSet::new();
            for relay in relays {
                local.spawn_local(run(relay));
            }
            // Messages in flight are found again at the next start.
            let _ = local.block_on(&runtime, stopped);
        };
        let thread = std::thread::Builder::new().name("tidemark-sinks".to_owned()).spawn(run)?;
        Ok(Sinks { statuses, stop, thread })
    }

    /// Returns the status of each sink, in the order in which they were given.
    pub fn statuses(&self) -> &[Arc<Status>] {
        &self.statuses
    }

    /// Stops the sinks. They deliver the rest after the next start.
    pub fn stop(self) {
        // The send fails if the thread has ended already.
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

async fn run(relay: Relay) {
    match relay.address.target.clone() {
        Target::JetStream(target) => Box::pin(relay.run::<JetStream>(&target)).await,
        Target::Kafka(target) => Box::pin(relay.run::<Kafka>(&target)).await,
    }
}
