//! Emission latency: from sending a SET to the arrival of its push at a watcher.
//!
//! Every tracked SET carries a token, which matches each push with its SET. With `GET.WATCH` the
//! numbers of each subscription's emissions are checked as well. Missing, duplicate and late
//! emissions are counted and fail the run.

use super::clock::Clock;
use super::options::{EmitBy, KvOptions};
use super::workload::{token_of, watched_key};
use crate::client::{Client, ClientError};
use crate::latency::{Latencies, LatencySummary};
use crate::target::Target;
use crate::watch::answer::{AnswerError, Push, Watched};
use crate::watch::sequence::{SequenceCheck, SequenceFaults};
use anyhow::Context;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};
use tidemark_server::resp::{Value, encode_request};

/// Tracked SETs that await their emission, by token.
pub(super) struct Board {
    next: AtomicU64,
    awaited: Mutex<HashMap<u64, Awaited>>,
    limit: usize,
}

/// A SET that was sent and has not been emitted yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Awaited {
    key: u64,
    sent: u64,
}

impl Board {
    pub(super) fn new(limit: usize) -> Self {
        Board { next: AtomicU64::new(1), awaited: Mutex::new(HashMap::new()), limit }
    }

    /// Returns a token for a SET that is sent now, or `None` while too many are outstanding.
    pub(super) fn issue(&self, key: u64, now: u64) -> Option<u64> {
        let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        if awaited.len() >= self.limit {
            return None;
        }
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        awaited.insert(token, Awaited { key, sent: now });
        Some(token)
    }

    /// Returns the SET of an arrived token; `None` if the token has arrived before.
    fn arrive(&self, token: u64) -> Option<Awaited> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner).remove(&token)
    }

    fn outstanding(&self) -> usize {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Results of the watchers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Emissions {
    pub(super) latency: LatencySummary,
    /// Tracked SETs whose push never arrived.
    pub(super) undelivered: u64,
    /// Faults in the sequence of emission numbers, and tokens that arrived twice.
    pub(super) faults: SequenceFaults,
    /// Pushes under the subscription of a different key.
    pub(super) misdelivered: u64,
    /// Subscriptions that the server ended because their watcher fell too far behind.
    pub(super) ended: u64,
}

/// Subscribed clients that wait for the load to begin.
pub(super) struct Watchers(Vec<Watcher>);

/// Subscriptions per batch of requests.
const SUBSCRIBE_BATCH: usize = 256;
/// Interval at which a watcher checks whether the run is over.
const STOP_CHECK: Duration = Duration::from_millis(50);

impl Watchers {
    /// Connects the watchers; each subscribes to its share of the watched keys.
    pub(super) fn subscribe(options: &KvOptions, target: &Target) -> anyhow::Result<Self> {
        let count = options.reactive_watchers as u64;
        let watchers = (0..count).map(|watcher| {
            let mut client = Client::connect(target, options.op_timeout)?;
            client.hello(3).context("pushes need RESP3")?;
            let mut watcher_of_share = Watcher { client, seen: Seen::default() };
            let keys: Vec<u64> = (watcher..options.reactive_keyspace).step_by(count as usize).collect();
            for batch in keys.chunks(SUBSCRIBE_BATCH) {
                watcher_of_share.subscribe(options, target, batch)?;
            }
            Ok(watcher_of_share)
        });
        Ok(Watchers(watchers.collect::<anyhow::Result<_>>()?))
    }

    /// Starts receiving, one thread per watcher.
    pub(super) fn start<'scope, 'env>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        board: &'env Board,
        clock: &'env Clock,
    ) -> Watching<'scope, 'env> {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = self
            .0
            .into_iter()
            .map(|watcher| {
                let stop = Arc::clone(&stop);
                scope.spawn(move || watcher.run(board, clock, &stop))
            })
            .collect();
        Watching { board, stop, threads }
    }
}

/// Watchers that receive emissions.
pub(super) struct Watching<'scope, 'env> {
    board: &'env Board,
    stop: Arc<AtomicBool>,
    threads: Vec<ScopedJoinHandle<'scope, Result<Seen, WatcherError>>>,
}

#[derive(Debug, thiserror::Error)]
enum WatcherError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

impl Watching<'_, '_> {
    /// Waits up to `patience` for outstanding emissions, then stops the watchers.
    pub(super) fn finish(self, patience: Duration) -> anyhow::Result<Emissions> {
        let deadline = Instant::now() + patience;
        while self.board.outstanding() > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.stop.store(true, Ordering::Relaxed);
        let (mut latencies, mut emissions) = (Latencies::default(), Emissions::default());
        for thread in self.threads {
            let seen = thread
                .join()
                .map_err(|_| anyhow::anyhow!("a watcher stopped"))?
                .context("a watcher failed")?;
            latencies.add(&seen.latencies);
            emissions.faults.add(seen.faults());
            emissions.misdelivered += seen.misdelivered;
            emissions.ended += seen.ended;
        }
        emissions.latency = latencies.summary();
        emissions.undelivered = self.board.outstanding() as u64;
        Ok(emissions)
    }
}

impl Emissions {
    /// Returns whether every tracked SET was emitted to its subscription, once and in order.
    pub(super) fn is_clean(&self) -> bool {
        self.undelivered == 0 && self.faults.is_clean() && self.misdelivered == 0 && self.ended == 0
    }
}

/// One watching client.
struct Watcher {
    client: Client,
    seen: Seen,
}

impl Watcher {
    fn subscribe(&mut self, options: &KvOptions, target: &Target, keys: &[u64]) -> anyhow::Result<()> {
        let command = match options.emit_by {
            EmitBy::Watch => "GET.WATCH",
            EmitBy::Publish => "SUBSCRIBE",
        };
        let mut requests = Vec::new();
        for key in keys {
            encode_request(&mut requests, &[command.as_bytes(), &watched_key(*key)]);
        }
        self.client.send_encoded(&requests)?;
        for key in keys {
            let reply = self.reply_to_subscribe(options)?;
            if let Some(text) = reply.as_error() {
                anyhow::bail!(
                    "{target} refused {command} with {:?}; emission latency can only be measured on a server that \
                     pushes changes, so run with --emit-by publish or without --reactive-bench",
                    String::from_utf8_lossy(text)
                );
            }
            match options.emit_by {
                EmitBy::Watch => self.seen.watched(*key, &Watched::read(&reply)?),
                EmitBy::Publish => self.seen.subscribed(*key),
            }
        }
        Ok(())
    }

    /// Returns the next reply. Pushes that other clients' changes cause meanwhile are checked too.
    fn reply_to_subscribe(&mut self, options: &KvOptions) -> anyhow::Result<Value> {
        loop {
            let value =
                self.client.receive(Some(options.op_timeout))?.context("the server does not answer")?;
            // SUBSCRIBE is answered by a push.
            if options.emit_by == EmitBy::Publish || !matches!(value, Value::Push(_)) {
                return Ok(value);
            }
            if let Push::Emission(emission) = Push::read(&value)? {
                self.seen.number(&emission.subscription, emission.seq, emission.lsn);
            }
        }
    }

    fn run(mut self, board: &Board, clock: &Clock, stop: &AtomicBool) -> Result<Seen, WatcherError> {
        while !stop.load(Ordering::Relaxed) {
            if let Some(push) = self.client.next_push(STOP_CHECK)? {
                self.seen.take(&push, board, clock)?;
            }
        }
        Ok(self.seen)
    }
}

/// Observations of one watcher.
#[derive(Default)]
struct Seen {
    latencies: Latencies,
    /// Sources by subscription or channel.
    sources: HashMap<Vec<u8>, Source>,
    /// Tokens that arrived again under a different number.
    repeated: u64,
    misdelivered: u64,
    ended: u64,
}

/// The source of a key's pushes.
struct Source {
    key: u64,
    /// `None` for channels, which have no numbers.
    sequence: Option<SequenceCheck>,
}

impl Seen {
    fn watched(&mut self, key: u64, watched: &Watched) {
        let sequence = Some(SequenceCheck::after(watched.seq, watched.lsn));
        self.sources.insert(watched.subscription.clone(), Source { key, sequence });
    }

    fn subscribed(&mut self, key: u64) {
        self.sources.insert(watched_key(key), Source { key, sequence: None });
    }

    /// Processes a push: `emission`, subscription, lsn, seq and value, or `message`, channel and
    /// value.
    fn take(&mut self, push: &Value, board: &Board, clock: &Clock) -> Result<(), AnswerError> {
        let elements = push.as_elements().unwrap_or_default();
        if let [kind, channel, value] = elements
            && kind.as_bytes() == Some(b"message")
        {
            let channel = channel.as_bytes().unwrap_or_default();
            let key = self.sources.get(channel).map(|source| source.key);
            self.arrived(key, value.as_bytes().unwrap_or_default(), false, board, clock);
            return Ok(());
        }
        match Push::read(push)? {
            Push::Emission(emission) => {
                let again = self.number(&emission.subscription, emission.seq, emission.lsn);
                let key = self.sources.get(&emission.subscription).map(|source| source.key);
                self.arrived(key, &emission.value, again, board, clock);
            }
            Push::Stale { .. } => self.ended += 1,
            Push::Other => {}
        }
        Ok(())
    }

    /// Checks an emission's number; returns whether it is a duplicate.
    fn number(&mut self, subscription: &[u8], seq: u64, lsn: u64) -> bool {
        let source = self.sources.get_mut(subscription);
        let Some(sequence) = source.and_then(|source| source.sequence.as_mut()) else { return false };
        let before = sequence.faults().duplicates;
        sequence.take(seq, lsn);
        sequence.faults().duplicates > before
    }

    fn arrived(&mut self, key: Option<u64>, value: &[u8], again: bool, board: &Board, clock: &Clock) {
        self.misdelivered += u64::from(key.is_none());
        let Some(token) = token_of(value) else { return };
        let Some(awaited) = board.arrive(token) else {
            self.repeated += u64::from(!again);
            return;
        };
        self.misdelivered += u64::from(key.is_some_and(|key| key != awaited.key));
        if awaited.sent >= clock.measured_from {
            self.latencies.record_nanos(clock.now().saturating_sub(awaited.sent));
        }
    }

    fn faults(&self) -> SequenceFaults {
        let mut faults = SequenceFaults { duplicates: self.repeated, ..SequenceFaults::default() };
        for source in self.sources.values() {
            if let Some(sequence) = &source.sequence {
                faults.add(sequence.faults());
            }
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::{Awaited, Board, Seen};
    use crate::kv::clock::Clock;
    use crate::test_server::bulk;
    use crate::watch::answer::Watched;
    use crate::watch::sequence::SequenceFaults;
    use std::time::Duration;
    use tidemark_server::resp::Value;

    fn emission(subscription: &str, seq: i64, value: &str) -> Value {
        let number = Value::Integer(seq);
        Value::Push(vec![
            bulk("emission"),
            bulk(subscription),
            Value::Integer(seq + 100),
            number,
            bulk(value),
        ])
    }

    /// Creates a watcher of the keys 0 and 1, by subscriptions of these names and by channels.
    fn seen() -> Seen {
        let mut seen = Seen::default();
        for key in 0..2 {
            let subscription = key.to_string().into_bytes();
            seen.watched(key, &Watched { subscription, lsn: 100, seq: 0 });
            seen.subscribed(key);
        }
        seen
    }

    #[test]
    fn outstanding_tokens_are_bounded() {
        let board = Board::new(2);
        let first = board.issue(0, 5).unwrap();
        board.issue(0, 6).unwrap();
        assert_eq!(board.issue(0, 7), None);
        assert_eq!(board.arrive(first), Some(Awaited { key: 0, sent: 5 }));
        assert_eq!(board.arrive(first), None, "a second arrival is no new emission");
        assert!(board.issue(0, 8).is_some());
    }

    #[test]
    fn numbers_tokens_and_keys_are_checked() {
        let (board, clock) = (Board::new(10), Clock::start_after(Duration::ZERO, Duration::from_secs(1)));
        let set = |key| format!("tk={}|xx", board.issue(key, 0).unwrap());
        let values = [set(0), set(0), set(0), set(1)];
        let mut seen = seen();
        for push in [
            emission("0", 1, &values[0]),
            emission("0", 3, &values[1]),
            emission("0", 3, &values[1]),
            emission("0", 4, &values[1]),
            emission("1", 1, &values[2]),
            emission("1", 2, "no token"),
            emission("of no writer", 1, "no token"),
            Value::Push(vec![bulk("stale"), bulk("1"), Value::Integer(1), Value::Integer(2)]),
            Value::Push(vec![bulk("message"), bulk("bench:watch:key:1"), bulk(&values[3])]),
            Value::Push(vec![bulk("message"), bulk("bench:watch:key:1"), bulk(&values[3])]),
        ] {
            seen.take(&push, &board, &clock).unwrap();
        }
        assert_eq!(seen.faults(), SequenceFaults { missing: 1, duplicates: 3, out_of_order: 0 });
        assert_eq!((seen.misdelivered, seen.ended), (2, 1));
        assert_eq!((seen.latencies.summary().count, board.outstanding()), (4, 0));
        assert!(seen.take(&Value::Push(vec![bulk("emission")]), &board, &clock).is_err());
    }
}
