//! Pools in logs, and a ledger of the answers that a client received.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidemark_log::{Durability, Format, Options, Storage};
use tidemark_pool::selector::WideTree;
use tidemark_pool::service::{Answer, CallError, Request, Service, Settings, State};
use tidemark_pool::{Catalogue, Draw, Item, Pool, Repeats, Secret};
use tidemark_stores::{OpenedPool, PoolJournal, PoolLogError, PoolLogOptions};

/// Uses the smallest segments, so that a log has several.
pub(crate) fn options(format: Format) -> PoolLogOptions {
    let mut options = PoolLogOptions { snapshot_after_bytes: u64::MAX, ..PoolLogOptions::default() };
    options.log = Options {
        format,
        durability: Durability::Always,
        segment_bytes: Options::SEGMENT_BYTES_MIN,
        seed: Some(7),
        recycle: 1,
        ..options.log
    };
    options
}

pub(crate) fn new_pool() -> Pool<WideTree> {
    let items =
        vec![Item::limited("car", 5, 40), Item::limited("a mug", 30, 3_000), Item::unlimited("-", 65)];
    let catalogue = Catalogue::new(items).expect("a catalogue");
    Pool::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32]))
}

pub(crate) fn open(
    storage: Arc<dyn Storage>,
    options: &PoolLogOptions,
) -> Result<OpenedPool<WideTree>, PoolLogError> {
    PoolJournal::open(storage, options, new_pool)
}

/// Returns a clock that advances with every call.
pub(crate) fn clock() -> impl FnMut() -> u64 + Send + 'static {
    static NOW: AtomicU64 = AtomicU64::new(1);
    || NOW.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn serve(opened: OpenedPool<WideTree>) -> Service {
    let (pool, journal, _) = opened;
    Service::start(pool, journal, clock(), Settings::default()).expect("a thread")
}

pub(crate) fn state(service: &Service) -> State {
    match service.call(Request::State { from: 0, count: usize::MAX }) {
        Ok(Answer::State(state)) => *state,
        other => panic!("no state but {other:?}"),
    }
}

/// The answers that a client received.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    /// The item of each draw, by the draw's number.
    pub(crate) draws: BTreeMap<u64, Option<u32>>,
    /// The number of the next draw when a call failed. Draws from this number on may have been made
    /// without an answer to the client.
    pub(crate) unknown: Option<u64>,
    /// The number of draws in the largest call.
    largest: u64,
}

impl Ledger {
    fn note(&mut self, draw: Draw) {
        assert_eq!(self.draws.insert(draw.number, draw.item), None, "no draw is awarded twice");
    }

    /// Makes one of several calls, each of which is one frame; returns whether it succeeded.
    pub(crate) fn call(&mut self, service: &Service, turn: u64) -> bool {
        self.make(
            service,
            match turn % 4 {
                0 => Request::DrawMany { count: 5, repeats: Repeats::Allowed },
                1 => Request::Reserve { count: 2, repeats: Repeats::Excluded, until_us: u64::MAX },
                2 => Request::DrawMany { count: 2, repeats: Repeats::Excluded },
                _ => Request::Draw,
            },
        )
    }

    /// Makes a call that draws; returns whether it succeeded.
    pub(crate) fn make(&mut self, service: &Service, request: Request) -> bool {
        let draws = match &request {
            Request::DrawMany { count, .. } | Request::Reserve { count, .. } => *count as u64,
            _ => 1,
        };
        self.largest = self.largest.max(draws);
        match service.call(request) {
            Ok(Answer::Draw(draw)) => self.note(draw),
            Ok(Answer::Draws(draws)) => draws.into_iter().for_each(|draw| self.note(draw)),
            Ok(Answer::Reserved(reserved)) => reserved.draws.iter().for_each(|draw| self.note(*draw)),
            Ok(other) => panic!("{other:?} was not asked for"),
            Err(CallError::Failed(_)) => {
                self.unknown.get_or_insert(self.draws.len() as u64);
                return false;
            }
            Err(other) => panic!("{other}"),
        }
        true
    }

    /// Asserts that a recovered pool has every acknowledged draw, and each unacknowledged draw once
    /// or not at all.
    pub(crate) fn check(&self, opened: &OpenedPool<WideTree>, case: &str) {
        let pool = &opened.0.pool;
        let acknowledged = self.draws.len() as u64;
        assert!(self.draws.keys().copied().eq(0..acknowledged), "{case}: draws are numbered without gaps");
        assert!(
            pool.next_draw() >= acknowledged,
            "{case}: {} of {acknowledged} draws are there",
            pool.next_draw()
        );
        assert!(
            self.unknown.is_some() || pool.next_draw() == acknowledged,
            "{case}: draws without a request"
        );
        assert!(pool.next_draw() <= acknowledged + self.largest, "{case}: more than the call that failed");
        let taken: u64 = pool.urn().entries().map(|entry| entry.drawn).sum();
        assert_eq!(taken, pool.next_draw(), "{case}: each draw has taken one unit");
        let mut acknowledged = BTreeMap::<u32, u64>::new();
        self.draws.values().flatten().for_each(|item| *acknowledged.entry(*item).or_default() += 1);
        for (item, acknowledged) in acknowledged {
            let entry = pool.urn().entry(item).expect("no item was removed");
            assert!(
                entry.drawn >= acknowledged,
                "{case}: item {item} was awarded {acknowledged} times, not {}",
                entry.drawn
            );
        }
    }

    /// Adds the unacknowledged draws that the recovered pool has, as a client does that asks the
    /// pool.
    pub(crate) fn settle(&mut self, service: &Service) {
        if let Some(first) = self.unknown.take() {
            for number in first..state(service).next_draw {
                self.draws.insert(number, None);
            }
        }
    }
}
