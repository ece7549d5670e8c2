//! Repair and truncation after any damage: either a server starts from the result, or the tools
//! refuse and change nothing.

use std::sync::Arc;

use proptest::prelude::*;
use tidemark_log::tools::{self, Cut, Inspection, ToolError};
use tidemark_log::{
    Durability, Format, Log, Lsn, MemoryStorage, OpenError, Options, SnapshotWriter, Snapshots, Storage,
};

const RECORD_BYTES: usize = 500;

fn options(format: Format) -> Options {
    Options {
        durability: Durability::Always,
        segment_bytes: Options::SEGMENT_BYTES_MIN,
        format,
        seed: Some(3),
        ..Options::default()
    }
}

fn shared(storage: &MemoryStorage) -> Arc<dyn Storage> {
    Arc::new(storage.clone())
}

fn payload(lsn: Lsn) -> [u8; RECORD_BYTES] {
    [lsn.0 as u8; RECORD_BYTES]
}

fn append(log: &Log) -> Lsn {
    let next = log.appended().next();
    let next = if log.is_lost(next) { log.gaps_behind(next)[0].last.next() } else { next };
    let lsn = log.append(next.0, 1, |buffer| buffer.extend_from_slice(&payload(next))).expect("is accepted");
    assert_eq!(lsn, next);
    log.wait_durable(lsn).expect("syncs");
    lsn
}

/// Takes a full snapshot, or an incremental one on `base`.
fn take_snapshot(log: &Log, base: Option<Lsn>) {
    let (storage, at) = (log.storage().clone(), log.durable());
    let writer = match base {
        Some(base) => SnapshotWriter::create_on(storage, at, base),
        None => SnapshotWriter::create(storage, at),
    };
    let mut writer = writer.expect("begins");
    writer.write_frame(0, &at.0.to_le_bytes()).expect("writes");
    log.finish_snapshot(writer).expect("finishes");
}

/// A log with several segments, and full snapshots at these records.
fn log_with(format: Format, lives: &[u64], snapshots: &[u64]) -> MemoryStorage {
    let mut storage = MemoryStorage::new();
    let mut appended = 0;
    for (index, records) in lives.iter().enumerate() {
        let (log, _) = Log::open(shared(&storage), options(format)).expect("opens");
        for _ in 0..*records {
            append(&log);
            appended += 1;
            if snapshots.contains(&appended) {
                take_snapshot(&log, None);
            }
        }
        // Every session but the last ends with a kill.
        let killed = storage.fork();
        log.close().expect("closes");
        storage = if index + 1 < lives.len() { killed } else { storage };
    }
    storage
}

fn inspect(storage: &MemoryStorage) -> Inspection {
    tools::inspect(&shared(storage), &mut |_| ()).expect("reads")
}

fn files(storage: &MemoryStorage, prefix: &str) -> Vec<String> {
    let mut names = storage.list().expect("lists");
    names.retain(|name| name.starts_with(prefix));
    names.sort();
    names
}

fn contents(storage: &MemoryStorage) -> Vec<(String, Vec<u8>)> {
    let mut names = storage.list().expect("lists");
    names.sort();
    names.into_iter().map(|name| (name.clone(), storage.read(&name).expect("exists"))).collect()
}

fn change(storage: &MemoryStorage, name: &str, how: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = storage.read(name).expect("exists");
    how(&mut bytes);
    storage.put(name, bytes);
}

fn plan(storage: &MemoryStorage) -> Result<Option<Cut>, ToolError> {
    tools::plan_repair(&shared(storage), &mut |_| ())
}

fn repair(storage: &MemoryStorage) -> Cut {
    let cut = plan(storage).expect("reads").expect("is damaged");
    cut.apply(storage).expect("repairs");
    assert_starts(storage, Some(cut.last_lsn), "repaired");
    cut
}

/// Asserts that a server starts, from a snapshot and the records after it or from all records, and
/// that the log ends at `last`, if given.
fn assert_starts(storage: &MemoryStorage, last: Option<Lsn>, case: &str) {
    let found = inspect(storage);
    assert!(
        found.damage().is_none() && found.missing.is_none() && found.no_base.is_none(),
        "{case}: {found:?}"
    );
    assert_eq!(plan(storage).expect(case), None, "{case}");
    let (log, recovery) =
        Log::open(shared(storage), options(Format::Binary)).unwrap_or_else(|error| panic!("{case}: {error}"));
    assert!(last.is_none_or(|last| recovery.last_lsn == last), "{case}: {recovery:?}, {last:?}");
    let latest = Snapshots::new(shared(storage)).latest(log.floor());
    let (snapshot, _) = latest.unwrap_or_else(|error| panic!("{case}: {error}"));
    let covered = snapshot.map_or(Lsn::ZERO, |snapshot| {
        snapshot.read_section(0, |frame| assert_eq!(frame, snapshot.lsn().0.to_le_bytes())).expect(case);
        snapshot.lsn()
    });
    let mut replay = log.replay(covered.next()).unwrap_or_else(|error| panic!("{case}: {error}"));
    let mut end = covered;
    while let Some(batch) = replay.next_batch().unwrap_or_else(|error| panic!("{case}: {error}")) {
        for record in batch {
            assert!(record.payload == payload(record.lsn), "{case}: {record:?}");
            end = record.lsn;
        }
    }
    assert_eq!(end, recovery.last_lsn, "{case}");
}

#[test]
fn a_header_that_is_damaged_costs_no_record() {
    for format in Format::ALL {
        let storage = log_with(format, &[20, 20], &[]);
        let names = files(&storage, "segment-");
        let end = inspect(&storage).last_lsn();
        let header_bytes = |name| {
            let bytes = storage.read(name).expect("exists");
            if format == Format::Binary {
                4096
            } else {
                bytes.iter().position(|b| *b == b'\n').expect("a line")
            }
        };
        // In a segment with a single frame, nothing proves the frame whole.
        let is_proven = |name: &&String| {
            inspect(&storage).segments.iter().any(|segment| segment.name == **name && segment.records() > 1)
        };
        for name in names.iter().filter(is_proven) {
            let size = header_bytes(name);
            for at in (0..size).step_by(if format == Format::Binary { 241 } else { 5 }) {
                let damaged = storage.fork();
                change(&damaged, name, |bytes| bytes[at] ^= 1 << (at % 8));
                assert!(matches!(Log::open(shared(&damaged), options(format)), Err(OpenError::Damaged(_))));
                let cut = repair(&damaged);
                assert_eq!((cut.last_lsn, cut.lost), (end, None), "{format}, {name}, byte {at}");
                let aside = format!("cut-{name}-header");
                assert!(damaged.list().expect("lists").contains(&aside), "{format}, {name}, byte {at}");
            }
            let zeroed = storage.fork();
            change(&zeroed, name, |bytes| bytes[..size].fill(0));
            assert_eq!(repair(&zeroed).last_lsn, end, "{format}, {name}");
        }
    }
    let all = log_with(Format::Binary, &[18, 18], &[]);
    files(&all, "segment-").iter().for_each(|name| change(&all, name, |bytes| bytes[3] ^= 1));
    assert_eq!(repair(&all).last_lsn, Lsn((1 << 32) + 17));
}

#[test]
fn a_header_and_a_record_that_are_damaged_cost_what_is_behind_the_record() {
    let storage = log_with(Format::Binary, &[40], &[]);
    let name = &files(&storage, "segment-")[1];
    change(&storage, name, |bytes| bytes[20] ^= 1);
    change(&storage, name, |bytes| bytes[4096 + 1400] ^= 1);
    let first: u64 = name[8..28].parse().expect("the first record is in the name");
    let cut = repair(&storage);
    assert!(cut.last_lsn >= Lsn(first) && cut.last_lsn < Lsn(first + 3), "{cut:?}");
}

#[test]
fn a_newer_snapshot_that_is_damaged_does_not_stay_before_the_one_that_saves_the_log() {
    let storage = log_with(Format::Binary, &[60], &[20, 50]);
    let newest = &files(&storage, "snapshot-")[1];
    change(&storage, newest, |bytes| bytes[40] ^= 1);
    let holds = |name: &&String| name[8..28].parse::<u64>().expect("the first record is in the name") <= 20;
    let segments = files(&storage, "segment-");
    let name = segments.iter().rfind(holds).expect("the log reaches back to the older one");
    change(&storage, name, |bytes| bytes[4096 + 10] ^= 1);
    let cut = repair(&storage);
    assert_eq!(cut.last_lsn, Lsn(20));
    // The state in which an earlier version leaves such a log.
    let left = log_with(Format::Binary, &[60], &[20, 50]);
    files(&left, "segment-").iter().for_each(|name| left.remove(name).expect("is removed"));
    left.remove("END").expect("is removed");
    change(&left, newest, |bytes| bytes[40] ^= 1);
    assert_eq!(repair(&left).last_lsn, Lsn(20));
}

#[test]
fn truncating_behind_damage_is_refused_and_changes_nothing() {
    let storage = log_with(Format::Binary, &[40], &[]);
    let name = &files(&storage, "segment-")[1];
    change(&storage, name, |bytes| bytes[4096 + 1400] ^= 1);
    let before = contents(&storage);
    let truncate = |last| tools::plan_truncate(&shared(&storage), Lsn(last), &mut |_| ());
    let error = truncate(38).expect_err("nothing starts from there");
    assert!(matches!(error, ToolError::Open(OpenError::Damaged(_)) | ToolError::Damaged(_)), "{error}");
    assert_eq!(contents(&storage), before);
    truncate(5).expect("is before the damage").apply(&storage).expect("truncates");
    assert_starts(&storage, Some(Lsn(5)), "truncated");
}

#[test]
fn a_repair_that_would_leave_nothing_to_start_from_is_refused() {
    let storage = log_with(Format::Binary, &[60], &[20, 40]);
    let first = &files(&storage, "segment-")[0];
    assert_ne!(first, "segment-00000000000000000001.tide", "the log begins late");
    change(&storage, first, |bytes| bytes[4096 + 10] ^= 1);
    files(&storage, "snapshot-").iter().for_each(|name| change(&storage, name, |bytes| bytes[40] ^= 1));
    let before = contents(&storage);
    let error = plan(&storage).expect_err("only a backup helps").to_string();
    assert!(error.contains("backup"), "{error}");
    assert_eq!(contents(&storage), before);
}

#[test]
fn a_first_record_that_is_damaged_like_its_header_is_not_taken_for_whole() {
    let storage = log_with(Format::Binary, &[40], &[]);
    let name = &files(&storage, "segment-")[1];
    change(&storage, name, |bytes| bytes[20] ^= 1);
    change(&storage, name, |bytes| bytes[4096 + 100] ^= 1);
    let first: u64 = name[8..28].parse().expect("the first record is in the name");
    assert_eq!(repair(&storage).last_lsn, Lsn(first - 1));
}

/// Damage to a file of the log.
#[derive(Clone, Debug)]
enum Damage {
    Flip { at_permille: usize, bit: u8 },
    Zero { at_permille: usize, bytes: usize },
    Shorten { to_permille: usize },
    Remove,
}

impl Damage {
    fn any() -> impl Strategy<Value = Self> {
        let at = || prop_oneof![0_usize..1000, Just(0)];
        prop_oneof![
            4 => (at(), 0_u8..8).prop_map(|(at_permille, bit)| Self::Flip { at_permille, bit }),
            2 => (at(), 1_usize..6000).prop_map(|(at_permille, bytes)| Self::Zero { at_permille, bytes }),
            1 => (0_usize..1000).prop_map(|to_permille| Self::Shorten { to_permille }),
            1 => Just(Self::Remove),
        ]
    }

    fn apply(&self, storage: &MemoryStorage, name: &str) {
        change(storage, name, |bytes| {
            let size = bytes.len();
            match *self {
                Self::Flip { at_permille, bit } => {
                    if let Some(byte) = bytes.get_mut(size * at_permille / 1000) {
                        *byte ^= 1 << bit;
                    }
                }
                Self::Zero { at_permille, bytes: count } => {
                    let from = size * at_permille / 1000;
                    bytes[from..size.min(from + count)].fill(0);
                }
                Self::Shorten { to_permille } => bytes.truncate(size * to_permille / 1000),
                Self::Remove => {}
            }
        });
        if matches!(self, Self::Remove) {
            storage.remove(name).expect("is removed");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_is_damaged_what_is_left_starts_or_nothing_is_changed(
        format in prop::sample::select(&Format::ALL[..]),
        lives in prop::collection::vec(1_u64..30, 1..4),
        snapshots in prop::collection::vec(1_u64..60, 0..4),
        damages in prop::collection::vec((0_usize..20, Damage::any()), 1..4),
        last in 1_u64..60,
    ) {
        let storage = log_with(format, &lives, &snapshots);
        for (index, damage) in &damages {
            let mut names = files(&storage, "segment-");
            names.extend(files(&storage, "snapshot-"));
            if let Some(name) = names.get(index % names.len().max(1)) {
                damage.apply(&storage, name);
            }
        }
        let before = contents(&storage);
        let truncated = storage.fork();
        match plan(&storage) {
            Ok(cut) => {
                if let Some(cut) = &cut {
                    cut.apply(&storage).expect("repairs");
                }
                assert_starts(&storage, cut.as_ref().map(|cut| cut.last_lsn), "repaired");
            }
            Err(ToolError::Snapshot(_) | ToolError::NoBase { .. }) => prop_assert_eq!(contents(&storage), before),
            Err(error) => panic!("{error}"),
        }
        if let Ok(cut) = tools::plan_truncate(&shared(&truncated), Lsn(last), &mut |_| ()) {
            cut.apply(&truncated).expect("truncates");
            assert_starts(&truncated, Some(Lsn(last)), "truncated");
        }
    }
}
