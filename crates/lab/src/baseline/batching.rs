//! A counter that stores every operation, in batches.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidemark_counter::store::{Batch, Claim, Delta, Error, Store};

/// Named counters whose operations are stored in batches, by size or by age: the usual way to write
/// less often. It has no limits and refuses no operation. The store gets every batch, even if the
/// operations of one batch cancel those of another. A [`Counter`](tidemark_counter::Counter) by
/// name waits for the net of all of them instead.
///
/// A store keeps positions, so a batch has one sum for each name, or none if the sum is 0.
///
/// # Exactly once
/// One batch is in flight at a time, under the writer's next number, and is resent unchanged until
/// the store acknowledges it. A crash loses what was not stored: `size` operations, twice as many
/// while the store does not answer. Nothing older than `interval` is lost if the store answers and
/// [`tick`](Self::tick) is called.
///
/// # Cost
/// An operation takes a lock and a map lookup. The caller that fills a batch stores it, and so
/// waits for the store; other callers continue until the next batch is full.
///
/// ```
/// use std::time::{Duration, Instant};
/// use tidemark_counter::store::{Memory, Store};
/// use tidemark_lab::baseline::Batching;
///
/// let mut store = Memory::default();
/// let likes = Batching::open(store.clone(), "api-1", 3, Duration::from_millis(5))?;
/// let began = Instant::now();
/// likes.add(began, b"post:1", 1)?;
/// likes.add(began, b"post:2", 1)?;
/// assert_eq!(store.load(&[b"post:1"])?, [None]);
/// likes.add(began, b"post:1", 1)?; // fills the batch
/// assert_eq!(store.load(&[b"post:1", b"post:2"])?, [Some(2), Some(1)]);
/// likes.add(began, b"post:2", -1)?;
/// likes.tick(began + Duration::from_millis(5))?; // it has waited long enough
/// assert_eq!(likes.position(b"post:2")?, 0);
/// likes.close()?;
/// # Ok::<(), tidemark_counter::store::Error>(())
/// ```
pub struct Batching<S: Store> {
    size: u64,
    interval: Duration,
    pending: Mutex<Pending>,
    // Lock order: before `pending`.
    sender: Mutex<Sender<S>>,
}

/// Totals so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stored {
    /// Operations, including those whose sums were 0 or were rejected.
    pub operations: u64,
    /// Batches that the store has acknowledged.
    pub batches: u64,
    /// Sums in these batches.
    pub changes: u64,
    /// How often a batch was resent because it was not answered.
    pub resends: u64,
    /// Sums that the store has rejected, which are lost.
    pub rejections: u64,
}

/// Operations that are not in flight yet.
#[derive(Default)]
struct Pending {
    sums: HashMap<Box<[u8]>, i64>,
    operations: u64,
    /// Time of the first operation.
    since: Option<Instant>,
}

struct Sender<S> {
    store: S,
    writer: String,
    claim: Claim,
    /// The unacknowledged batch, and the number of its operations.
    flight: Option<(Batch, u64)>,
    stored: Stored,
}

impl<S: Store> Batching<S> {
    /// Claims the writer's name. A batch is stored when it has `size` operations (at least 1, at
    /// most what the store accepts), or at the first call that is `interval` after its first
    /// operation.
    ///
    /// # Errors
    /// The store's errors; there is no retry.
    pub fn open(mut store: S, writer: &str, size: u64, interval: Duration) -> Result<Self, Error> {
        let claim = store.claim(writer)?;
        let size = size.min(store.max_deltas() as u64).max(1);
        let sender = Sender { store, writer: writer.into(), claim, flight: None, stored: Stored::default() };
        Ok(Self { size, interval, pending: Mutex::default(), sender: Mutex::new(sender) })
    }

    /// Adds `delta` units to the counter with this name.
    ///
    /// # Errors
    /// Fails if the current batch is full or old and cannot be stored; the operation is then not
    /// counted. So while the store does not answer, one batch is in flight, and another one fills
    /// before calls fail.
    pub fn add(&self, now: Instant, name: &[u8], delta: i64) -> Result<(), Error> {
        loop {
            let mut pending = self.pending();
            let is_late = self.is_due(&pending, now);
            if !is_late && pending.add(now, name, delta) {
                if pending.operations >= self.size {
                    drop(pending);
                    // On failure the next caller tries again and gets the error.
                    let _ = self.store(|pending| self.is_due(pending, now));
                }
                return Ok(());
            }
            drop(pending);
            // A sum that would overflow starts from 0 in the next batch.
            self.store(|pending| !is_late || self.is_due(pending, now))?;
        }
    }

    /// Stores the batch if it is older than the interval. To be called periodically.
    ///
    /// # Errors
    /// The store's errors. [`Error::Rejected`] if it has rejected some changes, which are lost; the
    /// others are stored.
    pub fn tick(&self, now: Instant) -> Result<(), Error> {
        self.store(|pending| self.is_due(pending, now))
    }

    /// Stores all pending operations.
    ///
    /// # Errors
    /// As [`tick`](Self::tick).
    pub fn flush(&self) -> Result<(), Error> {
        self.store(|_| true)
    }

    /// Returns the position of the counter with this name, including pending operations. Queries
    /// the store.
    ///
    /// # Errors
    /// The store's errors.
    pub fn position(&self, name: &[u8]) -> Result<i64, Error> {
        let mut sender = self.sender();
        // It is not known whether the store has the batch in flight.
        sender.send()?;
        let stored = sender.store.load(&[name])?.first().copied().flatten().unwrap_or(0);
        Ok(stored.saturating_add(self.pending().sums.get(name).copied().unwrap_or(0)))
    }

    /// Returns the number of operations that are not known to be stored.
    pub fn pending_operations(&self) -> u64 {
        let sender = self.sender();
        let flying = sender.flight.as_ref().map_or(0, |(_, operations)| *operations);
        flying + self.pending().operations
    }

    /// Returns the totals so far.
    pub fn stored(&self) -> Stored {
        self.sender().stored
    }

    /// Stores all pending operations, for the last time. Dropping does so too, and ignores errors.
    ///
    /// # Errors
    /// As [`tick`](Self::tick). What is not stored is lost.
    pub fn close(self) -> Result<(), Error> {
        self.flush()
    }

    fn is_due(&self, pending: &Pending, now: Instant) -> bool {
        let is_old = pending.since.is_some_and(|since| now.saturating_duration_since(since) >= self.interval);
        pending.operations >= self.size || is_old
    }

    /// Stores the batch in flight, and then the pending one if it is still due: another thread may
    /// have stored it meanwhile.
    fn store(&self, is_due: impl Fn(&Pending) -> bool) -> Result<(), Error> {
        let mut sender = self.sender();
        sender.send()?;
        let pending = {
            let mut pending = self.pending();
            if pending.operations == 0 || !is_due(&pending) {
                return Ok(());
            }
            std::mem::take(&mut *pending)
        };
        sender.begin(pending);
        sender.send()
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sender(&self) -> MutexGuard<'_, Sender<S>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    /// Adds an operation, if its sum stays within 64 bits.
    fn add(&mut self, now: Instant, name: &[u8], delta: i64) -> bool {
        match self.sums.get_mut(name) {
            Some(sum) => match sum.checked_add(delta) {
                Some(after) => *sum = after,
                None => return false,
            },
            None => {
                self.sums.insert(name.into(), delta);
            }
        }
        self.operations += 1;
        self.since.get_or_insert(now);
        true
    }
}

impl<S: Store> Sender<S> {
    /// Seals the next batch.
    fn begin(&mut self, pending: Pending) {
        assert!(self.flight.is_none(), "a batch is sealed while another one is on its way");
        let deltas: Vec<_> = pending
            .sums
            .into_iter()
            .filter(|(_, amount)| *amount != 0)
            .map(|(key, amount)| Delta { key, amount })
            .collect();
        let batch = Batch {
            writer: self.writer.clone(),
            epoch: self.claim.epoch,
            sequence: self.claim.last_sequence + 1,
            deltas,
        };
        self.flight = Some((batch, pending.operations));
    }

    /// Sends the batch in flight until the store has it or fails.
    fn send(&mut self) -> Result<(), Error> {
        let mut rejected = None;
        while let Some((batch, operations)) = &mut self.flight {
            let answer = if batch.deltas.is_empty() { None } else { Some(self.store.commit(batch)) };
            match answer {
                Some(Ok(_)) => {
                    self.claim.last_sequence = batch.sequence;
                    self.stored.batches += 1;
                    self.stored.changes += batch.deltas.len() as u64;
                }
                // All sums have cancelled or were rejected: the next batch gets the number.
                None => {}
                Some(Err(Error::Rejected(refused)))
                    if refused.iter().any(|refused| refused.index < batch.deltas.len()) =>
                {
                    let before = batch.deltas.len();
                    let mut index = 0;
                    batch.deltas.retain(|_| {
                        index += 1;
                        !refused.iter().any(|refused| refused.index + 1 == index)
                    });
                    self.stored.rejections += (before - batch.deltas.len()) as u64;
                    rejected = Some(Error::Rejected(refused));
                    continue;
                }
                Some(Err(error)) => {
                    self.stored.resends += u64::from(matches!(error, Error::Unavailable(_)));
                    return Err(error);
                }
            }
            self.stored.operations += *operations;
            self.flight = None;
        }
        rejected.map_or(Ok(()), Err)
    }
}

impl<S: Store> Drop for Batching<S> {
    fn drop(&mut self) {
        // Drop cannot report an error.
        let _ = self.flush();
    }
}

impl<S: Store> fmt::Debug for Batching<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Batching")
            .field("size", &self.size)
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;
    use std::thread;
    use tidemark_counter::store::{Faults, Faulty, Memory};

    const SECOND: Duration = Duration::from_secs(1);

    fn stored(memory: &Memory, name: &[u8]) -> i64 {
        memory.clone().load(&[name]).unwrap()[0].unwrap_or(0)
    }

    #[test]
    fn a_batch_is_stored_when_it_is_full_or_old_and_not_before() {
        let memory = Memory::default();
        let batching = Batching::open(memory.clone(), "w", 4, SECOND).unwrap();
        let began = Instant::now();
        for turn in 1..=3 {
            batching.add(began, b"a", 1).unwrap();
            assert_eq!((batching.pending_operations(), stored(&memory, b"a")), (turn, 0));
        }
        batching.add(began, b"b", 1).unwrap();
        assert_eq!((stored(&memory, b"a"), stored(&memory, b"b")), (3, 1));
        batching.add(began, b"a", 5).unwrap();
        batching.tick(began + Duration::from_nanos(999_999_999)).unwrap();
        assert_eq!((stored(&memory, b"a"), batching.position(b"a").unwrap()), (3, 8));
        batching.tick(began + SECOND).unwrap();
        assert_eq!(stored(&memory, b"a"), 8);
        // The call that finds the batch old stores the earlier operations.
        batching.add(began, b"a", 1).unwrap();
        batching.add(began + SECOND, b"a", 1).unwrap();
        assert_eq!((stored(&memory, b"a"), batching.pending_operations()), (9, 1));
        assert_eq!(batching.stored(), Stored { operations: 6, batches: 3, changes: 4, ..Stored::default() });
        drop(batching);
        assert_eq!(stored(&memory, b"a"), 10);
    }

    #[test]
    fn what_cancels_in_a_batch_is_no_change_and_what_cancels_across_batches_is_two() {
        let memory = Memory::default();
        let batching = Batching::open(memory.clone(), "w", 2, SECOND).unwrap();
        let now = Instant::now();
        for delta in [1, -1, 1, 1, -1, -1] {
            batching.add(now, b"a", delta).unwrap();
        }
        assert_eq!(batching.stored(), Stored { operations: 6, batches: 2, changes: 2, ..Stored::default() });
        batching.close().unwrap();
        assert_eq!(stored(&memory, b"a"), 0);
    }

    #[test]
    fn a_store_that_refuses_a_sum_gets_the_others() {
        let mut memory = Memory::default();
        let other = memory.claim("other").unwrap();
        let full = Delta { key: (*b"full").into(), amount: i64::MAX };
        let batch = Batch { writer: "other".into(), epoch: other.epoch, sequence: 1, deltas: vec![full] };
        memory.commit(&batch).unwrap();
        let batching = Batching::open(memory.clone(), "w", 10, SECOND).unwrap();
        let now = Instant::now();
        batching.add(now, b"full", 1).unwrap();
        batching.add(now, b"a", 1).unwrap();
        assert!(matches!(batching.flush(), Err(Error::Rejected(_))));
        assert_eq!((stored(&memory, b"full"), stored(&memory, b"a")), (i64::MAX, 1));
        assert_eq!(batching.stored().rejections, 1);
        batching.add(now, b"a", 1).unwrap();
        batching.close().unwrap();
        assert_eq!(stored(&memory, b"a"), 2);
    }

    #[test]
    fn a_fenced_writer_stores_nothing_more_and_gets_an_error() {
        let mut memory = Memory::default();
        let batching = Batching::open(memory.clone(), "w", 1, SECOND).unwrap();
        let now = Instant::now();
        batching.add(now, b"a", 1).unwrap();
        memory.claim("w").unwrap();
        batching.add(now, b"a", 1).unwrap();
        batching.add(now, b"a", 1).unwrap();
        // After the batch in flight, another one is full.
        assert!(matches!(batching.add(now, b"a", 1), Err(Error::Fenced { .. })));
        assert!(matches!(batching.close(), Err(Error::Fenced { .. })));
        assert_eq!(stored(&memory, b"a"), 1);
    }

    #[test]
    fn sums_that_would_leave_their_range_go_into_two_batches() {
        let memory = Memory::default();
        let batching = Batching::open(memory.clone(), "w", 100, SECOND).unwrap();
        let now = Instant::now();
        for delta in [i64::MIN, 5, -5, i64::MAX, 1, -1] {
            batching.add(now, b"a", delta).unwrap();
        }
        batching.add(now, b"b", i64::MAX).unwrap();
        batching.add(now, b"b", 0).unwrap();
        assert_eq!(batching.add(now, b"b", i64::MAX).map_err(|error| error.to_string()), Ok(()));
        assert!(matches!(batching.flush(), Err(Error::Rejected(_))), "that the store cannot have");
        assert_eq!((stored(&memory, b"a"), stored(&memory, b"b")), (-1, i64::MAX));
    }

    #[test]
    fn threads_lose_nothing() {
        let memory = Memory::default();
        let batching = Batching::open(memory.clone(), "w", 7, Duration::from_micros(50)).unwrap();
        thread::scope(|threads| {
            for thread in 0..4_u8 {
                let batching = &batching;
                threads.spawn(move || {
                    for turn in 0..2_000_u32 {
                        let name = [b'a' + (u32::from(thread) + turn) as u8 % 3];
                        batching.add(Instant::now(), &name, 1).unwrap();
                    }
                });
            }
        });
        batching.flush().unwrap();
        assert_eq!(batching.stored().operations, 8_000);
        drop(batching);
        assert_eq!([b"a", b"b", b"c"].map(|name| stored(&memory, name)).iter().sum::<i64>(), 8_000);
    }

    proptest! {
        /// Every counted operation is stored once, with any loss of requests and answers.
        #[test]
        fn each_operation_is_stored_once(
            script in prop::collection::vec((0..4_u8, -3..4_i64, 0..30_u64), 1..150),
            size in 1..12_u64, lost_requests in 0..70_u8, lost_answers in 0..70_u8, seed: u64,
        ) {
            let mut memory = Memory::default();
            memory.claim("w").unwrap();
            let faulty = Faulty::new(memory.clone(), Faults::default(), seed);
            let store = Arc::new(Mutex::new(faulty));
            let batching = Batching::open(store.clone(), "w", size, Duration::from_millis(50)).unwrap();
            store.lock().unwrap().set_faults(Faults { lost_requests, lost_answers, refusals: 0 });
            let mut now = Instant::now();
            let (mut truth, mut counted) = ([0_i64; 3], 0);
            for (what, delta, pause) in script {
                now += Duration::from_millis(pause);
                if what == 3 {
                    let _ = batching.tick(now);
                } else if batching.add(now, &[what], delta).is_ok() {
                    truth[usize::from(what)] += delta;
                    counted += 1;
                }
                prop_assert!(batching.pending_operations() <= 2 * size);
            }
            store.lock().unwrap().set_faults(Faults::default());
            prop_assert!(batching.flush().is_ok());
            prop_assert_eq!(batching.stored().operations, counted);
            for (name, truth) in truth.into_iter().enumerate() {
                prop_assert_eq!(stored(&memory, &[name as u8]), truth);
                prop_assert_eq!(batching.position(&[name as u8]).unwrap(), truth);
            }
        }
    }
}
