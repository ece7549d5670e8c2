//! Inspecting, exporting, repairing and truncating a closed log.

use std::sync::Arc;

use tidemark_log::tools::{self, Inspection, SegmentReport, SegmentState, ToolError};
use tidemark_log::{
    Durability, Format, Gap, Log, Lsn, MemoryStorage, OpenError, Options, SnapshotWriter, Snapshots, Storage,
};

fn options() -> Options {
    Options {
        durability: Durability::Always,
        segment_bytes: Options::SEGMENT_BYTES_MIN,
        seed: Some(2),
        ..Options::default()
    }
}

fn shared(storage: &MemoryStorage) -> Arc<dyn Storage> {
    Arc::new(storage.clone())
}

/// A closed log of 40 records in about 6 segments, with a snapshot at `snapshot_at`.
fn sample(snapshot_at: Option<u64>) -> MemoryStorage {
    let storage = MemoryStorage::new();
    let (log, _) = Log::open(shared(&storage), options()).expect("opens");
    for number in 1..=40_u64 {
        log.append(number, 1, |buffer| buffer.extend_from_slice(&[number as u8; 500])).expect("is accepted");
        log.wait_durable(Lsn(number)).expect("syncs");
        if snapshot_at == Some(number) {
            let mut writer = SnapshotWriter::create(shared(&storage), Lsn(number)).expect("begins");
            writer.write_frame(0, b"state").expect("writes");
            log.finish_snapshot(writer).expect("finishes");
        }
    }
    log.close().expect("closes");
    storage
}

fn inspect(storage: &MemoryStorage) -> Inspection {
    tools::inspect(&shared(storage), &mut |_| ()).expect("reads")
}

/// Inverts a bit in the middle of the records of a segment; returns the first lost record.
fn damage(storage: &MemoryStorage, index: usize) -> Lsn {
    let name = inspect(storage).segments[index].name.clone();
    let mut bytes = storage.read(&name).expect("exists");
    bytes[4096 + 1000] ^= 4;
    storage.put(&name, bytes);
    assert!(matches!(Log::open(shared(storage), options()), Err(OpenError::Damaged(_))));
    inspect(storage).damage().expect("is damaged").expected
}

fn repair(storage: &MemoryStorage) -> (tools::Cut, Vec<String>) {
    let cut = tools::plan_repair(&shared(storage), &mut |_| ()).expect("reads").expect("is damaged");
    let aside = cut.apply(storage).expect("repairs");
    (cut, aside)
}

/// Opens the log, and checks its end and that it accepts records.
fn assert_ends_at(storage: &MemoryStorage, first: Lsn, last: Lsn) {
    let (log, recovery) = Log::open(shared(storage), options()).expect("opens");
    assert_eq!((log.floor(), recovery.last_lsn, recovery.torn), (first, last, None));
    let mut replay = log.replay(first).expect("begins");
    while let Some(batch) = replay.next_batch().expect("reads") {
        assert!(batch.iter().all(|record| record.payload == [record.lsn.0 as u8; 500]));
    }
    let next = log.append(0, 1, |buffer| buffer.extend_from_slice(&[last.next().0 as u8; 500]));
    assert_eq!(next.expect("is accepted"), Lsn(1 << 32), "LSNs of what was taken out do not come again");
    log.close().expect("closes");
    let (_, recovery) = Log::open(shared(storage), options()).expect("opens again");
    assert_eq!((recovery.last_lsn, recovery.gap), (Lsn(1 << 32), None));
}

#[test]
fn a_good_log_is_described_as_it_is() {
    let storage = sample(Some(40));
    let mut bytes = 0;
    let inspection = tools::inspect(&shared(&storage), &mut |read| bytes += read).expect("reads");
    assert_eq!((inspection.first_lsn(), inspection.last_lsn()), (Lsn(1), Lsn(40)));
    assert!(inspection.segments.iter().all(|segment| segment.state == SegmentState::Whole));
    assert!(bytes > 40 * 500);
    assert_eq!(inspection.snapshots.len(), 1);
    assert_eq!(inspection.snapshots[0].content, Ok((1, 5)));
    assert_eq!(tools::plan_repair(&shared(&storage), &mut |_| ()).expect("reads"), None);
}

#[test]
fn repair_keeps_everything_before_the_damage_and_sets_the_rest_aside() {
    let storage = sample(None);
    let lost = damage(&storage, 2);
    let (cut, aside) = repair(&storage);
    assert_eq!((cut.last_lsn, cut.lost), (lost.previous(), Some((lost, Lsn(40)))));
    assert!(aside.len() >= 2 && aside.iter().all(|name| storage.read(name).is_some()));
    assert_ends_at(&storage, Lsn(1), lost.previous());
}

#[test]
fn repair_sets_a_segment_with_an_unreadable_header_aside() {
    let storage = sample(None);
    let segment = inspect(&storage).segments[3].clone();
    let mut bytes = storage.read(&segment.name).expect("exists");
    bytes[20] ^= 1;
    // With the first record damaged as well, the header cannot be reconstructed.
    bytes[4096 + 10] ^= 1;
    storage.put(&segment.name, bytes);
    repair(&storage);
    assert_ends_at(&storage, Lsn(1), segment.first_lsn.previous());
}

#[test]
fn a_snapshot_behind_the_damage_saves_what_it_covers() {
    let storage = sample(Some(30));
    damage(&storage, 1);
    let (cut, _) = repair(&storage);
    assert_eq!((cut.last_lsn, cut.lost), (Lsn(40), None));
    let first = inspect(&storage).first_lsn();
    assert!(first > Lsn(10) && first <= Lsn(31));
    assert_ends_at(&storage, first, Lsn(40));

    let storage = sample(Some(40));
    damage(&storage, 1);
    let (cut, _) = repair(&storage);
    assert_eq!((cut.last_lsn, cut.lost), (Lsn(40), None));
}

#[test]
fn truncate_sets_everything_later_aside() {
    let storage = sample(Some(30));
    let cut = tools::plan_truncate(&shared(&storage), Lsn(17), &mut |_| ()).expect("reads");
    cut.apply(&storage).expect("truncates");
    let copy = storage.fork();
    damage(&copy, 0);
    assert_ends_at(&storage, Lsn(1), Lsn(17));
    let error = tools::plan_truncate(&shared(&storage), Lsn(99), &mut |_| ()).expect_err("is not there");
    assert!(matches!(error, ToolError::NoSuchRecord { wanted: Lsn(99), .. }), "{error}");
}

#[test]
fn an_incremental_snapshot_is_described_and_set_aside_by_its_own_name() {
    let storage = sample(Some(10));
    let (lsn, base) = (Lsn(30), Lsn(10));
    let mut writer = SnapshotWriter::create_on(shared(&storage), lsn, base).expect("begins");
    writer.keep_section(0);
    writer.write_frame(1, b"more").expect("writes");
    writer.finish().expect("finishes");
    let inspection = inspect(&storage);
    let [whole, incremental] = &inspection.snapshots[..] else { panic!("{:?}", inspection.snapshots) };
    assert_eq!((whole.lsn, whole.base, &whole.content), (base, None, &Ok((1, 5))));
    assert_eq!((incremental.lsn, incremental.base, &incremental.content), (lsn, Some(base), &Ok((2, 9))));

    let copy = storage.fork();
    damage(&copy, 1);
    let (cut, _) = repair(&copy);
    assert_eq!((cut.last_lsn, cut.lost), (Lsn(40), None), "it saves what it covers");

    let cut = tools::plan_truncate(&shared(&storage), Lsn(17), &mut |_| ()).expect("reads");
    assert!(cut.files.contains(&incremental.name) && !cut.files.contains(&whole.name), "{:?}", cut.files);
    cut.apply(&storage).expect("truncates");
    assert_ends_at(&storage, Lsn(1), Lsn(17));
}

/// Removes the oldest segments, as retention does, and returns the first remaining record.
fn forget_oldest(storage: &MemoryStorage, count: usize) -> Lsn {
    let segments = inspect(storage).segments;
    segments.iter().take(count).for_each(|segment| storage.remove(&segment.name).expect("is removed"));
    segments[count].first_lsn
}

#[test]
fn truncate_leaves_nothing_that_cannot_start() {
    let storage = sample(Some(30));
    let floor = forget_oldest(&storage, 2);
    assert!(floor > Lsn(1) && floor < Lsn(20));
    let plan = |last| tools::plan_truncate(&shared(&storage), last, &mut |_| ());
    let error = plan(Lsn(20)).expect_err("leaves no snapshot under the records");
    assert!(matches!(error, ToolError::NoBase { last: Lsn(20), first } if first == floor), "{error}");
    // An unreadable snapshot does not count.
    let name = storage.list().expect("lists").into_iter().find(|name| name.starts_with("snapshot-"));
    let name = name.expect("there is a snapshot");
    let whole = storage.read(&name).expect("exists");
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    storage.put(&name, damaged);
    assert!(matches!(plan(Lsn(33)), Err(ToolError::NoBase { .. })));
    storage.put(&name, whole);
    plan(Lsn(33)).expect("the snapshot stays").apply(&storage).expect("truncates");
    assert_ends_at(&storage, floor, Lsn(33));
}

/// Returns the error of `inspect`, and checks that opening the directory gives the same.
fn no_base(storage: &MemoryStorage) -> Option<String> {
    let said = inspect(storage).no_base.map(|error| error.to_string());
    let (log, _) = Log::open(shared(storage), options()).expect("opens");
    let latest = Snapshots::new(shared(storage)).latest(log.floor());
    assert_eq!(said, latest.err().map(|error| error.to_string()));
    said
}

#[test]
fn a_log_that_begins_late_needs_a_snapshot_under_it() {
    let storage = sample(Some(30));
    assert_eq!(no_base(&storage), None);
    let floor = forget_oldest(&storage, 2);
    assert_eq!(no_base(&storage), None);
    let name = storage.list().expect("lists").into_iter().find(|name| name.starts_with("snapshot-"));
    let name = name.expect("there is a snapshot");

    let damaged = storage.fork();
    let mut bytes = damaged.read(&name).expect("exists");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    damaged.put(&name, bytes);
    let said = no_base(&damaged).expect("the snapshot is needed");
    assert!(said.contains(&name) && said.contains("restore the directory from a backup"), "{said}");

    let bare = storage.fork();
    bare.remove(&name).expect("is removed");
    let said = no_base(&bare).expect("a snapshot is needed");
    let at = floor.previous();
    assert!(said.starts_with(&format!("there is no snapshot at record {at} or later")), "{said}");
    let error =
        tools::plan_repair(&shared(&bare), &mut |_| ()).expect_err("there is nothing to repair it with");
    assert_eq!(error.to_string(), said);

    // The records between the snapshot and the rest of the log are missing.
    let apart = storage.fork();
    let kept = inspect(&apart).segments.pop().expect("there is one");
    assert!(kept.first_lsn > Lsn(31));
    for segment in inspect(&apart).segments.iter().filter(|segment| segment.name != kept.name) {
        apart.remove(&segment.name).expect("is removed");
    }
    assert!(no_base(&apart).is_some());

    // A complete log needs no base, and a snapshot alone is its own base.
    let whole = sample(None);
    assert_eq!(no_base(&whole), None);
    let alone = sample(Some(40));
    forget_segments(&alone);
    assert_eq!(no_base(&alone), None);
}

fn forget_segments(storage: &MemoryStorage) {
    for segment in inspect(storage).segments {
        storage.remove(&segment.name).expect("is removed");
    }
}

#[test]
fn a_log_without_records_says_so() {
    let storage = sample(None);
    storage.remove("END").expect("is removed");
    forget_segments(&storage);
    let error = tools::plan_truncate(&shared(&storage), Lsn(5), &mut |_| ()).expect_err("is not there");
    assert_eq!(error.to_string(), "the log holds no records; 5 is not among them");
}

#[test]
fn an_export_from_before_the_oldest_record_says_what_there_is() {
    let storage = sample(Some(30));
    let floor = forget_oldest(&storage, 2);
    let error = tools::export(&shared(&storage), Lsn(2), Lsn(30), Format::Text, &mut Vec::new(), &mut |_| ());
    let error = error.expect_err("is not there").to_string();
    assert_eq!(error, format!("the log holds the records {floor} to 40; 2 is not among them"));
}

/// Ten records, a kill, and ten more after a gap, closed.
fn sample_with_gap() -> MemoryStorage {
    let mut storage = MemoryStorage::new();
    for _ in 0..2 {
        storage = storage.fork();
        let (log, _) = Log::open(shared(&storage), options()).expect("opens");
        for _ in 0..10 {
            let lsn = log.append(0, 1, |buffer| buffer.extend_from_slice(&[7; 500])).expect("is accepted");
            log.wait_durable(lsn).expect("syncs");
        }
        // The first process is killed: its later writes go to an abandoned directory.
        storage = if log.recovered() == Lsn(0) { storage.fork() } else { storage };
        log.close().expect("closes");
    }
    storage
}

const BEHIND: Lsn = Lsn(1 << 32);
const END: Lsn = Lsn((1 << 32) + 9);

#[test]
fn a_log_with_a_gap_is_good_and_its_gap_is_shown() {
    let storage = sample_with_gap();
    let inspection = inspect(&storage);
    assert!(inspection.segments.iter().all(|segment| segment.state == SegmentState::Whole));
    assert_eq!((inspection.first_lsn(), inspection.last_lsn()), (Lsn(1), END));
    assert_eq!(inspection.segments.iter().map(SegmentReport::records).sum::<u64>(), 20);
    let gaps: Vec<Gap> = inspection.segments.iter().filter_map(SegmentReport::gap).collect();
    assert_eq!(gaps, [Gap { first: Lsn(11), last: BEHIND.previous() }]);
    assert_eq!(tools::plan_repair(&shared(&storage), &mut |_| ()).expect("reads"), None);
}

#[test]
fn a_closed_log_is_still_closed_after_it_was_looked_at() {
    let storage = sample_with_gap();
    inspect(&storage);
    let export = |format| tools::export(&shared(&storage), Lsn(1), END, format, &mut Vec::new(), &mut |_| ());
    assert_eq!(export(Format::Text).expect("exports"), 20);
    let (log, recovery) = Log::open(shared(&storage), options()).expect("opens");
    assert_eq!((recovery.last_lsn, recovery.gap), (END, None));
    log.close().expect("closes");
}

#[test]
fn a_binary_export_stops_at_a_gap_and_says_how_to_go_on() {
    let storage = sample_with_gap();
    let export = |from, to| {
        let mut output = Vec::new();
        tools::export(&shared(&storage), from, to, Format::Binary, &mut output, &mut |_| ())
            .map(|count| (count, output))
    };
    let error = export(Lsn(1), END).expect_err("no segment has a gap");
    assert!(matches!(error, ToolError::Gap { before: Lsn(10), behind: BEHIND }), "{error}");
    for (from, to, first, count) in
        [(Lsn(1), Lsn(10), Lsn(1), 10), (Lsn(3), BEHIND.previous(), Lsn(3), 8), (Lsn(500), END, BEHIND, 10)]
    {
        let (exported, output) = export(from, to).expect("lies on one side");
        assert_eq!(exported, count, "{from} to {to}");
        let copy = MemoryStorage::new();
        copy.put(&format!("segment-{first:020}.tide", first = first.0), output);
        let (_, recovery) = Log::open(shared(&copy), options()).expect("an export is a segment");
        assert_eq!((recovery.first_lsn, recovery.records), (first, count));
    }
}

#[test]
fn truncating_on_either_side_of_a_gap_leaves_another() {
    for (last, next) in [(Lsn(4), 2 << 32), (Lsn(10), 2 << 32), (BEHIND, 2 << 32), (END, 2 << 32)] {
        let storage = sample_with_gap();
        let cut = tools::plan_truncate(&shared(&storage), last, &mut |_| ()).expect("reads");
        cut.apply(&storage).expect("truncates");
        let (log, recovery) = Log::open(shared(&storage), options()).expect("opens");
        assert_eq!((recovery.last_lsn, recovery.torn), (last, None));
        let lsn = log.append(0, 1, |buffer| buffer.push(1)).expect("is accepted");
        assert_eq!(lsn, Lsn(next), "after {last}");
    }
    let storage = sample_with_gap();
    let error = tools::plan_truncate(&shared(&storage), Lsn(500), &mut |_| ()).expect_err("is in the gap");
    assert!(matches!(error, ToolError::NoSuchRecord { wanted: Lsn(500), .. }), "{error}");
}

#[test]
fn damage_behind_a_gap_is_repaired_back_to_before_it() {
    let behind = format!("segment-{BEHIND:020}.tide", BEHIND = BEHIND.0);
    // Damage to the first record, alone and together with the header.
    for offset in [4096 + 10, 20] {
        let storage = sample_with_gap();
        let mut bytes = storage.read(&behind).expect("is there");
        bytes[4096 + 10] ^= 1;
        if offset < 4096 {
            bytes[offset] ^= 1;
        }
        storage.put(&behind, bytes);
        assert!(matches!(Log::open(shared(&storage), options()), Err(OpenError::Damaged(_))));
        let (cut, _) = repair(&storage);
        assert_eq!(cut.last_lsn, Lsn(10), "byte {offset}");
        let (log, recovery) = Log::open(shared(&storage), options()).expect("opens");
        assert_eq!(
            (recovery.last_lsn, recovery.records, recovery.torn),
            (Lsn(10), 10, None),
            "byte {offset}"
        );
        let lsn = log.append(0, 1, |buffer| buffer.push(1)).expect("is accepted");
        assert_eq!(lsn, Lsn(2 << 32), "what was cut is not handed out again");
        log.close().expect("closes");
        assert_eq!(Log::open(shared(&storage), options()).expect("opens").1.records, 11);
    }
}

#[test]
fn nothing_is_changed_while_a_server_has_the_log() {
    let storage = sample(None);
    let cut = tools::plan_truncate(&shared(&storage), Lsn(17), &mut |_| ()).expect("reads");
    let (_log, _) = Log::open(shared(&storage), options()).expect("opens");
    assert!(matches!(cut.apply(&storage), Err(ToolError::Open(OpenError::Locked { .. }))));
}

#[test]
fn export_writes_the_asked_records_in_each_format() {
    let storage = sample(None);
    for format in Format::ALL {
        let mut output = Vec::new();
        let count = tools::export(&shared(&storage), Lsn(5), Lsn(30), format, &mut output, &mut |_| ());
        assert_eq!(count.expect("exports"), 26);
        if format == Format::Binary {
            let copy = MemoryStorage::new();
            copy.put("segment-00000000000000000005.tide", output);
            let (_, recovery) = Log::open(shared(&copy), options()).expect("an export is a segment");
            assert_eq!((recovery.first_lsn, recovery.last_lsn), (Lsn(5), Lsn(30)));
        } else {
            assert_eq!(String::from_utf8(output).expect("is text").lines().count(), 26);
        }
    }
}
