//! Services of pools, and journals that wait for the test.

use std::sync::{Arc, Condvar, Mutex};
use tidemark_pool::journal::{Journal, JournalError, Listener, Position};
use tidemark_pool::selector::WideTree;
use tidemark_pool::service::{Answer, Request, Service, Settings, State};
use tidemark_pool::{Catalogue, ChainedPool, Frame, Item, Pool, Secret};

/// Cars and mugs are limited; "nothing" is unlimited.
pub(crate) fn items() -> Vec<Item> {
    vec![Item::limited("car", 5, 40), Item::limited("mug", 30, 3_000), Item::unlimited("nothing", 65)]
}

pub(crate) fn pool_of(items: Vec<Item>) -> ChainedPool<WideTree> {
    let catalogue = Catalogue::new(items).expect("a catalogue");
    ChainedPool::new(Pool::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32])))
}

pub(crate) fn pool() -> ChainedPool<WideTree> {
    pool_of(items())
}

/// Serves a pool with a fixed clock.
pub(crate) fn serve(journal: impl Journal + 'static) -> Service {
    Service::start(pool(), journal, || 1_000, Settings::default()).expect("a thread")
}

pub(crate) fn state(service: &Service) -> State {
    match service.call(Request::State { from: 0, count: usize::MAX }) {
        Ok(Answer::State(state)) => *state,
        other => panic!("no state but {other:?}"),
    }
}

/// Replays these frames on a new pool.
pub(crate) fn again(frames: &[Vec<u8>]) -> ChainedPool<WideTree> {
    let mut again = pool();
    for frame in frames {
        again.follow(frame).expect("a frame that follows");
    }
    again
}

/// Returns the number of the first draw of each frame.
pub(crate) fn first_draws(frames: &[Vec<u8>]) -> Vec<u64> {
    frames.iter().map(|frame| Frame::read_alone(frame).expect("a frame").first_draw).collect()
}

/// A journal whose frames settle when the test allows it. Clones share one journal.
#[derive(Clone, Default)]
pub(crate) struct HeldJournal(Arc<(Mutex<Held>, Condvar)>);

#[derive(Default)]
struct Held {
    frames: Vec<Vec<u8>>,
    settled: Position,
    failure: Option<JournalError>,
    listener: Option<Listener>,
}

impl HeldJournal {
    /// Waits until the journal has received `count` frames.
    pub(crate) fn await_frames(&self, count: usize) -> Vec<Vec<u8>> {
        let held = self.0.0.lock().expect("held");
        let held = self.0.1.wait_while(held, |held| held.frames.len() < count).expect("held");
        held.frames.clone()
    }

    /// Settles frames up to a position.
    pub(crate) fn settle(&self, position: Position) {
        self.change(|held| held.settled = position);
    }

    /// Makes the sync fail.
    pub(crate) fn fail(&self) {
        self.change(|held| held.failure = Some(JournalError::new("the disk is gone")));
    }

    fn change(&self, change: impl FnOnce(&mut Held)) {
        let mut held = self.0.0.lock().expect("held");
        change(&mut held);
        let listener = held.listener.clone();
        drop(held);
        // A service that has no listener yet checks the position itself after its next write.
        if let Some(listener) = listener {
            listener();
        }
    }
}

impl Journal for HeldJournal {
    fn append(&mut self, _time_us: u64, frame: &[u8]) -> Result<Position, JournalError> {
        let mut held = self.0.0.lock().expect("held");
        held.frames.push(frame.to_vec());
        self.0.1.notify_all();
        Ok(held.frames.len() as Position)
    }

    fn request(&mut self, _position: Position) {}

    fn settled(&self) -> Result<Position, JournalError> {
        let held = self.0.0.lock().expect("held");
        held.failure.clone().map_or(Ok(held.settled), Err)
    }

    fn listen(&mut self, listener: Listener) {
        self.0.0.lock().expect("held").listener = Some(listener);
    }

    fn close(&mut self) -> Result<(), JournalError> {
        self.settled().map(|_| ())
    }
}
