//! Files of a snapshot travel to another member, through failures of every kind.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use tidemark_cluster::NodeId;
use tidemark_cluster::net::{Lane, Service, Transport};
use tidemark_cluster::snapshot_files::{
    FileName, Outgoing, OutgoingFiles, ReceiverLimits, SendError, SenderSettings, SnapshotReceiver,
    SnapshotSender, serve_snapshot_lane,
};
use tidemark_log::storage::faulty::{Fault, Plan, Site};
use tidemark_log::{
    BlockFileUse, FaultyStorage, FileStorage, Lsn, MemoryStorage, SnapshotWriter, Snapshots, Storage,
};
use tokio::sync::{mpsc, oneshot};

use crate::support::{Echo, Member, identity, introduce, patient, run, until};

const LIMITS: ReceiverLimits = ReceiverLimits { bytes_max: 1 << 30, reserve_bytes: 0 };
const META: &[u8] = b"term 3, entry 9";

const BLOCKS: &str = "blocks-00000000000000000001.tide";
const BASE: &str = "snapshot-00000000000000000010.tide";
const NEWEST: &str = "snapshot-00000000000000000020-on-00000000000000000010.tide";
const EMPTY: &str = "blocks-00000000000000000002.tide";

fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = Rng::with_seed(seed);
    (0..bytes).map(|_| random.u8(..)).collect()
}

/// Files of a sender: name and content, in no particular order.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        (NEWEST, content(1, 3_000)),
        (BLOCKS, content(2, 70_001)),
        (EMPTY, Vec::new()),
        (BASE, content(3, 20_480)),
    ]
}

fn name(name: &str) -> FileName {
    FileName::new(name).expect(name)
}

fn outgoing_files(files: &[(&str, Vec<u8>)]) -> OutgoingFiles {
    let memory = MemoryStorage::new();
    files.iter().for_each(|(name, content)| memory.put(name, content.clone()));
    let storage: Arc<dyn Storage> = Arc::new(memory);
    let names: Vec<FileName> = files.iter().map(|(file, _)| name(file)).collect();
    OutgoingFiles::open(&storage, &names, META.to_vec()).expect("files")
}

fn outgoing(files: &[(&str, Vec<u8>)]) -> Outgoing {
    Outgoing::new(outgoing_files(files), 1000)
}

fn receiver(storage: &MemoryStorage) -> SnapshotReceiver {
    SnapshotReceiver::open(Arc::new(storage.clone()), LIMITS).expect("a receiver")
}

/// Sends one request after the other, at most `requests`. Returns whether the transfer is done.
fn drive(
    outgoing: &mut Outgoing,
    receiver: &mut SnapshotReceiver,
    requests: usize,
) -> Result<bool, SendError> {
    for _ in 0..requests {
        let Some(request) = outgoing.next_request()? else { break };
        outgoing.take_answer(&receiver.answer(&request))?;
    }
    Ok(outgoing.is_done())
}

fn has_all(storage: &MemoryStorage, files: &[(&str, Vec<u8>)]) {
    for (name, content) in files {
        assert_eq!(storage.read(name).as_ref(), Some(content), "{name}");
    }
}

fn names(storage: &dyn Storage) -> Vec<String> {
    let mut names = storage.list().expect("names");
    names.sort();
    names
}

#[test]
fn files_have_their_names_when_they_are_installed_and_not_before() {
    let storage = MemoryStorage::new();
    let mut receiver = receiver(&storage);
    assert!(drive(&mut outgoing(&files()), &mut receiver, 1000).expect("sent"));
    assert_eq!(receiver.received(), Some(META));
    assert!(names(&storage).iter().all(|name| name.contains("incoming")), "{:?}", names(&storage));
    let installed = receiver.install().expect("installed");
    assert_eq!(installed.meta, META);
    assert_eq!(installed.files, [BLOCKS, EMPTY, BASE, NEWEST].map(name));
    has_all(&storage, &files());
    assert_eq!(names(&storage), [BLOCKS, EMPTY, BASE, NEWEST], "nothing else is left");
    assert_eq!(receiver.received(), None);
    assert!(receiver.install().is_err());
}

#[test]
fn a_snapshot_of_the_log_can_be_used_where_it_arrives() {
    let source: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let mut writer = SnapshotWriter::create(Arc::clone(&source), Lsn(10)).expect("begins");
    writer.set_block_file(1);
    writer.write_frame(1, &content(1, 5_000)).expect("written");
    writer.write_block(&content(2, 7_000)).expect("written");
    writer.refer_to(vec![BlockFileUse { number: 1, used_bytes: 7_000 }]);
    writer.finish().expect("complete");

    let names = Snapshots::new(Arc::clone(&source)).files(Lsn(10)).expect("names");
    let names: Vec<FileName> = names.iter().map(|file| name(file)).collect();
    let files = OutgoingFiles::open(&source, &names, META.to_vec()).expect("files");
    let storage = MemoryStorage::new();
    let mut receiver = receiver(&storage);
    assert!(drive(&mut Outgoing::new(files, 1000), &mut receiver, 100).expect("sent"));
    receiver.install().expect("installed");
    let (found, damaged) = Snapshots::new(Arc::new(storage)).latest(Lsn(11)).expect("a snapshot");
    assert_eq!((found.map(|found| found.lsn()), damaged.len()), (Some(Lsn(10)), 0));
}

#[test]
fn files_that_are_there_are_not_sent_again() {
    let storage = MemoryStorage::new();
    let (_, blocks) = files().swap_remove(1);
    storage.put(BLOCKS, blocks);
    // Two members number their block files alike: the name does not say that the content is the same.
    storage.put(BASE, content(99, 20_480));
    let mut receiver = receiver(&storage);
    let mut outgoing = outgoing(&files());
    assert!(drive(&mut outgoing, &mut receiver, 1000).expect("sent"));
    assert_eq!(outgoing.chunk_bytes_sent(), 3_000 + 20_480);
    assert_eq!(storage.read(BASE), Some(content(99, 20_480)), "replaced when it is installed only");
    receiver.install().expect("installed");
    has_all(&storage, &files());
}

#[test]
fn a_broken_connection_costs_what_was_under_way() {
    for broken_after in 1..100 {
        let storage = MemoryStorage::new();
        let mut receiver = receiver(&storage);
        let mut outgoing = outgoing(&files());
        drive(&mut outgoing, &mut receiver, broken_after).expect("sent");
        // A chunk whose answer is lost has arrived.
        if let Some(request) = outgoing.next_request().expect("a request") {
            receiver.answer(&request);
        }
        outgoing.connection_failed();
        drive(&mut outgoing, &mut receiver, 1000).expect("sent");
        assert!(outgoing.is_done(), "broken after {broken_after} requests");
        assert_eq!(outgoing.chunk_bytes_sent(), 93_481, "nothing is sent twice");
        receiver.install().expect("installed");
        has_all(&storage, &files());
    }
}

#[test]
fn chunks_that_come_too_early_or_twice_change_nothing() {
    let storage = MemoryStorage::new();
    let mut receiver = receiver(&storage);
    let mut outgoing = outgoing(&[(BASE, content(3, 3_000))]);
    drive(&mut outgoing, &mut receiver, 1).expect("offered");
    let mut chunk = || outgoing.next_request().expect("a chunk").expect("a chunk");
    let chunks = [chunk(), chunk(), chunk()];
    for (sent, held) in
        [(1, 0), (2, 0), (0, 1_000), (0, 1_000), (2, 1_000), (1, 2_000), (1, 2_000), (2, 3_000)]
    {
        receiver.answer(&chunks[sent]);
        assert_eq!(receiver.progress(), Some((held, 3_000)), "chunk {sent}");
    }
    outgoing.connection_failed();
    assert!(drive(&mut outgoing, &mut receiver, 10).expect("sent"));
    assert_eq!(outgoing.chunk_bytes_sent(), 3_000);
    receiver.install().expect("installed");
    has_all(&storage, &[(BASE, content(3, 3_000))]);
}

#[test]
fn a_transfer_goes_on_after_power_failures_at_random_points() {
    for seed in 0..60 {
        let mut random = Rng::with_seed(seed);
        let mut storage = MemoryStorage::with_crashes();
        let mut outgoing = outgoing(&files());
        for _ in 0..4 {
            let mut receiver = receiver(&storage);
            if drive(&mut outgoing, &mut receiver, random.usize(0..60)).expect("sent") {
                break;
            }
            drop(receiver);
            storage = storage.crash(random.u64(..));
            outgoing.connection_failed();
        }
        let mut receiver = receiver(&storage);
        if outgoing.is_done() {
            assert_eq!(receiver.received(), Some(META), "what is done survives, seed {seed}");
        } else {
            assert!(drive(&mut outgoing, &mut receiver, 1000).expect("sent"), "seed {seed}");
        }
        storage = storage.crash(seed);
        let mut receiver = SnapshotReceiver::open(Arc::new(storage.clone()), LIMITS).expect("a receiver");
        assert_eq!(receiver.received(), Some(META), "seed {seed}");
        receiver.install().expect("installed");
        storage = storage.crash(seed);
        has_all(&storage, &files());
    }
}

#[test]
fn an_installation_that_is_interrupted_anywhere_is_completed_at_the_next_start() {
    for at in 1.. {
        let memory = MemoryStorage::with_crashes();
        let mut receiver = receiver(&memory);
        assert!(drive(&mut outgoing(&files()), &mut receiver, 1000).expect("sent"));
        drop(receiver);
        let faulty = FaultyStorage::new(Arc::new(memory.clone()), None);
        let mut receiver = SnapshotReceiver::open(Arc::new(faulty.clone()), LIMITS).expect("a receiver");
        let error = Fault::Error(std::io::ErrorKind::Other);
        let at = faulty.calls() + at;
        faulty.set_plan(Some(Plan { fault: error, at, site: None, forever: true, seed: 0 }));
        let installed = receiver.install();
        let has_ended = installed.is_ok();
        let storage = memory.crash(at);
        let mut receiver = SnapshotReceiver::open(Arc::new(storage.clone()), LIMITS).expect("a receiver");
        if receiver.received().is_some() {
            let has_name = |(name, _): &(&str, Vec<u8>)| storage.read(name).is_some();
            assert!(!files().iter().any(has_name), "what has begun is completed, fault at call {at}");
            receiver.install().expect("installed");
        }
        has_all(&storage, &files());
        assert_eq!(names(&storage), [BLOCKS, EMPTY, BASE, NEWEST], "fault at call {at}");
        if has_ended {
            return;
        }
    }
}

#[test]
fn a_full_disk_refuses_and_leaves_nothing() {
    for at in 1..40 {
        let memory = MemoryStorage::new();
        let faulty = FaultyStorage::new(Arc::new(memory.clone()), None);
        let mut receiver = SnapshotReceiver::open(Arc::new(faulty.clone()), LIMITS).expect("a receiver");
        let fault = Fault::Error(std::io::ErrorKind::StorageFull);
        let plan = Plan { fault, at, site: Some(Site::WriteAt), forever: true, seed: 0 };
        faulty.set_plan(Some(plan));
        match drive(&mut outgoing(&files()), &mut receiver, 1000) {
            Err(SendError::Full(reason)) => assert!(reason.contains("failed"), "{reason}"),
            other => panic!("{other:?} with a full disk at write {at}"),
        }
        assert_eq!(names(&memory), [""; 0], "full at write {at}");
        assert_eq!(receiver.progress(), None);
        // With room again the same transfer begins from its start.
        faulty.set_plan(None);
        assert!(drive(&mut outgoing(&files()), &mut receiver, 1000).expect("sent"));
    }
}

#[test]
fn room_and_limits_are_checked_before_the_first_byte() {
    let storage = MemoryStorage::new();
    let limits = ReceiverLimits { bytes_max: 93_480, ..LIMITS };
    let mut receiver = SnapshotReceiver::open(Arc::new(storage.clone()), limits).expect("a receiver");
    let error = drive(&mut outgoing(&files()), &mut receiver, 10).expect_err("too large").to_string();
    assert!(error.contains("a snapshot of 93481 bytes is above the limit of 93480 bytes"), "{error}");
    assert_eq!(names(&storage), [""; 0]);

    let directory = tempfile::tempdir().expect("a directory");
    let disk: Arc<dyn Storage> = Arc::new(FileStorage::new(directory.path()).expect("a directory"));
    let limits = ReceiverLimits { reserve_bytes: u64::MAX, ..LIMITS };
    let mut receiver = SnapshotReceiver::open(Arc::clone(&disk), limits).expect("a receiver");
    let error = drive(&mut outgoing(&files()), &mut receiver, 10).expect_err("no room");
    assert!(matches!(error, SendError::Full(_)), "{error}");
    assert_eq!(names(&*disk), [""; 0]);
}

#[test]
fn damage_on_the_way_to_the_disk_is_found_and_sent_again() {
    for at in 2..90 {
        let memory = MemoryStorage::new();
        let faulty = FaultyStorage::new(Arc::new(memory.clone()), None);
        let mut receiver = SnapshotReceiver::open(Arc::new(faulty.clone()), LIMITS).expect("a receiver");
        let plan = Plan { fault: Fault::BitFlip, at, site: Some(Site::WriteAt), forever: false, seed: at };
        faulty.set_plan(Some(plan));
        assert!(drive(&mut outgoing(&files()), &mut receiver, 2000).expect("sent"), "flip at write {at}");
        receiver.install().expect("installed");
        has_all(&memory, &files());
    }
}

#[test]
fn a_disk_that_changes_what_is_written_ends_the_transfer() {
    let memory = MemoryStorage::new();
    let faulty = FaultyStorage::new(Arc::new(memory.clone()), None);
    let mut receiver = SnapshotReceiver::open(Arc::new(faulty.clone()), LIMITS).expect("a receiver");
    let plan = Plan { fault: Fault::BitFlip, at: 2, site: Some(Site::WriteAt), forever: true, seed: 1 };
    faulty.set_plan(Some(plan));
    let error = drive(&mut outgoing(&files()), &mut receiver, 2000).expect_err("damage").to_string();
    assert!(error.contains("has arrived 3 times with another content than announced"), "{error}");
    assert_eq!(names(&memory), [""; 0]);
}

#[test]
fn another_snapshot_takes_over_what_both_have() {
    let storage = MemoryStorage::new();
    let mut receiver = receiver(&storage);
    let mut first = outgoing(&files());
    // The offer, 3 chunks of the snapshot, all of the block file.
    drive(&mut first, &mut receiver, 1 + 3 + 71).expect("sent");
    let newer = "snapshot-00000000000000000030.tide";
    let second_files = vec![(newer, content(4, 5_000)), files().swap_remove(1)];
    let mut second = outgoing(&second_files);
    assert!(drive(&mut second, &mut receiver, 1000).expect("sent"));
    assert_eq!(second.chunk_bytes_sent(), 5_000);
    // The first one is over: its chunks are refused, and its parts are gone.
    assert!(!drive(&mut first, &mut receiver, 1).expect("sent"));
    receiver.install().expect("installed");
    has_all(&storage, &second_files);
    assert_eq!(names(&storage), [BLOCKS, newer]);
}

#[test]
fn a_file_that_was_there_and_is_removed_meanwhile_is_sent() {
    let storage = MemoryStorage::new();
    storage.put(BLOCKS, files().swap_remove(1).1);
    let mut receiver = receiver(&storage);
    let mut outgoing = outgoing(&files());
    drive(&mut outgoing, &mut receiver, 5).expect("sent");
    storage.remove(BLOCKS).expect("removed");
    assert!(drive(&mut outgoing, &mut receiver, 1000).expect("sent"));
    receiver.install().expect("installed");
    has_all(&storage, &files());
}

#[test]
fn a_file_that_is_removed_before_the_installation_is_noticed() {
    let storage = MemoryStorage::new();
    storage.put(BLOCKS, files().swap_remove(1).1);
    let mut receiver = receiver(&storage);
    assert!(drive(&mut outgoing(&files()), &mut receiver, 1000).expect("sent"));
    storage.remove(BLOCKS).expect("removed");
    let error = receiver.install().expect_err("a file is gone").to_string();
    assert!(error.contains(BLOCKS), "{error}");
    assert_eq!(names(&storage), [""; 0]);
    assert!(drive(&mut outgoing(&files()), &mut receiver, 1000).expect("sent"));
    receiver.install().expect("installed");
    has_all(&storage, &files());
}

#[test]
fn requests_of_no_sense_change_nothing() {
    let storage = MemoryStorage::new();
    storage.put("vote", b"mine".to_vec());
    let mut receiver = receiver(&storage);
    let mut random = Rng::with_seed(7);
    let offer = outgoing(&files()).next_request().expect("an offer").expect("an offer");
    for _ in 0..5_000 {
        let mut request = offer.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..request.len());
            request[at] = random.u8(..);
        }
        request.truncate(random.usize(..=request.len()));
        receiver.answer(&request);
    }
    for name in names(&storage) {
        assert!(name == "vote" || name.contains("incoming"), "{name}");
    }
    assert_eq!(storage.read("vote"), Some(b"mine".to_vec()));
    receiver.abandon().expect("removed");
    assert_eq!(names(&storage), ["vote"]);
}

/// Answers the snapshot lane with a receiver.
#[derive(Clone)]
struct Receiving {
    receiver: Arc<Mutex<SnapshotReceiver>>,
}

impl Service for Receiving {
    async fn serve(
        &self,
        from: NodeId,
        lane: Lane,
        requests: mpsc::Receiver<Bytes>,
        answers: mpsc::Sender<Vec<u8>>,
    ) {
        match lane {
            Lane::Snapshot => serve_snapshot_lane(&self.receiver, requests, answers).await,
            _ => Echo.serve(from, lane, requests, answers).await,
        }
    }
}

/// A transport that loses every n-th answer, as a connection that breaks does.
#[derive(Clone)]
struct Breaking<T> {
    inner: T,
    random: Arc<Mutex<Rng>>,
    one_in: u32,
}

impl<T: Transport> Transport for Breaking<T> {
    fn send(&self, to: NodeId, lane: Lane, frame: Vec<u8>) -> oneshot::Receiver<Bytes> {
        let answer = self.inner.send(to, lane, frame);
        if self.random.lock().expect("random").u32(..self.one_in) == 0 {
            return oneshot::channel().1;
        }
        answer
    }
}

fn large() -> Vec<(&'static str, Vec<u8>)> {
    vec![(BLOCKS, content(5, 9 << 20)), (BASE, content(6, 3 << 20))]
}

#[test]
fn a_snapshot_travels_between_members_while_heartbeats_go_on() {
    run(async {
        let directory = tempfile::tempdir().expect("a directory");
        let disk: Arc<dyn Storage> = Arc::new(FileStorage::new(directory.path()).expect("a directory"));
        let receiver = SnapshotReceiver::open(disk, LIMITS).expect("a receiver");
        let receiver = Arc::new(Mutex::new(receiver));
        let service = Receiving { receiver: Arc::clone(&receiver) };
        let one = Member::start(identity(1));
        let two = Member::start_with(identity(2), patient(), None, service);
        introduce(&[&one, &two]);
        one.connected(two.node(), Lane::Heartbeat).await;
        let sender =
            SnapshotSender::new(SenderSettings { chunk_bytes: 100_000, ..SenderSettings::default() });
        let transfer = sender.send(outgoing_files(&large()), &one.transport, two.node());
        let mut beats = 0;
        let heartbeats = async {
            loop {
                one.ask(&two, Lane::Heartbeat, b"beat").await.expect("an answer");
                beats += 1;
            }
        };
        tokio::select! {
            sent = transfer => sent.expect("sent"),
            () = heartbeats => {}
        }
        assert!(beats > 0);
        receiver.lock().expect("the receiver").install().expect("installed");
        for (name, content) in large() {
            assert!(std::fs::read(directory.path().join(name)).expect(name) == content, "{name}");
        }
    });
}

#[test]
fn a_snapshot_arrives_over_connections_that_break() {
    run(async {
        let storage = MemoryStorage::new();
        let shared = Arc::new(Mutex::new(receiver(&storage)));
        let service = Receiving { receiver: Arc::clone(&shared) };
        let one = Member::start(identity(1));
        let two = Member::start_with(identity(2), patient(), None, service);
        introduce(&[&one, &two]);
        let random = Arc::new(Mutex::new(Rng::with_seed(3)));
        let transport = Breaking { inner: one.transport.clone(), random, one_in: 20 };
        let settings = SenderSettings {
            chunk_bytes: 64 << 10,
            retry_pause: Duration::from_millis(1),
            ..SenderSettings::default()
        };
        let files = outgoing_files(&large());
        SnapshotSender::new(settings).send(files, &transport, two.node()).await.expect("sent");
        shared.lock().expect("the receiver").install().expect("installed");
        has_all(&storage, &large());
    });
}

#[test]
fn a_receiver_that_stays_away_ends_the_transfer() {
    run(async {
        let (one, two) = (Member::start(identity(1)), Member::start(identity(2)));
        two.transport.close();
        introduce(&[&one, &two]);
        until("a failure", || one.reports.errors.lock().expect("reports").pop()).await;
        let settings = SenderSettings {
            attempts: 3,
            retry_pause: Duration::from_millis(1),
            ..SenderSettings::default()
        };
        let sender = SnapshotSender::new(settings);
        let sent = sender.send(outgoing_files(&files()), &one.transport, two.node()).await;
        assert!(matches!(sent, Err(SendError::Unreachable { attempts: 3 })));
    });
}
