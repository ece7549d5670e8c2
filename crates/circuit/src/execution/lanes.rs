//! The lanes of a circuit, and the turns in which they are read.

use std::collections::HashMap;

use crate::execution::queue::lane::{Edge, Lane, Reader, Writer, lane};
use crate::sync::{Arc, AtomicUsize, Mutex, MutexGuard, OnceLock, Ordering, lock};

/// How many entries one lane, or the shared queue, may hand out in a row while others have entries
/// too.
const TURN: usize = 64;

/// After this many rounds each lane is also checked for unpublished entries, so that its last
/// entries do not wait for as long as other lanes are busy.
const ROUNDS: u32 = 64;

/// How many entries of a lane are handled in a row to reach a barrier.
const BEFORE_BARRIER: usize = 1024;

/// The lanes of a circuit, as all threads share them. Small while there are none, as in most
/// circuits.
pub(crate) struct Lanes {
    count: AtomicUsize,
    /// Set when the first lane opens.
    list: OnceLock<Box<Mutex<List>>>,
}

#[derive(Default)]
struct List {
    all: Vec<Arc<Lane>>,
    /// Number of entries of lanes that were removed.
    finished: u64,
    /// Lanes that the context has not picked up yet.
    new: Vec<Reader>,
}

/// The lanes of a circuit as its context reads them. Made when the context sees the first lane.
#[derive(Default)]
pub(crate) struct Readers {
    all: Vec<Reader>,
    /// Whose turn it is: 0 for the shared queue, otherwise one more than the index of a lane.
    turn: usize,
    /// Entries left in the shared queue's turn.
    left: usize,
    /// Number of completed rounds.
    rounds: u32,
    /// Position up to which each lane must be read before the shared queue's next entry may be
    /// handled.
    goals: Vec<u64>,
    reaching: bool,
}

impl Lanes {
    pub(crate) fn new() -> Self {
        Self { count: AtomicUsize::new(0), list: OnceLock::new() }
    }

    /// Locks the list of lanes, if there ever were any.
    fn lock(&self) -> Option<MutexGuard<'_, List>> {
        self.list.get().map(|list| lock(list))
    }

    /// Number of lanes that this thread sees.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Returns whether this thread sees no lanes.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    pub(crate) fn open(&self) -> Writer {
        let (writer, reader) = lane();
        let mut list = lock(self.list.get_or_init(Box::default));
        list.all.push(Arc::clone(writer.lane()));
        list.new.push(reader);
        // SeqCst: ordered with a consumer that goes idle, which reads this count to decide whether
        // it needs a barrier.
        self.count.store(list.all.len(), Ordering::SeqCst);
        writer
    }

    /// Number of entries ever written, and how many of them are done.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let Some(list) = self.lock() else { return (0, 0) };
        list.all
            .iter()
            .map(|lane| lane.counts())
            .fold((list.finished, list.finished), |sum, lane| (sum.0 + lane.0, sum.1 + lane.1))
    }

    /// Returns whether any lane has entries that are not done.
    pub(crate) fn have_work(&self) -> bool {
        !self.is_empty() && self.lock().is_some_and(|list| list.all.iter().any(|lane| lane.has_work()))
    }
}

impl Readers {
    /// Picks up new lanes and removes those that are closed and read to their end.
    pub(crate) fn refresh(&mut self, lanes: &Lanes) {
        self.reaching = false;
        let Some(mut list) = lanes.lock() else { return };
        self.all.append(&mut list.new);
        let known = self.all.len();
        let gone = |reader: &mut Reader| reader.is_exhausted();
        let gone: HashMap<*const Lane, Reader> =
            self.all.extract_if(.., gone).map(|reader| (reader.lane(), reader)).collect();
        if !gone.is_empty() {
            list.finished += gone.values().map(Reader::consumed).sum::<u64>();
            list.all.retain(|lane| !gone.contains_key(&Arc::as_ptr(lane)));
        }
        lanes.count.store(list.all.len(), Ordering::Release);
        if self.all.len() < known || self.turn == 0 {
            self.turn = 0;
            self.left = TURN;
        }
    }

    /// Picks up lanes that were opened since the last check, even while the known lanes always have
    /// entries.
    #[inline]
    pub(crate) fn notice(&mut self, lanes: &Lanes) {
        if self.all.len() != lanes.count.load(Ordering::Relaxed) && !self.reaching {
            self.refresh(lanes);
        }
    }

    /// Returns a lane that must be read before the next entry of the shared queue, because that
    /// entry must follow everything written so far, and how many entries to read. None if all lanes
    /// have been read that far.
    pub(crate) fn before_barrier(&mut self, lanes: &Lanes) -> Option<(&mut Reader, usize)> {
        if !self.reaching {
            self.refresh(lanes);
            self.goals.clear();
            self.goals.extend(self.all.iter_mut().map(Reader::written));
            self.reaching = true;
        }
        let behind = self.all.iter().zip(&self.goals).position(|(reader, goal)| reader.consumed() < *goal);
        self.reaching = behind.is_some();
        behind.map(|index| {
            let reader = &mut self.all[index];
            let count = self.goals[index] - reader.consumed();
            (reader, (count as usize).min(BEFORE_BARRIER))
        })
    }

    /// Returns whether it is the shared queue's turn.
    pub(crate) fn is_shared_turn(&self) -> bool {
        self.turn == 0 && self.left > 0
    }

    pub(crate) fn count_shared(&mut self) {
        self.left -= 1;
    }

    /// Returns the index of the lane whose turn it is and how many entries it may hand out, if it
    /// has any.
    pub(crate) fn take_turn(&mut self, edge: Edge) -> Option<(usize, usize)> {
        let index = self.turn.checked_sub(1)?;
        let edge = if self.rounds.is_multiple_of(ROUNDS) { Edge::Written } else { edge };
        let known = self.all[index].known(edge).min(TURN);
        (known > 0).then_some((index, known))
    }

    pub(crate) fn at(&mut self, index: usize) -> &mut Reader {
        &mut self.all[index]
    }

    /// Passes the turn on.
    pub(crate) fn pass(&mut self) {
        if let Some(index) = self.turn.checked_sub(1) {
            self.all[index].consume();
        }
        if self.turn < self.all.len() {
            self.turn += 1;
        } else {
            self.turn = 0;
            self.rounds = self.rounds.wrapping_add(1);
        }
        self.left = TURN;
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Marks the entries taken from all lanes as done.
    pub(crate) fn consume(&self) {
        self.all.iter().for_each(Reader::consume);
    }
}
