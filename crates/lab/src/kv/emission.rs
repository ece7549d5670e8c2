//! Emission latency: from the sending of a SET to the arrival of the push that it causes at a watcher.

use super::load::Clock;
use super::options::KvOptions;
use super::workload::{token_of, watched_key};
use crate::client::{Client, ClientError};
use crate::latency::{Latencies, LatencySummary};
use crate::target::Target;
use anyhow::Context;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};
use tidemark_server::resp::{Value, encode_request};

/// The SETs whose emission is awaited, by token.
pub(super) struct Board {
    next: AtomicU64,
    sent: Mutex<HashMap<u64, u64>>,
    limit: usize,
}

impl Board {
    pub(super) fn new(limit: usize) -> Self {
        Board { next: AtomicU64::new(1), sent: Mutex::new(HashMap::new()), limit }
    }

    /// A token for a SET that is sent now, or `None` while too many are outstanding.
    pub(super) fn issue(&self, now: u64) -> Option<u64> {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if sent.len() >= self.limit {
            return None;
        }
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        sent.insert(token, now);
        Some(token)
    }

    /// When the SET of a token that has arrived was sent; `None` if it has arrived before.
    fn arrive(&self, token: u64) -> Option<u64> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).remove(&token)
    }

    fn outstanding(&self) -> usize {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// What the watchers saw.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Emissions {
    pub(super) latency: LatencySummary,
    /// Tracked SETs whose push never came.
    pub(super) undelivered: u64,
    /// Pushes whose position was not above the one before of the same subscription, or that came twice.
    pub(super) out_of_order: u64,
}

/// Clients that are subscribed and wait for the load to begin.
pub(super) struct Watchers(Vec<Client>);

/// Subscriptions requested together.
const SUBSCRIBE_BATCH: u64 = 256;
/// How soon a watcher notices that the run is over.
const STOP_CHECK: Duration = Duration::from_millis(50);

impl Watchers {
    /// Connects the watchers; each subscribes to its share of the watched keys.
    pub(super) fn subscribe(options: &KvOptions, target: &Target) -> anyhow::Result<Self> {
        let count = options.reactive_watchers as u64;
        let watchers = (0..count).map(|watcher| {
            let mut client = Client::connect(target, options.op_timeout)?;
            client.hello(3).context("pushes need RESP3")?;
            let keys: Vec<u64> = (watcher..options.reactive_keyspace).step_by(count as usize).collect();
            for batch in keys.chunks(SUBSCRIBE_BATCH as usize) {
                subscribe_batch(&mut client, target, batch, options.op_timeout)?;
            }
            Ok(client)
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
            .map(|client| {
                let stop = Arc::clone(&stop);
                scope.spawn(move || watch(client, board, clock, &stop))
            })
            .collect();
        Watching { board, stop, threads }
    }
}

/// Watchers that are receiving.
pub(super) struct Watching<'scope, 'env> {
    board: &'env Board,
    stop: Arc<AtomicBool>,
    threads: Vec<ScopedJoinHandle<'scope, Result<Seen, ClientError>>>,
}

impl Watching<'_, '_> {
    /// Waits up to `patience` for outstanding emissions, then stops.
    pub(super) fn finish(self, patience: Duration) -> anyhow::Result<Emissions> {
        let deadline = Instant::now() + patience;
        while self.board.outstanding() > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.stop.store(true, Ordering::Relaxed);
        let mut total = Seen::default();
        for thread in self.threads {
            let seen = thread
                .join()
                .map_err(|_| anyhow::anyhow!("a watcher stopped"))?
                .context("a watcher failed")?;
            total.latencies.add(&seen.latencies);
            total.out_of_order += seen.out_of_order;
        }
        Ok(Emissions {
            latency: total.latencies.summary(),
            undelivered: self.board.outstanding() as u64,
            out_of_order: total.out_of_order,
        })
    }
}

#[derive(Default)]
struct Seen {
    latencies: Latencies,
    out_of_order: u64,
    /// The last position of every subscription.
    positions: HashMap<Vec<u8>, i64>,
}

fn watch(mut client: Client, board: &Board, clock: &Clock, stop: &AtomicBool) -> Result<Seen, ClientError> {
    let mut seen = Seen::default();
    while !stop.load(Ordering::Relaxed) {
        if let Some(push) = client.next_push(STOP_CHECK)? {
            seen.take(&push, board, clock);
        }
    }
    Ok(seen)
}

impl Seen {
    /// An emission is a push of kind, subscription, position and value.
    fn take(&mut self, push: &Value, board: &Board, clock: &Clock) {
        let Some([_, subscription, position, .., value]) = push.as_elements() else { return };
        if let (Some(subscription), Some(position)) = (subscription.as_bytes(), position.as_integer()) {
            match self.positions.get_mut(subscription) {
                Some(last) if position <= *last => self.out_of_order += 1,
                Some(last) => *last = position,
                None => drop(self.positions.insert(subscription.to_vec(), position)),
            }
        }
        let Some(token) = value.as_bytes().and_then(token_of) else { return };
        if let Some(sent) = board.arrive(token)
            && sent >= clock.measured_from
        {
            self.latencies.record_nanos(clock.now().saturating_sub(sent));
        }
    }
}

fn subscribe_batch(
    client: &mut Client,
    target: &Target,
    keys: &[u64],
    patience: Duration,
) -> anyhow::Result<()> {
    let mut requests = Vec::new();
    for key in keys {
        encode_request(&mut requests, &[&b"GET.WATCH"[..], &watched_key(*key)]);
    }
    client.send_encoded(&requests)?;
    for _ in keys {
        let reply = client.receive(Some(patience))?.context("the server does not answer GET.WATCH")?;
        if let Some(text) = reply.as_error() {
            anyhow::bail!(
                "{target} refused GET.WATCH with {:?}; emission latency can only be measured on a server that pushes \
                 changes, so run without --reactive-bench",
                String::from_utf8_lossy(text)
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Board, Seen};
    use crate::kv::load::Clock;
    use std::time::Duration;
    use tidemark_server::resp::Value;

    fn emission(position: i64, value: &str) -> Value {
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        Value::Push(vec![bulk("emission"), bulk("sub"), Value::Integer(position), bulk(value)])
    }

    #[test]
    fn outstanding_tokens_are_bounded() {
        let board = Board::new(2);
        let first = board.issue(5).unwrap();
        board.issue(6).unwrap();
        assert_eq!(board.issue(7), None);
        assert_eq!(board.arrive(first), Some(5));
        assert_eq!(board.arrive(first), None, "a second arrival is no new emission");
        assert!(board.issue(8).is_some());
    }

    #[test]
    fn a_position_that_does_not_grow_is_out_of_order() {
        let (board, clock) = (Board::new(10), Clock::start_after(Duration::ZERO, Duration::from_secs(1)));
        let tokens: Vec<u64> = (0..3).map(|_| board.issue(0).unwrap()).collect();
        let mut seen = Seen::default();
        for (position, token) in [(4, tokens[0]), (7, tokens[1]), (7, tokens[2])] {
            seen.take(&emission(position, &format!("tk={token}|xx")), &board, &clock);
        }
        seen.take(&emission(8, "no token"), &board, &clock);
        seen.take(&Value::Simple(b"OK".to_vec()), &board, &clock);
        assert_eq!(seen.out_of_order, 1);
        assert_eq!(seen.latencies.summary().count, 3);
        assert_eq!(board.outstanding(), 0);
    }
}
