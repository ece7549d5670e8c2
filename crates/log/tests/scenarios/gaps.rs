//! The log never assigns an LSN twice, whatever happened to the first record: it continues after a
//! gap unless it is certain that nothing was lost.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tidemark_log::storage::faulty::{Fault, Plan};
use tidemark_log::{
    Durability, FaultyStorage, Format, Gap, Log, Lsn, MemoryStorage, OpenError, Options, RecordBatch,
    Recovery, ReplayError, SnapshotWriter, Snapshots, Storage, Verify,
};

const STRIDE: u64 = 1 << 32;

fn options() -> Options {
    Options {
        durability: Durability::Off,
        segment_bytes: Options::SEGMENT_BYTES_MIN,
        seed: Some(13),
        ..Options::default()
    }
}

fn open(storage: &MemoryStorage) -> (Log, Recovery) {
    Log::open(Arc::new(storage.clone()), options()).expect("opens")
}

fn append(log: &Log, payload: &[u8]) -> Lsn {
    log.append(0, 1, |buffer| buffer.extend_from_slice(payload)).expect("is accepted")
}

fn append_durably(log: &Log, payload: &[u8]) -> Lsn {
    let lsn = append(log, payload);
    log.wait_durable(lsn).expect("syncs");
    lsn
}

fn read_from(log: &Log, from: Lsn) -> Vec<(Lsn, Vec<u8>)> {
    let mut replay = log.replay(from).expect("begins");
    let mut records = Vec::new();
    while let Some(batch) = replay.next_batch().expect("reads") {
        records.extend(batch.iter().map(|record| (record.lsn, record.payload.to_vec())));
    }
    records
}

fn lsns_from(log: &Log, from: Lsn) -> Vec<u64> {
    read_from(log, from).into_iter().map(|(lsn, _)| lsn.0).collect()
}

/// Copies the directory as a killed process leaves it. The open log keeps the original.
fn killed(storage: &MemoryStorage) -> MemoryStorage {
    storage.fork()
}

/// Returns a seed with which a power failure keeps nothing that was not synced.
fn loses_all() -> u64 {
    let storage = MemoryStorage::with_crashes();
    (0..64).for_each(|number| assert!(storage.create(&number.to_string()).is_ok()));
    let loses = |seed: &u64| storage.crash(*seed).list().expect("lists").is_empty();
    (0..1000).find(loses).expect("some seed does")
}

/// Three records of a killed process, and one of the process after it.
fn log_with_gap() -> (MemoryStorage, Log) {
    let storage = MemoryStorage::new();
    let (log, _) = open(&storage);
    for number in 0..3 {
        append_durably(&log, &[number]);
    }
    let storage = killed(&storage);
    let (log, recovery) = open(&storage);
    assert_eq!(recovery.gap, Some(Gap { first: Lsn(4), last: Lsn(STRIDE - 1) }));
    append_durably(&log, &[3]);
    (storage, log)
}

#[test]
fn a_log_that_was_closed_goes_on_where_it_ended() {
    let storage = MemoryStorage::new();
    for number in 0..5_u8 {
        let (log, recovery) = open(&storage);
        assert_eq!((recovery.last_lsn, recovery.gap), (Lsn(u64::from(number)), None));
        assert_eq!(append(&log, &[number]), Lsn(u64::from(number) + 1));
        log.close().expect("closes");
    }
    assert!((0..10).all(|lsn| !open(&storage).0.is_lost(Lsn(lsn))));
}

#[test]
fn a_log_that_was_not_closed_goes_on_behind_everything_that_it_may_have_handed_out() {
    let (storage, log) = log_with_gap();
    assert_eq!(lsns_from(&log, Lsn(1)), [1, 2, 3, STRIDE]);
    let (again, recovery) = open(&killed(&storage));
    assert_eq!((recovery.first_lsn, recovery.last_lsn, recovery.records), (Lsn(1), Lsn(STRIDE), 4));
    assert_eq!(append(&again, b"x"), Lsn(2 * STRIDE));
    let lost = |lsn| again.is_lost(Lsn(lsn));
    assert!([4, 5, STRIDE / 2, STRIDE - 1, STRIDE + 1, 2 * STRIDE - 1].into_iter().all(lost));
    assert!(![0, 1, 3, STRIDE, 2 * STRIDE, 2 * STRIDE + 1, u64::MAX].into_iter().any(lost));
    assert_eq!(again.records_between(Lsn(2), Lsn(2 * STRIDE)), 3);
    assert_eq!(again.gaps_behind(Lsn(3)).len(), 2);
    assert_eq!(again.gaps_behind(Lsn(STRIDE)).len(), 1);
}

#[test]
fn a_log_that_lost_everything_is_not_a_new_one() {
    let storage = MemoryStorage::with_crashes();
    let (log, recovery) = open(&storage);
    assert_eq!(recovery.gap, None);
    assert_eq!(append(&log, b"reported to a listener and never written"), Lsn(1));
    let mut survivor = storage.crash(loses_all());
    for starts in 1..4 {
        let (log, recovery) = open(&survivor);
        assert_eq!((recovery.first_lsn, recovery.last_lsn, log.floor()), (Lsn(1), Lsn(0), Lsn(1)));
        assert_eq!(append(&log, b"lost as well"), Lsn(starts * STRIDE));
        assert!(log.is_lost(Lsn(1)) && log.is_lost(Lsn(starts * STRIDE - 1)));
        survivor = survivor.crash(loses_all());
    }
}

#[test]
fn a_position_in_a_gap_is_read_on_behind_it() {
    let (_, log) = log_with_gap();
    for from in [4, 5, STRIDE - 1, STRIDE] {
        assert_eq!(lsns_from(&log, Lsn(from)), [STRIDE], "{from}");
        let mut tail = log.tail(Lsn(from)).expect("begins");
        assert_eq!(tail.next_batch().expect("reads").expect("has records").first_lsn(), Lsn(STRIDE));
        assert_eq!(tail.position(), Lsn(STRIDE + 1));
    }
    assert!(matches!(log.replay(Lsn(STRIDE + 2)), Err(ReplayError::Beyond { end: Lsn(STRIDE), .. })));
}

#[test]
fn a_tail_waits_in_a_gap_for_the_first_record_behind_it() {
    let (storage, _log) = log_with_gap();
    let (log, _) = open(&killed(&storage));
    let starts = [STRIDE, STRIDE + 1, STRIDE + 2, 2 * STRIDE - 1, 2 * STRIDE];
    let mut tails = starts.map(|from| log.tail(Lsn(from)).expect("begins"));
    assert!(matches!(log.tail(Lsn(2 * STRIDE + 1)), Err(ReplayError::Beyond { .. })));
    let first = tails[0].next_batch().expect("reads").map(RecordBatch::last_lsn);
    assert_eq!(first, Some(Lsn(STRIDE)));
    assert!(tails.iter_mut().all(|tail| tail.next_committed_batch().expect("reads").is_none()));
    append_durably(&log, b"behind the gap");
    for tail in &mut tails {
        let batch = tail.next_committed_batch().expect("reads").expect("has records");
        assert_eq!((batch.first_lsn(), batch.len()), (Lsn(2 * STRIDE), 1));
    }
}

#[test]
fn starts_without_records_between_them_make_one_gap() {
    let (storage, _log) = log_with_gap();
    let mut storage = killed(&storage);
    for _ in 0..3 {
        let (log, _) = open(&storage);
        log.close().expect("closes");
        storage = killed(&storage);
        // This process is killed before it appends anything.
        drop(open(&storage.fork()));
    }
    let (log, recovery) = open(&storage);
    assert_eq!(
        recovery.gap, None,
        "it was closed: the gap is that of an earlier start, which has reported it"
    );
    let open_gap = Gap { first: Lsn(STRIDE + 1), last: Lsn(2 * STRIDE - 1) };
    assert_eq!(log.gaps_behind(Lsn(STRIDE)), [open_gap], "closed ones add none");
    assert_eq!(append_durably(&log, b"x"), Lsn(2 * STRIDE));
    assert_eq!(log.gaps_behind(Lsn(0)).len(), 2);
}

#[test]
fn every_format_has_gaps_and_may_change_in_one() {
    for (before, behind) in
        Format::ALL.into_iter().flat_map(|format| Format::ALL.map(|other| (format, other)))
    {
        let storage = MemoryStorage::new();
        let open = |storage: &MemoryStorage, format| {
            Log::open(Arc::new(storage.clone()), Options { format, ..options() }).expect("opens").0
        };
        let log = open(&storage, before);
        append_durably(&log, b"before");
        let storage = killed(&storage);
        let log = open(&storage, behind);
        append_durably(&log, b"behind");
        append_durably(&log, b"next");
        let log = open(&killed(&storage), before);
        append_durably(&log, b"last");
        let records = read_from(&log, Lsn(1));
        let expected = [(1, "before"), (STRIDE, "behind"), (STRIDE + 1, "next"), (2 * STRIDE, "last")];
        let expected = expected.map(|(lsn, text)| (Lsn(lsn), text.as_bytes().to_vec()));
        assert_eq!(records, expected, "{before}, {behind}");
    }
}

/// Returns the total bytes and the number of the files in the directory.
fn files(storage: &MemoryStorage) -> (usize, usize) {
    let names = storage.list().expect("lists");
    (names.iter().filter_map(|name| Some(storage.read(name)?.len())).sum(), names.len())
}

#[test]
fn a_hundred_kills_do_not_fill_the_disk() {
    const SEGMENT_BYTES: usize = 1 << 20;
    let options = Options { segment_bytes: SEGMENT_BYTES as u64, ..options() };
    for (records, format) in [(1, Format::Binary), (1, Format::Text), (0, Format::Binary)] {
        let mut storage = MemoryStorage::new();
        for _ in 0..100 {
            let options = Options { format, ..options.clone() };
            let (log, _) = Log::open(Arc::new(storage.clone()), options).expect("opens");
            for _ in 0..records {
                append_durably(&log, &[7; 100]);
            }
            storage = killed(&storage);
        }
        let (bytes, names) = files(&storage);
        // The current segment, a prepared one and the reserve; the others have a page and their
        // record.
        assert!(bytes <= 4 * SEGMENT_BYTES + 100 * 5000, "{bytes} bytes with {records} records in {format}");
        assert!(names <= 5 + 100 * records, "{names} files");
        let (log, recovery) = Log::open(Arc::new(storage), options.clone()).expect("opens");
        assert_eq!(recovery.records, 100 * records as u64);
        assert_eq!(read_from(&log, Lsn(1)).len(), 100 * records);
    }
}

#[test]
fn segments_that_a_power_failure_has_left_without_records_do_not_pile_up() {
    let mut storage = MemoryStorage::with_crashes();
    let (log, _) = open(&storage);
    append_durably(&log, b"stays");
    storage = storage.crash(loses_all());
    for start in 1..30 {
        let (log, recovery) = open(&storage);
        assert_eq!((recovery.last_lsn, recovery.records), (Lsn(1), 1), "{recovery:?}");
        let lsn = append(&log, b"written, and not synced");
        assert_eq!(lsn, Lsn(start * STRIDE));
        while log.written() < lsn {
            std::thread::yield_now();
        }
        storage = storage.crash(loses_all());
        let segments = storage.list().expect("lists").into_iter().filter(|name| name.starts_with("segment-"));
        assert!(segments.count() <= 3);
    }
    let (log, _) = open(&storage);
    append_durably(&log, b"stays as well");
    assert_eq!(lsns_from(&log, Lsn(1)), [1, 30 * STRIDE]);
    let segments = storage.list().expect("lists").into_iter().filter(|name| name.starts_with("segment-"));
    assert_eq!(segments.count(), 2);
}

#[test]
fn a_segment_without_records_that_its_successor_did_not_remove_is_removed_later() {
    let storage = MemoryStorage::with_crashes();
    let (log, _) = open(&storage);
    append_durably(&log, b"one");
    let storage = storage.crash(loses_all());
    let (log, _) = open(&storage);
    let lsn = append(&log, b"lost");
    while log.written() < lsn {
        std::thread::yield_now();
    }
    let storage = storage.crash(loses_all());
    let empty = format!("segment-{lsn:020}.tide", lsn = lsn.0);
    let bytes = storage.read(&empty).expect("is there");
    let (log, _) = open(&storage);
    append_durably(&log, b"two");
    log.close().expect("closes");
    assert!(storage.read(&empty).is_none());
    // As if the machine had stopped before the removal.
    storage.put(&empty, bytes);
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let inspection = tidemark_log::tools::inspect(&shared, &mut |_| ()).expect("reads");
    assert_eq!((inspection.damage(), inspection.segments.len()), (None, 2));
    let (log, recovery) = open(&storage);
    assert_eq!((recovery.gap, lsns_from(&log, Lsn(1))), (None, vec![1, 2 * STRIDE]));
    assert!(storage.read(&empty).is_none());
}

#[test]
fn a_segment_without_records_gives_the_end_of_the_log_if_nothing_else_does() {
    let storage = MemoryStorage::with_crashes();
    let (log, _) = open(&storage);
    append_durably(&log, b"one");
    let storage = storage.crash(loses_all());
    let (log, _) = open(&storage);
    let lsn = append(&log, b"lost");
    assert_eq!(lsn, Lsn(STRIDE));
    while log.written() < lsn {
        std::thread::yield_now();
    }
    let storage = storage.crash(loses_all());
    storage.remove("END").expect("is removed");
    let (log, recovery) = open(&storage);
    assert_eq!((recovery.last_lsn, append(&log, b"two")), (Lsn(1), Lsn(2 * STRIDE)));
}

#[test]
fn a_segment_that_does_not_follow_the_one_before_it_is_damage_however_little_is_verified() {
    let (storage, log) = log_with_gap();
    append_durably(&log, b"x");
    log.close().expect("closes");
    // A segment that claims to follow a record in the gap before this one.
    let mut bytes = storage.read(&format!("segment-{STRIDE:020}.tide")).expect("is there");
    bytes[16..24].copy_from_slice(&(2 * STRIDE).to_le_bytes());
    bytes[36..44].copy_from_slice(&50_u64.to_le_bytes());
    let checksum = crc32c::crc32c(&bytes[..4092]).to_le_bytes();
    bytes[4092..4096].copy_from_slice(&checksum);
    storage.put(&format!("segment-{:020}.tide", 2 * STRIDE), bytes);
    for verify in [Verify::All, Verify::Tail] {
        let opened = Log::open(Arc::new(storage.clone()), Options { verify, ..options() });
        let error = opened.expect_err("is damaged").to_string();
        assert!(error.contains("does not follow the segment before it"), "{verify:?}: {error}");
    }
}

#[test]
fn a_segment_that_is_missing_behind_a_gap_is_damage() {
    let (storage, log) = log_with_gap();
    for _ in 0..20 {
        append_durably(&log, &[9; 1000]);
    }
    let storage = killed(&storage);
    let (log, _) = open(&storage);
    append_durably(&log, b"behind another gap");
    log.close().expect("closes");
    let mut names = storage.list().expect("lists");
    names.retain(|name| name.starts_with("segment-"));
    names.sort();
    assert!(names.len() >= 4);
    for name in &names[1..names.len() - 1] {
        let damaged = storage.fork();
        damaged.remove(name).expect("is removed");
        let opened = Log::open(Arc::new(damaged), options());
        assert!(matches!(opened, Err(OpenError::Damaged(_))), "{name}");
    }
}

#[test]
fn a_snapshot_before_a_gap_is_continued_behind_it() {
    let (storage, log) = log_with_gap();
    drop(log);
    let storage = killed(&storage);
    let (log, _) = open(&storage);
    let snapshot = |log: &Log| {
        let mut writer = SnapshotWriter::create(log.storage().clone(), log.durable()).expect("begins");
        writer.write_frame(0, b"state").expect("writes");
        log.finish_snapshot(writer).expect("finishes");
    };
    append_durably(&log, b"x");
    snapshot(&log);
    let last = log.durable();
    let storage = killed(&storage);
    let (log, _) = open(&storage);
    // A snapshot at the last record before the gap, taken after it.
    snapshot(&log);
    append_durably(&log, b"y");
    log.release(last.next());
    while log.floor() < last.next() {
        std::thread::yield_now();
    }
    assert_eq!(log.floor(), last.next(), "the gap is what the log begins with");
    let snapshots = Snapshots::new(log.storage().clone());
    let (found, damaged) = snapshots.latest(log.floor()).expect("the log continues it");
    assert_eq!((found.map(|found| found.lsn()), damaged.len()), (Some(last), 0));
    let gap = log.gaps_behind(last)[0];
    assert_eq!(lsns_from(&log, last.next()), [gap.last.next().0]);
    log.close().expect("closes");
    let (log, recovery) = open(&storage);
    assert_eq!((log.floor(), recovery.first_lsn, recovery.records), (last.next(), gap.last.next(), 1));
    assert!(log.is_lost(last.next()));
    // Only the snapshot is left of the log.
    drop(log);
    for name in storage.list().expect("lists").iter().filter(|name| name.starts_with("segment-")) {
        storage.remove(name).expect("is removed");
    }
    let opened = Log::open(Arc::new(storage.clone()), options());
    assert!(matches!(opened, Err(OpenError::Missing(_))), "a record behind the snapshot was durable");
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let repair = tidemark_log::tools::plan_repair(&shared, &mut |_| ()).expect("reads").expect("a plan");
    repair.apply(&storage).expect("repairs");
    let (log, recovery) = open(&storage);
    assert_eq!((recovery.last_lsn, log.floor()), (last, last.next()));
    assert!(append(&log, b"z") > gap.last.next(), "what the log once held does not come again");
}

#[test]
fn a_damaged_note_of_the_end_is_none_and_never_an_error() {
    let storage = MemoryStorage::new();
    let (log, _) = open(&storage);
    append_durably(&log, b"x");
    log.close().expect("closes");
    let whole = storage.read("END").expect("is there");
    assert_eq!(open(&storage.fork()).1.gap, None);
    let lost = Some(Gap { first: Lsn(2), last: Lsn(STRIDE - 1) });
    let mut wrong: Vec<Vec<u8>> = [0, 1, 20].into_iter().map(|size| whole[..size].to_vec()).collect();
    wrong.push(vec![0xFF; 10_000]);
    wrong.push(whole.iter().map(|byte| byte ^ 1).collect());
    for bytes in wrong {
        let copy = storage.fork();
        copy.put("END", bytes);
        let (log, recovery) = open(&copy);
        assert_eq!((recovery.last_lsn, recovery.gap), (Lsn(1), lost));
        assert_eq!(append(&log, b"y"), Lsn(STRIDE));
        log.close().expect("closes");
        assert_eq!(open(&copy).1.gap, None, "it is written anew");
    }
    storage.remove("END").expect("is removed");
    assert_eq!(open(&storage).1.gap, lost);
}

#[test]
fn what_a_program_that_knows_of_no_gaps_has_done_in_between_is_not_believed_to_be_clean() {
    let storage = MemoryStorage::new();
    let (log, _) = open(&storage);
    append_durably(&log, b"x");
    log.close().expect("closes");
    let end = storage.read("END").expect("is there");
    let (log, _) = open(&storage);
    append_durably(&log, b"y");
    let storage = killed(&storage);
    storage.put("END", end);
    assert_eq!(open(&storage).1.gap, Some(Gap { first: Lsn(3), last: Lsn(STRIDE - 1) }));
}

#[test]
fn a_log_whose_numbers_are_used_up_says_so() {
    let storage = MemoryStorage::new();
    let last = u64::MAX - 5;
    storage.put(&format!("snapshot-{last:020}.tide"), Vec::new());
    let error = Log::open(Arc::new(storage), options()).expect_err("has no number left");
    assert!(matches!(error, OpenError::Exhausted { last: Lsn(at) } if at == last), "{error}");
}

#[derive(Clone, Debug)]
enum Step {
    Append {
        records: usize,
        bytes: usize,
    },
    Sync,
    Close,
    /// The process ends; its writes survive while the machine runs.
    Kill,
    /// Loses part of what was not synced, depending on the seed.
    PowerFailure {
        seed: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..8_usize, 0..1500_usize).prop_map(|(records, bytes)| Step::Append { records, bytes }),
        2 => Just(Step::Sync),
        1 => Just(Step::Close),
        2 => Just(Step::Kill),
        3 => any::<u64>().prop_map(|seed| Step::PowerFailure { seed }),
    ]
}

fn durability() -> impl Strategy<Value = Durability> {
    let interval = Durability::Interval(Duration::from_millis(1));
    prop_oneof![Just(Durability::Off), Just(Durability::Always), Just(interval)]
}

/// A log that is killed and reopened, and the state expected of it.
struct World {
    memory: MemoryStorage,
    storage: FaultyStorage,
    log: Log,
    options: Options,
    /// Every record ever appended.
    handed_out: Vec<(Lsn, Vec<u8>)>,
    /// The records in the log.
    records: Vec<(Lsn, Vec<u8>)>,
    /// The gap before the next record.
    gap: Option<Gap>,
}

impl World {
    fn new(options: Options) -> Self {
        let memory = MemoryStorage::with_crashes();
        let storage = FaultyStorage::new(Arc::new(memory.clone()), None);
        let (log, _) = Log::open(Arc::new(storage.clone()), options.clone()).expect("opens");
        Self { memory, storage, log, options, handed_out: Vec::new(), records: Vec::new(), gap: None }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Append { records, bytes } => (0..*records).for_each(|_| self.append(*bytes)),
            Step::Sync => self.log.wait_durable(self.log.appended()).expect("syncs"),
            Step::Close => {
                self.log.close().expect("closes");
                self.come_back(self.records.len(), true);
            }
            Step::Kill => {
                let kept = self.count_up_to(self.log.written());
                // From now on the process has no visible effects.
                let fault = Fault::Error(io::ErrorKind::NotConnected);
                self.storage.set_plan(Some(Plan { fault, at: 1, site: None, forever: true, seed: 0 }));
                let _ = self.log.close();
                self.come_back(kept, false);
            }
            Step::PowerFailure { seed } => {
                let kept = self.count_up_to(self.log.durable());
                let survivor = self.memory.crash(*seed);
                self.memory = survivor;
                self.come_back(kept, false);
            }
        }
    }

    fn append(&mut self, bytes: usize) {
        let number = self.handed_out.len() as u64;
        let mut payload = number.to_le_bytes().to_vec();
        payload.resize(8 + bytes, number as u8);
        let lsn = append(&self.log, &payload);
        let newest = self.handed_out.last().map_or(Lsn(0), |(lsn, _)| *lsn);
        assert!(lsn > newest, "{lsn} was handed out already, up to {newest}");
        let last = self.records.last().map_or(Lsn(0), |(lsn, _)| *lsn);
        assert_eq!(lsn, self.gap.map_or(last.next(), |gap| gap.last.next()));
        self.gap = None;
        self.handed_out.push((lsn, payload.clone()));
        self.records.push((lsn, payload));
    }

    fn count_up_to(&self, lsn: Lsn) -> usize {
        self.records.iter().filter(|(at, _)| *at <= lsn).count()
    }

    /// Reopens the log, which must have at least `kept` records.
    fn come_back(&mut self, kept: usize, clean: bool) {
        self.storage = FaultyStorage::new(Arc::new(self.memory.clone()), None);
        let (log, recovery) = Log::open(Arc::new(self.storage.clone()), self.options.clone()).expect("opens");
        self.log = log;
        let found = read_from(&self.log, Lsn(1));
        assert!(found.len() >= kept, "{} records of {kept}", found.len());
        assert!(self.records.starts_with(&found), "what is read was written, in this order");
        self.records = found;
        assert_eq!(recovery.records, self.records.len() as u64);
        assert_eq!(recovery.last_lsn, self.records.last().map_or(Lsn(0), |(lsn, _)| *lsn));
        let gap = self.log.gaps_behind(recovery.last_lsn).first().copied();
        assert_eq!(recovery.gap, if clean { None } else { gap });
        assert!(if clean { gap == self.gap } else { gap.is_some() });
        self.gap = gap;
        self.check_gaps();
    }

    /// Checks that exactly the LSNs between two records, or between the last and the next one, are
    /// lost.
    fn check_gaps(&self) {
        let next = self.gap.map(|gap| gap.last.next());
        let mut before = Lsn(0);
        for lsn in self.records.iter().map(|(lsn, _)| *lsn).chain(next) {
            assert!(!self.log.is_lost(before) && !self.log.is_lost(lsn));
            let between = [before.next(), Lsn(u64::midpoint(before.0, lsn.0)), lsn.previous()];
            for lost in between.into_iter().filter(|lost| before < *lost && *lost < lsn) {
                assert!(self.log.is_lost(lost), "{lost}");
                let behind = self.records.iter().find(|(at, _)| *at > lost).map(|(at, _)| *at);
                let first = read_from(&self.log, lost).first().map(|(at, _)| *at);
                assert_eq!(first, behind);
            }
            before = lsn;
        }
        assert!(!self.log.is_lost(before.next()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_lsn_is_handed_out_twice_and_nothing_durable_is_lost(
        format in prop::sample::select(&Format::ALL[..]),
        durability in durability(),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut world = World::new(Options { format, durability, recycle: 1, ..options() });
        steps.iter().for_each(|step| world.take(step));
        world.take(&Step::Close);
        prop_assert_eq!(read_from(&world.log, Lsn(1)), world.records.clone());
    }
}
