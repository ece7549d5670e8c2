//! Block files: what a snapshot lists, which files live, and how damage is found.

use std::sync::Arc;

use tidemark_log::tools::{Inspection, inspect};
use tidemark_log::{
    BlockFileUse, BlockFiles, Log, Lsn, MemoryStorage, Options, SnapshotWriter, Snapshots, Storage,
};

/// Writes a snapshot that has blocks of these sizes in the file `number`, and refers to `others` as well.
fn write(storage: &Arc<dyn Storage>, lsn: u64, number: u64, sizes: &[usize], others: &[u64]) -> Vec<u64> {
    let mut writer = SnapshotWriter::create(Arc::clone(storage), Lsn(lsn)).expect("begins");
    writer.set_block_file(number);
    writer.write_frame(0, b"references").expect("written");
    let block = |size: &usize| writer_block(*size);
    let offsets: Vec<u64> =
        sizes.iter().map(|size| writer.write_block(&block(size)).expect("written")).collect();
    let own = (!sizes.is_empty()).then_some(number);
    let listed = others.iter().copied().chain(own).map(|number| BlockFileUse { number, used_bytes: 10 });
    writer.refer_to(listed.collect());
    writer.finish().expect("complete");
    offsets
}

fn writer_block(size: usize) -> Vec<u8> {
    (0..size).map(|index| (index * 7 + size) as u8).collect()
}

fn storage() -> (MemoryStorage, Arc<dyn Storage>) {
    let memory = MemoryStorage::new();
    (memory.clone(), Arc::new(memory))
}

#[test]
fn blocks_are_read_where_they_were_written() {
    let (_, storage) = storage();
    let sizes = [0, 1, 100, 2_000_000, 5];
    let offsets = write(&storage, 7, 3, &sizes, &[]);
    let files = BlockFiles::new(Arc::clone(&storage));
    let file = files.open(3).expect("opens");
    for (offset, size) in offsets.iter().zip(sizes) {
        assert_eq!(file.read_block(*offset, size).expect("is there"), writer_block(size));
        assert!(file.read_block(*offset, size + 1).is_err());
        assert!(file.read_block(offset + 1, size).is_err());
    }
    assert!(file.read_block(u64::MAX - 3, 10).is_err() && file.read_block(0, 10).is_err());
    assert_eq!(file.verify().expect("is whole"), 5);
    let listed = Snapshots::new(storage).open(Lsn(7)).expect("opens").block_files().expect("a list");
    assert_eq!(listed, [BlockFileUse { number: 3, used_bytes: 10 }]);
    assert_eq!(files.next_number().expect("lists"), 4);
    assert_eq!(files.next_number().expect("lists"), 5, "no number twice");
}

#[test]
fn directories_number_their_files_apart() {
    let (_, storage) = storage();
    write(&storage, 7, 3, &[100], &[]);
    let files = BlockFiles::new(Arc::clone(&storage));
    files.set_part(5 << 40 | 2);
    let first = files.next_number().expect("lists");
    assert_eq!(first, (2 << 24) + 1, "the low 40 bits count");
    write(&storage, 8, first, &[100], &[3]);
    // One that came from another directory.
    write(&storage, 9, (7 << 24) + 9, &[100], &[]);
    let again = BlockFiles::new(Arc::clone(&storage));
    again.set_part(2);
    assert_eq!(again.next_number().expect("lists"), first + 1);
}

#[test]
fn no_block_file_is_removed_between_its_arrival_and_that_of_its_snapshot() {
    let (memory, storage) = storage();
    let files = BlockFiles::new(Arc::clone(&storage));
    std::thread::scope(|scope| {
        let removed = files.while_kept(|| {
            memory.put("blocks-00000000000000000007.tide", vec![1]);
            let removes = scope.spawn(|| files.remove_unused());
            std::thread::yield_now();
            write(&storage, 7, 8, &[1], &[7]);
            removes
        });
        assert_eq!(removed.join().expect("ends").expect("lists"), 0);
    });
}

#[test]
fn a_snapshot_names_all_files_that_it_needs() {
    let (memory, storage) = storage();
    write(&storage, 7, 3, &[100], &[]);
    write(&storage, 9, 4, &[100], &[]);
    let mut incremental = SnapshotWriter::create_on(Arc::clone(&storage), Lsn(12), Lsn(9)).expect("begins");
    incremental.keep_section(0);
    incremental.refer_to(vec![BlockFileUse { number: 3, used_bytes: 10 }]);
    incremental.finish().expect("complete");
    let snapshots = Snapshots::new(Arc::clone(&storage));
    let files = |lsn| snapshots.files(Lsn(lsn)).expect("names");
    assert_eq!(files(7), ["blocks-00000000000000000003.tide", "snapshot-00000000000000000007.tide"]);
    assert_eq!(
        files(12),
        [
            "blocks-00000000000000000003.tide",
            "blocks-00000000000000000004.tide",
            "snapshot-00000000000000000009.tide",
            "snapshot-00000000000000000012-on-00000000000000000009.tide",
        ]
    );
    // They are enough: elsewhere they are the snapshot.
    let copy = MemoryStorage::new();
    files(12).iter().for_each(|name| copy.put(name, memory.read(name).expect("a file")));
    let (found, damaged) = Snapshots::new(Arc::new(copy)).latest(Lsn(13)).expect("a snapshot");
    assert_eq!((found.map(|found| found.lsn()), damaged.len()), (Some(Lsn(12)), 0));
    assert!(snapshots.files(Lsn(8)).is_err());
}

#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    let (memory, storage) = storage();
    write(&storage, 7, 1, &[40, 0, 200], &[]);
    let name = "blocks-00000000000000000001.tide";
    let whole = memory.read(name).expect("the file");
    let verify = || BlockFiles::new(Arc::clone(&storage)).open(1).and_then(|file| file.verify());
    assert_eq!(verify().expect("is whole"), 3);
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        memory.put(name, damaged);
        assert!(verify().is_err(), "bit {bit}");
    }
    for length in 0..whole.len() {
        memory.put(name, whole[..length].to_vec());
        // A cut between two blocks is found by what refers to the blocks behind it.
        let blocks = verify();
        assert!(blocks.is_err() || [32, 80, 88].contains(&length), "cut at {length}");
    }
}

#[test]
fn files_that_no_snapshot_lists_are_removed_unless_they_are_open() {
    let (memory, storage) = storage();
    write(&storage, 1, 1, &[10], &[]);
    write(&storage, 2, 2, &[10], &[1]);
    let orphan = SnapshotWriter::create(Arc::clone(&storage), Lsn(3)).map(|mut writer| {
        writer.set_block_file(3);
        writer.write_block(b"a block").expect("written");
        writer
    });
    let files = BlockFiles::new(Arc::clone(&storage));
    assert_eq!(files.list().expect("lists"), [1, 2, 3]);
    drop(orphan);
    assert_eq!(files.list().expect("lists"), [1, 2], "a snapshot that is given up leaves nothing");
    memory.put(
        "blocks-00000000000000000009.tide",
        memory.read("blocks-00000000000000000002.tide").expect("it"),
    );
    assert_eq!(files.remove_unused().expect("removes"), 1);
    let open = files.open(1).expect("opens");
    write(&storage, 4, 5, &[], &[2]);
    Snapshots::new(Arc::clone(&storage)).prune(1).expect("prunes");
    assert_eq!(files.remove_unused().expect("removes"), 0);
    drop(open);
    assert_eq!(files.remove_unused().expect("removes"), 1);
    assert_eq!(files.list().expect("lists"), [2]);
    // The list of a snapshot that cannot be read might have named it.
    let snapshot = "snapshot-00000000000000000004.tide";
    let mut damaged = memory.read(snapshot).expect("the snapshot");
    damaged[40] ^= 1;
    let end = damaged.len() - 3;
    damaged[end] ^= 1;
    memory.put(snapshot, damaged);
    assert!(files.remove_unused().is_err());
    assert_eq!(files.list().expect("lists"), [2]);
}

#[test]
fn inspecting_reports_files_blocks_and_damage() {
    let (memory, storage) = storage();
    let (log, _) = Log::open(Arc::clone(&storage), Options::default()).expect("opens");
    for number in 1..=2 {
        let lsn = log.append(0, 1, |buffer| buffer.push(1)).expect("is accepted");
        log.wait_durable(lsn).expect("memory does not fail");
        write(&storage, lsn.0, number, &[50, 60], if number == 2 { &[1] } else { &[] });
    }
    log.close().expect("closes");
    let report = || -> Inspection { inspect(&storage, &mut |_| ()).expect("reads") };
    let files = report().block_files;
    assert_eq!(files.len(), 2);
    assert_eq!(files[0].snapshots, [Lsn(1), Lsn(2)]);
    assert_eq!(files[0].content, Ok((2, 32 + 2 * 8 + 110)));
    assert_eq!(files[1].snapshots, [Lsn(2)]);
    let name = &files[1].name;
    let mut damaged = memory.read(name).expect("the file");
    damaged[60] ^= 1;
    memory.put(name, damaged);
    let report = report();
    let error = report.block_files[1].content.clone().expect_err("it is damaged");
    assert!(error.contains("damaged at byte 32"), "{error}");
    assert!(report.snapshots[0].content.is_ok());
    assert_eq!(report.snapshots[1].content.clone().expect_err("its block is damaged"), error);
}
