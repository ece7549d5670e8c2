//! Counters under names, and who commits them.

use super::named::Named;
use super::stopwatch::nanos;
use super::subject::Exposure;
use super::ticker::Ticker;
use anyhow::{anyhow, bail};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidemark_counter::store::{Batch, Claim, Delta, Store};
use tidemark_counter::{Counter, Kind, Promise, Refusal};

const WRITER: &str = "lab";

/// When counters are committed.
pub(super) struct Options {
    pub(super) kind: Kind,
    pub(super) promise: Promise,
    /// At so many open units a counter is committed at once.
    pub(super) threshold: u64,
    /// With so many it is committed at the next interval.
    pub(super) low_threshold: u64,
    pub(super) interval: Duration,
    /// So long after its first uncommitted move a counter is committed, whatever it has.
    pub(super) max_age: Duration,
}

/// Counters that a thread commits, and at the edge of their promise whoever moves them.
pub(super) struct Counters {
    shared: Arc<Shared>,
    committer: Ticker,
}

struct Shared {
    entries: Named<Entry>,
    names: Arc<[String]>,
    low_threshold: u64,
    max_age: Duration,
    origin: Instant,
    /// Held from sealing to acknowledging, so one batch at a time is on its way.
    journal: Mutex<Journal>,
}

struct Entry {
    counter: Counter,
    /// When the first uncommitted move was made, in nanoseconds since the origin, and 0 for none. Set before the move and cleared
    /// before sealing: it may be too early, and 0 although there is something uncommitted, which then is overdue.
    since: AtomicU64,
}

/// The store, and what it must be told next.
struct Journal {
    store: Box<dyn Store>,
    claim: Claim,
    /// Why no more can be committed.
    failure: Option<String>,
}

impl Counters {
    /// Reads what the store has, and begins to commit.
    pub(super) fn open(
        mut store: Box<dyn Store>,
        names: &Arc<[String]>,
        options: &Options,
    ) -> anyhow::Result<Self> {
        let claim = store.claim(WRITER)?;
        let keys: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
        let mut durable = store.load(&keys)?.into_iter();
        let entries = Named::new(names, |_| {
            let durable = durable.next().flatten().unwrap_or_default();
            let counter = Counter::new(options.kind, options.promise, durable);
            counter.set_alarm(options.threshold);
            Entry { counter, since: AtomicU64::new(0) }
        });
        let shared = Arc::new(Shared {
            entries,
            names: Arc::clone(names),
            low_threshold: options.low_threshold,
            max_age: options.max_age,
            origin: Instant::now(),
            journal: Mutex::new(Journal { store, claim, failure: None }),
        });
        let interval = options.interval;
        let committer = {
            let (shared, mut looked) = (Arc::clone(&shared), Instant::now());
            Ticker::start(interval, move || {
                let is_time = looked.elapsed() >= interval;
                if is_time {
                    looked = Instant::now();
                }
                // A failure is kept, and told to who moves or closes.
                let _ = if is_time { shared.commit_due() } else { shared.commit_alarmed() };
            })?
        };
        Ok(Counters { shared, committer })
    }

    /// Moves a plain counter.
    #[inline]
    pub(super) fn add(&self, key: usize, delta: i64) -> anyhow::Result<()> {
        self.carry_out(key, delta, |counter| counter.add(delta))?.map_err(|refusal| anyhow!(refusal))
    }

    /// Takes a unit of a quota, or says that there is none.
    #[inline]
    pub(super) fn take(&self, key: usize) -> anyhow::Result<bool> {
        match self.carry_out(key, 1, |counter| counter.take(1))? {
            Ok(()) => Ok(true),
            Err(Refusal::Exhausted) => Ok(false),
            Err(refusal) => Err(anyhow!(refusal)),
        }
    }

    /// Gives back a unit, if one was taken. Returns how many.
    #[inline]
    pub(super) fn refund(&self, key: usize) -> anyhow::Result<u64> {
        self.carry_out(key, -1, |counter| counter.refund(1))?.map_err(|refusal| anyhow!(refusal))
    }

    #[inline]
    fn carry_out<R>(
        &self,
        key: usize,
        delta: i64,
        act: impl Fn(&Counter) -> Result<R, Refusal>,
    ) -> anyhow::Result<Result<R, Refusal>> {
        let entry = self.shared.entries.get(key);
        loop {
            if entry.since.load(Relaxed) == 0 {
                entry.since.store(self.shared.now().max(1), Relaxed);
            }
            match act(&entry.counter) {
                Err(Refusal::Unsettled) => self.shared.commit_for(key, entry, delta)?,
                answer => {
                    if entry.counter.is_due() {
                        self.committer.wake();
                    }
                    return Ok(answer);
                }
            }
        }
    }

    /// What the store does not have.
    pub(super) fn exposure(&self) -> Exposure {
        let now = self.shared.now();
        self.shared.entries.iter().fold(Exposure::default(), |all, entry| {
            let units = entry.counter.books().uncommitted();
            let since = entry.since.load(Relaxed);
            let age = if units == 0 || since == 0 { 0 } else { now.saturating_sub(since) };
            Exposure {
                units: all.units + units,
                largest: all.largest.max(units),
                oldest_ns: all.oldest_ns.max(age),
            }
        })
    }

    /// What was admitted of each, less what was refunded.
    pub(super) fn positions(&self) -> Vec<i64> {
        self.shared.entries.iter().map(|entry| entry.counter.position()).collect()
    }

    /// Commits all that is left.
    pub(super) fn close(&self) -> anyhow::Result<()> {
        self.committer.stop()?;
        self.shared.commit(|_| true)
    }
}

impl Shared {
    fn now(&self) -> u64 {
        nanos(self.origin.elapsed())
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For who is to move a counter by so much, and cannot as it is.
    #[cold]
    fn commit_for(&self, key: usize, entry: &Entry, delta: i64) -> anyhow::Result<()> {
        let mut journal = self.journal();
        entry.since.store(0, Relaxed);
        if let Some(amount) = entry.counter.seal_for(delta) {
            journal.commit(vec![Delta { key: self.names[key].as_bytes().into(), amount }])?;
            entry.counter.acknowledge();
        }
        Ok(())
    }

    fn commit_alarmed(&self) -> anyhow::Result<()> {
        self.commit(|entry| entry.counter.is_due())
    }

    fn commit_due(&self) -> anyhow::Result<()> {
        let (now, max_age) = (self.now(), nanos(self.max_age));
        self.commit(|entry| match entry.counter.books().uncommitted() {
            0 => false,
            units => {
                let age = now.saturating_sub(entry.since.load(Relaxed));
                units >= self.low_threshold || age >= max_age
            }
        })
    }

    fn commit(&self, is_due: impl Fn(&Entry) -> bool) -> anyhow::Result<()> {
        let mut journal = self.journal();
        let (mut deltas, mut sealed) = (Vec::new(), Vec::new());
        for (name, entry) in self.names.iter().zip(self.entries.iter()) {
            if !is_due(entry) {
                continue;
            }
            entry.since.store(0, Relaxed);
            if let Some(amount) = entry.counter.seal() {
                deltas.push(Delta { key: name.as_bytes().into(), amount });
                sealed.push(entry);
            }
        }
        journal.commit(deltas)?;
        sealed.iter().for_each(|entry| entry.counter.acknowledge());
        Ok(())
    }
}

impl Journal {
    /// Sends one batch. Once one has failed, what is sealed stays so and all others fail as well.
    fn commit(&mut self, deltas: Vec<Delta>) -> anyhow::Result<()> {
        if let Some(failure) = &self.failure {
            bail!("the store has failed before: {failure}");
        }
        if deltas.is_empty() {
            return Ok(());
        }
        let sequence = self.claim.last_sequence + 1;
        let batch = Batch { writer: WRITER.into(), epoch: self.claim.epoch, sequence, deltas };
        if let Err(error) = self.store.commit(&batch) {
            self.failure = Some(error.to_string());
            return Err(error.into());
        }
        self.claim.last_sequence = sequence;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Counters, Options};
    use std::sync::Arc;
    use std::time::Duration;
    use tidemark_counter::store::{Batch, Claim, Error, Memory, Receipt, Store};
    use tidemark_counter::{Kind, Promise};

    const NEVER: Duration = Duration::from_hours(24);

    fn names() -> Arc<[String]> {
        Arc::from(["a".to_owned(), "b".to_owned()])
    }

    fn options(promise: Promise) -> Options {
        Options {
            kind: Kind::Plain,
            promise,
            threshold: 8,
            low_threshold: 4,
            interval: NEVER,
            max_age: NEVER,
        }
    }

    #[test]
    fn who_reaches_the_cap_commits_and_the_rest_is_committed_at_the_end() {
        let mut memory = Memory::default();
        let relaxed = options(Promise::Relaxed { cap: 10 });
        let counters = Counters::open(Box::new(memory.clone()), &names(), &relaxed).unwrap();
        for _ in 0..25 {
            counters.add(0, 1).unwrap();
            assert!(counters.exposure().largest <= 10);
        }
        assert!(memory.load(&[b"a"]).unwrap()[0].unwrap() >= 15);
        counters.close().unwrap();
        assert_eq!(memory.load(&[b"a", b"b"]).unwrap(), [Some(25), None]);
        assert_eq!(counters.positions(), [25, 0]);
    }

    #[test]
    fn a_quota_goes_on_where_the_store_has_it() {
        let memory = Memory::default();
        let quota = Options { kind: Kind::Quota { limit: 10 }, ..options(Promise::Exact { block: 4 }) };
        for left in [true, false] {
            let counters = Counters::open(Box::new(memory.clone()), &names(), &quota).unwrap();
            let taken = (0..6).filter(|_| counters.take(0).unwrap()).count();
            assert_eq!(taken, if left { 6 } else { 4 });
            counters.close().unwrap();
        }
    }

    #[test]
    fn what_is_old_enough_is_committed_by_itself() {
        let mut memory = Memory::default();
        let soon = Options {
            interval: Duration::from_micros(100),
            max_age: Duration::from_micros(1),
            ..options(Promise::Relaxed { cap: 10 })
        };
        let counters = Counters::open(Box::new(memory.clone()), &names(), &soon).unwrap();
        counters.add(1, 1).unwrap();
        while memory.load(&[b"b"]).unwrap() != [Some(1)] {
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_alarm_has_a_counter_committed_before_its_interval() {
        let mut memory = Memory::default();
        let relaxed = options(Promise::Relaxed { cap: 1_000 });
        let counters = Counters::open(Box::new(memory.clone()), &names(), &relaxed).unwrap();
        (0..8).for_each(|_| counters.add(0, 1).unwrap());
        while memory.load(&[b"a"]).unwrap() != [Some(8)] {
            std::thread::yield_now();
        }
    }

    struct Broken;

    impl Store for Broken {
        fn claim(&mut self, _: &str) -> Result<Claim, Error> {
            Ok(Claim { epoch: 1, last_sequence: 0 })
        }

        fn commit(&mut self, _: &Batch) -> Result<Receipt, Error> {
            Err(Error::Unavailable("no".into()))
        }

        fn load(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<i64>>, Error> {
            Ok(vec![None; keys.len()])
        }
    }

    #[test]
    fn a_store_that_fails_is_told_to_who_moves_and_who_closes() {
        let relaxed = options(Promise::Relaxed { cap: 1 });
        let counters = Counters::open(Box::new(Broken), &names(), &relaxed).unwrap();
        counters.add(0, 1).unwrap();
        assert!(counters.add(0, 1).is_err());
        assert!(counters.close().unwrap_err().to_string().contains("failed before"));
    }
}
