//! A snapshot taken during calls is the pool as it was when the snapshot began.

use super::support::{pool_of, state};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use tidemark_pool::journal::{Journal, JournalError, Listener, MemoryJournal, Position, SnapshotSink};
use tidemark_pool::selector::WideTree;
use tidemark_pool::service::{Answer, Change, Request, Service, Settings};
use tidemark_pool::{Chain, Item, Pool, PoolImage, Repeats, Secret};

const ITEMS: usize = 1_000;

/// A journal whose snapshots continue only when the test allows it.
#[derive(Clone, Default)]
struct Paced(Arc<Pace>, MemoryJournal);

#[derive(Default)]
struct Pace {
    is_wanted: AtomicBool,
    is_busy: AtomicBool,
    parts: Mutex<Parts>,
}

#[derive(Default)]
struct Parts {
    head: Option<(Chain, Vec<u8>)>,
    blocks: BTreeMap<usize, Vec<u8>>,
    is_finished: bool,
}

impl Journal for Paced {
    fn append(&mut self, time_us: u64, frame: &[u8]) -> Result<Position, JournalError> {
        self.1.append(time_us, frame)
    }

    fn request(&mut self, position: Position) {
        self.1.request(position);
    }

    fn settled(&self) -> Result<Position, JournalError> {
        self.1.settled()
    }

    fn listen(&mut self, listener: Listener) {
        self.1.listen(listener);
    }

    fn begin_snapshot(&mut self) -> Option<Box<dyn SnapshotSink>> {
        self.0.is_wanted.swap(false, SeqCst).then(|| Box::new(PacedSink(Arc::clone(&self.0))) as _)
    }

    fn close(&mut self) -> Result<(), JournalError> {
        self.1.close()
    }
}

struct PacedSink(Arc<Pace>);

impl SnapshotSink for PacedSink {
    fn head(&mut self, chain: Chain, head: &[u8]) {
        self.0.parts.lock().expect("parts").head = Some((chain, head.to_vec()));
    }

    fn block(&mut self, block: usize, items: &[u8]) {
        let before = self.0.parts.lock().expect("parts").blocks.insert(block, items.to_vec());
        assert_eq!(before, None, "block {block} is seen once");
    }

    fn is_busy(&self) -> bool {
        self.0.is_busy.load(SeqCst)
    }

    fn finish(self: Box<Self>) {
        self.0.parts.lock().expect("parts").is_finished = true;
    }
}

fn many(count: usize, repeats: Repeats) -> Request {
    Request::DrawMany { count, repeats }
}

fn reserve(service: &Service, until_us: u64) -> u64 {
    match service.call(Request::Reserve { count: 5, repeats: Repeats::Excluded, until_us }) {
        Ok(Answer::Reserved(reservation)) => reservation.number(),
        other => panic!("no reservation but {other:?}"),
    }
}

/// Makes every kind of change to a pool after a snapshot has begun.
fn use_all(service: &Service, time: &AtomicU64, open: [u64; 2]) {
    for _ in 0..20 {
        service.draw().expect("a draw");
    }
    service.call(many(40, Repeats::Excluded)).expect("draws");
    reserve(service, u64::MAX);
    service.call(Request::Cancel { number: open[0] }).expect("it is open");
    service.call(Request::Confirm { number: open[1] }).expect("it is open");
    let changes = vec![
        Change::Restock { id: "3".into(), units: 5 },
        Change::Weight { id: "400".into(), weight: 9 },
        Change::Remove { id: "700".into() },
        Change::Add(Item::limited("new", 3, 4)),
    ];
    service.call(Request::Change(changes)).expect("changes");
    assert!(service.call(Request::Change(vec![Change::Remove { id: "boat".into() }])).is_err());
    service
        .call(Request::BeginEpoch { client_seed: Box::default(), after: Secret::new([5; 32]) })
        .expect("one");
    // A reservation from before the snapshot has now expired.
    time.store(1_000, SeqCst);
    assert_eq!(state(service).reservations, 1);
    service.call(many(60, Repeats::Allowed)).expect("draws");
}

#[test]
fn a_snapshot_has_nothing_of_what_comes_behind_its_begin() {
    let items = || (0..ITEMS).map(|item| Item::limited(item.to_string(), 1, 100)).collect();
    let (journal, time) = (Paced::default(), Arc::new(AtomicU64::new(0)));
    let clock = Arc::clone(&time);
    let clock = move || clock.load(SeqCst);
    let service =
        Service::start(pool_of(items()), journal.clone(), clock, Settings::default()).expect("a thread");
    service.call(many(200, Repeats::Allowed)).expect("draws");
    let open = [reserve(&service, u64::MAX), reserve(&service, u64::MAX)];
    reserve(&service, 500);

    journal.0.is_busy.store(true, SeqCst);
    journal.0.is_wanted.store(true, SeqCst);
    service.draw().expect("a draw");
    while journal.0.parts.lock().expect("parts").head.is_none() {
        std::thread::yield_now();
    }
    let frames = journal.1.frames().len();
    use_all(&service, &time, open);
    let unseen = ITEMS.div_ceil(128) - journal.0.parts.lock().expect("parts").blocks.len();
    journal.0.is_busy.store(false, SeqCst);
    while !journal.0.parts.lock().expect("parts").is_finished {
        std::thread::yield_now();
    }
    service.stop().expect("the journal is well");
    assert!(unseen < ITEMS.div_ceil(128), "some blocks were seen because they were about to change");

    let parts = journal.0.parts.lock().expect("parts");
    let (chain, head) = parts.head.as_ref().expect("a head");
    // The snapshot began after one of the frames that existed when the test saw its head.
    let (mut then, frames) = (pool_of(items()), journal.1.frames().into_iter().take(frames));
    for frame in frames {
        if then.chain != *chain {
            then.follow(&frame).expect("a frame");
        }
    }
    assert_eq!(then.chain, *chain);
    let mut image = PoolImage::read(head).expect("a head");
    parts.blocks.values().for_each(|items| image.read_items(items).expect("items"));
    assert_eq!(bytes(&image.finish().expect("all items")), bytes(&then.pool));
}

fn bytes(pool: &Pool<WideTree>) -> Vec<u8> {
    let mut bytes = Vec::new();
    pool.write_head(&mut bytes);
    pool.write_items(0..pool.urn().len() as u32, &mut bytes);
    bytes
}
