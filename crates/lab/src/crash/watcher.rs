//! The subscriber: it processes emissions one by one, crashes or loses its server, and comes back with the last position that
//! it has processed.

use super::options::{CrashKind, CrashOptions};
use super::progress::Progress;
use crate::target::Target;
use crate::watch::answer::{Emission, Push, Resumed, Watched};
use crate::watch::delivery::{Delivery, Receipt, Start};
use crate::watch::subscriber::{Subscriber, SubscriberError};
use std::collections::HashMap;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// How soon a server that is gone is tried again.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);

/// A client with one subscription for each key.
pub(super) struct Watcher<'a> {
    options: &'a CrashOptions,
    target: &'a Target,
    keys: &'a [String],
    progress: &'a Progress,
    subscriber: Subscriber,
    /// When the connection was begun that is used now.
    dialled_at: Instant,
    positions: Vec<Position>,
    /// Which key a subscription is for.
    key_of: HashMap<Vec<u8>, usize>,
    has_crashed: bool,
    received: Received,
}

/// How far a subscription has been processed: what a real client keeps together with its effects.
struct Position {
    subscription: Vec<u8>,
    lsn: u64,
    seq: u64,
}

/// What a watcher has to say at the end.
#[derive(Default)]
pub(super) struct Received {
    pub(super) starts: Vec<Start>,
    pub(super) receipts: Vec<Receipt>,
    /// From the crash to the first emission after it.
    pub(super) recovery: Option<Duration>,
    /// Answers to EMITRECONNECT other than OK with the number that was due, in words.
    pub(super) wrong_answers: Vec<String>,
    /// How often all subscriptions were resumed.
    pub(super) resumptions: u64,
    /// Subscriptions that the server has ended.
    pub(super) ended: u64,
}

impl<'a> Watcher<'a> {
    /// Connects and watches all keys.
    pub(super) fn subscribe(
        options: &'a CrashOptions,
        target: &'a Target,
        keys: &'a [String],
        progress: &'a Progress,
    ) -> Result<Self, SubscriberError> {
        let dialled_at = Instant::now();
        let mut subscriber = Subscriber::connect(target, options.wait.max_wait)?;
        let (mut positions, mut key_of, mut received) = (Vec::new(), HashMap::new(), Received::default());
        for (index, key) in keys.iter().enumerate() {
            let Watched { subscription, lsn, seq } = subscriber.watch(key)?;
            key_of.insert(subscription.clone(), index);
            received.starts.push(Start { lsn, seq });
            positions.push(Position { subscription, lsn, seq });
        }
        Ok(Watcher {
            options,
            target,
            keys,
            progress,
            subscriber,
            dialled_at,
            positions,
            key_of,
            has_crashed: false,
            received,
        })
    }

    /// Receives until everything that was written has come, or does not come any more.
    pub(super) fn run(mut self, ready: &SyncSender<()>) -> anyhow::Result<Received> {
        // No thread waits any more if the run has failed.
        let _ = ready.send(());
        let mut last_arrival = Instant::now();
        while !self.progress.has_failed() {
            if self.is_to_crash() {
                self.crash()?;
            }
            match self.subscriber.next(self.options.wait.poll_interval) {
                // A client that has crashed meanwhile does not process it.
                Ok(Some(_)) if self.is_to_crash() => {}
                Ok(Some(push)) => {
                    self.take(push);
                    last_arrival = Instant::now();
                }
                Ok(None) if !self.progress.writer_is_done() => last_arrival = Instant::now(),
                Ok(None) => {
                    if self.has_everything() || last_arrival.elapsed() > self.options.wait.max_wait {
                        break;
                    }
                }
                Err(error) if error.is_passing() => self.reconnect()?,
                Err(error) => return Err(error.into()),
            }
        }
        self.unwatch()?;
        Ok(self.received)
    }

    fn is_to_crash(&self) -> bool {
        !self.has_crashed && self.progress.client_is_to_crash()
    }

    /// Loses everything but its positions. Where the server lives on, emissions are on their way at that moment.
    fn crash(&mut self) -> anyhow::Result<()> {
        self.has_crashed = true;
        let alone = self.options.scenario == CrashKind::Client;
        if alone {
            std::thread::sleep(self.options.wait.poll_interval);
        }
        self.subscriber.disconnect();
        if alone {
            std::thread::sleep(self.options.away);
            self.progress.note_crash(Instant::now());
        }
        self.reconnect()
    }

    /// Connects as soon as there is a server, and resumes every subscription.
    fn reconnect(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + self.options.reconnect_patience();
        loop {
            match self.resume() {
                Ok(()) => return Ok(()),
                Err(error) => {
                    let goes_on =
                        error.is_passing() && Instant::now() < deadline && !self.progress.has_failed();
                    anyhow::ensure!(goes_on, "the subscriber finds no server: {error}");
                    std::thread::sleep(RETRY_INTERVAL);
                }
            }
        }
    }

    fn resume(&mut self) -> Result<(), SubscriberError> {
        self.dialled_at = Instant::now();
        self.subscriber = Subscriber::connect(self.target, self.options.wait.max_wait)?;
        for (key, position) in self.keys.iter().zip(&self.positions) {
            let answer = self.subscriber.resume(key, &position.subscription, position.lsn)?;
            if answer != (Resumed::Ok { next: position.seq + 1 }) {
                let (lsn, seq) = (position.lsn, position.seq);
                self.received
                    .wrong_answers
                    .push(format!("{key} after lsn {lsn}, seq {seq} was answered {answer:?}"));
            }
        }
        self.received.resumptions += 1;
        Ok(())
    }

    fn take(&mut self, push: Push) {
        let emission = match push {
            Push::Emission(emission) => emission,
            Push::Stale { .. } => {
                self.received.ended += 1;
                return;
            }
            Push::Other => return,
        };
        if self.received.recovery.is_none()
            && let Some(crashed_at) = self.progress.crashed_at()
            && self.dialled_at >= crashed_at
        {
            self.received.recovery = Some(crashed_at.elapsed());
        }
        let Emission { subscription, lsn, seq, value } = emission;
        let key = self.key_of.get(&subscription).copied();
        // What comes again does not set it back.
        if let Some(position) = key.map(|key| &mut self.positions[key])
            && seq > position.seq
        {
            (position.lsn, position.seq) = (lsn, seq);
        }
        // A foreign subscription is ignored.
        self.received.receipts.push(Receipt { key: key.unwrap_or(usize::MAX), lsn, seq, value });
    }

    fn has_everything(&self) -> bool {
        Delivery::of(&self.progress.ledger(), &self.received.starts, &self.received.receipts)
            .missed
            .is_empty()
    }

    /// Ends the subscriptions and takes what came before their end.
    fn unwatch(&mut self) -> Result<(), SubscriberError> {
        self.subscriber.unwatch(self.positions.iter().map(|position| &position.subscription[..]))?;
        while let Some(push) = self.subscriber.next(Duration::ZERO)? {
            self.take(push);
        }
        Ok(())
    }
}
