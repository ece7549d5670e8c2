//! Emissions that are not retained any more and are made again, on their way from the thread that makes them to one
//! subscription.
//!
//! The subscription takes what it has room for, and the maker waits for it: little lies between them. What is taken stays until
//! the subscription asks for what comes behind it, so that it may take less than it was shown.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidemark_engine::watch::Emission;
use tidemark_log::Lsn;

/// What may lie between maker and subscription: so many bytes of answers, or one. As much as may wait to be sent, because a client
/// that does not read keeps both.
const WAITING_BYTES: usize = 256 << 10;
/// What an emission takes beside its answer, about. Bytes.
const OVERHEAD_BYTES: usize = 112;

/// Tells whoever serves the subscription that it should look: once until it has looked. From any thread.
pub(crate) type Tell = Box<dyn Fn() + Send + Sync>;

/// The subscription's end. Dropping it ends the making.
#[derive(Debug)]
pub(crate) struct ReplayBuffer(Arc<Channel>);

/// The end of the thread that makes emissions again.
#[derive(Debug)]
pub(crate) struct ReplayWriter(Arc<Channel>);

struct Channel {
    state: Mutex<State>,
    /// Something has been taken, or nobody takes anything any more.
    taken: Condvar,
    tell: Tell,
}

#[derive(Debug, Default)]
struct State {
    place: Option<u64>,
    waiting: VecDeque<Emission>,
    /// What they take.
    bytes: usize,
    end: Option<End>,
    is_left: bool,
    is_told: bool,
}

/// Why nothing more comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The subscription goes on with what is retained, or, if it has let that go too, with another backlog.
    Done,
    /// It does not go on: emissions at this LSN and before cannot be made again.
    Stale(Lsn),
    /// The server stops.
    Stopping,
}

/// What there is for a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Some emissions.
    Some,
    /// Nothing yet: the subscription will be told.
    Later,
    /// Nothing more.
    End(End),
}

/// What has become of an emission that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    Done,
    /// There is no room for it: see [`ReplayWriter::wait_for_room`].
    Full,
    /// Nobody wants it any more.
    Left,
}

/// Both ends of a new backlog.
pub(crate) fn channel(tell: Tell) -> (ReplayWriter, ReplayBuffer) {
    let channel = Arc::new(Channel { state: Mutex::default(), taken: Condvar::new(), tell });
    (ReplayWriter(Arc::clone(&channel)), ReplayBuffer(channel))
}

impl ReplayBuffer {
    /// The number of the last emission at the LSN behind which the subscription goes on, or why it does not; `None` as long as
    /// that is not known.
    pub(crate) fn place(&self) -> Option<Result<u64, End>> {
        let mut state = self.0.lock();
        state.is_told = false;
        state.place.map(Ok).or_else(|| state.end.map(Err))
    }

    /// Takes up to `most` emissions behind number `after` into `into`. Those up to there are let go.
    pub(crate) fn take(&self, after: u64, most: usize, into: &mut Vec<Emission>) -> Taken {
        self.0.look(|state| {
            state.let_go(|emission, _| emission.number <= after);
            into.extend(state.waiting.iter().take(most).cloned());
            state.taken()
        })
    }

    /// Takes the latest emission behind number `after`, when all have been made. Those before it are let go.
    pub(crate) fn latest(&self, after: u64, into: &mut Vec<Emission>) -> Taken {
        self.0.look(|state| {
            state.let_go(|emission, waiting| waiting > 1 || emission.number <= after);
            if state.end.is_none() {
                // As long as more comes there is nothing that is the latest.
                return Taken::Later;
            }
            into.extend(state.waiting.front().cloned());
            state.taken()
        })
    }
}

impl State {
    /// Lets emissions go from the front, as long as one is of no more use, of which it is told how many wait.
    fn let_go(&mut self, is_useless: impl Fn(&Emission, usize) -> bool) {
        while let Some(first) = self.waiting.front()
            && is_useless(first, self.waiting.len())
        {
            self.bytes -= bytes(first);
            self.waiting.pop_front();
        }
    }

    fn taken(&self) -> Taken {
        match (self.waiting.is_empty(), self.end) {
            (false, _) => Taken::Some,
            (true, None) => Taken::Later,
            (true, Some(end)) => Taken::End(end),
        }
    }
}

impl Drop for ReplayBuffer {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_left = true;
        state.waiting.clear();
        drop(state);
        self.0.taken.notify_one();
    }
}

impl ReplayWriter {
    /// Says behind which number the subscription goes on.
    pub(crate) fn found(&self, number: u64) {
        self.0.change(|state| state.place = Some(number));
    }

    /// Passes an emission on.
    pub(crate) fn put(&self, emission: &Emission) -> Put {
        let mut put = Put::Done;
        self.0.change(|state| {
            if state.is_left {
                put = Put::Left;
            } else if state.bytes >= WAITING_BYTES {
                put = Put::Full;
            } else {
                state.bytes += bytes(emission);
                state.waiting.push_back(emission.clone());
            }
        });
        put
    }

    /// Waits until the subscription has taken something, or for so long.
    pub(crate) fn wait_for_room(&self, most: Duration) {
        let is_full = |state: &mut State| state.bytes >= WAITING_BYTES && !state.is_left;
        let waited = self.0.taken.wait_timeout_while(self.0.lock(), most, is_full);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether nobody wants anything any more.
    pub(crate) fn is_left(&self) -> bool {
        self.0.lock().is_left
    }

    /// Says that nothing more comes.
    pub(crate) fn end(self, end: End) {
        self.0.change(|state| state.end = Some(end));
    }
}

impl Drop for ReplayWriter {
    fn drop(&mut self) {
        // Whatever has happened to the maker, nobody waits for ever.
        self.0.change(|state| {
            state.end.get_or_insert(End::Stopping);
        });
    }
}

impl Channel {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the subscription look, which is told again from then on, and the maker go on.
    fn look(&self, look: impl FnOnce(&mut State) -> Taken) -> Taken {
        let mut state = self.lock();
        state.is_told = false;
        let taken = look(&mut state);
        drop(state);
        self.taken.notify_one();
        taken
    }

    /// Changes the state and tells the subscription, unless it has been told already.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let was_told = std::mem::replace(&mut state.is_told, true);
        let is_left = state.is_left;
        drop(state);
        if !was_told && !is_left {
            (self.tell)();
        }
    }
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel").field("state", &self.state).finish_non_exhaustive()
    }
}

fn bytes(emission: &Emission) -> usize {
    emission.answer.len() + OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tidemark_engine::SharedBytes;

    fn emission(number: u64, length: usize) -> Emission {
        let answer = SharedBytes::from(&vec![b'x'; length][..]);
        Emission { number, lsn: Lsn(number), time_us: 0, durable: true, before: answer.clone(), answer }
    }

    fn counted() -> (Arc<AtomicUsize>, ReplayWriter, ReplayBuffer) {
        let told = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&told);
        let (writer, buffer) = channel(Box::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        }));
        (told, writer, buffer)
    }

    fn numbers(buffer: &ReplayBuffer, after: u64, most: usize) -> (Taken, Vec<u64>) {
        let mut into = Vec::new();
        let taken = buffer.take(after, most, &mut into);
        (taken, into.iter().map(|emission| emission.number).collect())
    }

    #[test]
    fn what_is_taken_stays_until_what_is_behind_it_is_asked_for() {
        let (told, writer, buffer) = counted();
        assert_eq!(buffer.place(), None);
        writer.found(4);
        assert_eq!(buffer.place(), Some(Ok(4)));
        for number in 5..8 {
            assert_eq!(writer.put(&emission(number, 1)), Put::Done);
        }
        assert_eq!(told.load(Ordering::Relaxed), 2, "once until it looks");
        assert_eq!(numbers(&buffer, 4, 2), (Taken::Some, vec![5, 6]));
        assert_eq!(numbers(&buffer, 5, 9), (Taken::Some, vec![6, 7]));
        assert_eq!(numbers(&buffer, 7, 9), (Taken::Later, vec![]));
        writer.end(End::Done);
        assert_eq!(told.load(Ordering::Relaxed), 3);
        assert_eq!(numbers(&buffer, 7, 9), (Taken::End(End::Done), vec![]));
    }

    #[test]
    fn little_lies_between_and_one_however_large() {
        let (_, writer, buffer) = counted();
        assert_eq!(writer.put(&emission(1, 2 * WAITING_BYTES)), Put::Done);
        assert_eq!(writer.put(&emission(2, 1)), Put::Full);
        assert_eq!(numbers(&buffer, 0, 9), (Taken::Some, vec![1]));
        assert_eq!(writer.put(&emission(2, 1)), Put::Full, "it has not said that it has it");
        assert_eq!(numbers(&buffer, 1, 9), (Taken::Later, vec![]));
        assert_eq!(writer.put(&emission(2, 1)), Put::Done);
    }

    #[test]
    fn the_latest_is_known_when_all_have_been_made() {
        let (_, writer, buffer) = counted();
        let latest = |after| {
            let mut into = Vec::new();
            let taken = buffer.latest(after, &mut into);
            (taken, into.first().map(|emission| emission.number))
        };
        for number in 1..4 {
            assert_eq!(writer.put(&emission(number, WAITING_BYTES)), Put::Done, "{number}");
            assert_eq!(latest(0), (Taken::Later, None));
            // What is superseded makes room.
            assert_eq!(writer.put(&emission(number, 1)), Put::Full);
            buffer.take(number, 0, &mut Vec::new());
        }
        assert_eq!(writer.put(&emission(4, 1)), Put::Done);
        assert_eq!(writer.put(&emission(5, 1)), Put::Done);
        writer.end(End::Done);
        assert_eq!(latest(3), (Taken::Some, Some(5)));
        assert_eq!(latest(5), (Taken::End(End::Done), None));
    }

    #[test]
    fn either_end_knows_when_the_other_is_gone() {
        let (told, writer, buffer) = counted();
        drop(buffer);
        assert!(writer.is_left());
        assert_eq!((writer.put(&emission(1, 1)), told.load(Ordering::Relaxed)), (Put::Left, 0));
        let (told, writer, buffer) = counted();
        drop(writer);
        assert_eq!((buffer.place(), told.load(Ordering::Relaxed)), (Some(Err(End::Stopping)), 1));
    }
}
