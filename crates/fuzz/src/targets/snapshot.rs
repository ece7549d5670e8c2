//! Snapshots: the bytes of a file are refused, or give a state whose digest stays the same when
//! that state is written and loaded again.
//!
//! ```text
//! input    flags u8 │ frames or file
//! flags    1: the bytes of a file; 2: fix none of its checksums
//! frames   (section u8 │ block)*, which the log's own writer puts into a file
//! ```

use super::{Target, state};
use crate::input::{Input, put_block};
use std::sync::Arc;
use tidemark_engine::section::{KEYSPACE, NAMED, WATCHED};
use tidemark_engine::{ApplyError, Engine};
use tidemark_log::{Lsn, MemoryStorage, Snapshot, SnapshotWriter, Snapshots};

const FILE: u8 = 1;
const AS_THEY_ARE: u8 = 2;
/// LSN of every snapshot here.
const LSN: Lsn = Lsn(1_000);
const NAME: &str = "snapshot-00000000000000001000.tide";
const TRAILER_BYTES: usize = 32;

pub(super) const TARGET: Target = Target {
    name: "snapshot",
    run,
    corpus,
    words: &[
        b"TIDESNAP",
        b"DONE",
        b"\x01\0\0\0",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x80\x01",
        b"\xff\xff\x03",
    ],
};

fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let flags = input.u8();
    let storage = Arc::new(MemoryStorage::new());
    if flags & FILE == 0 {
        let mut writer = SnapshotWriter::create(storage.clone(), LSN).expect("memory takes everything");
        while !input.is_empty() {
            let section = u32::from(input.u8()) % 4;
            writer.write_frame(section, input.block()).expect("memory takes everything");
        }
        writer.finish().expect("memory takes everything");
    } else {
        let mut file = input.rest().to_vec();
        if flags & AS_THEY_ARE == 0 {
            seal(&mut file);
        }
        storage.put(NAME, file);
    }
    let Some(snapshot) = open(&storage) else { return false };
    let engine = state::engine_over(storage.fork());
    if let Err(error) = load(&engine, &snapshot) {
        assert!(!error.to_string().is_empty());
        return false;
    }
    let digest = engine.digest();
    let storage = write(&engine);
    let again = state::engine_over(storage.fork());
    let written = open(&storage).expect("a snapshot that was written is read");
    load(&again, &written).unwrap_or_else(|error| panic!("a snapshot that was written is loaded: {error}"));
    assert_eq!(again.digest(), digest, "the state is the same");
    assert_eq!(again.all_named().len(), engine.all_named().len());
    true
}

/// Opens the snapshot, if all its checksums are right.
fn open(storage: &Arc<MemoryStorage>) -> Option<Snapshot> {
    let snapshots = Snapshots::new(storage.clone());
    let lsn = *snapshots.list().expect("memory lists its files").first().expect("there is one");
    let opened = snapshots.open(lsn).and_then(|snapshot| snapshot.verify().map(|()| snapshot));
    opened.inspect_err(|error| assert!(!error.to_string().is_empty())).ok()
}

/// Loads a snapshot in the way of a starting server.
fn load(engine: &Engine, snapshot: &Snapshot) -> Result<(), ApplyError> {
    let loader = engine.load(state::NOW_US);
    each(snapshot, KEYSPACE, |frame| loader.load_frame(frame))?;
    loader.finish()?;
    each(snapshot, WATCHED, |frame| engine.load_queries(snapshot.lsn(), state::NOW_US, frame))?;
    each(snapshot, NAMED, |frame| engine.load_names(frame))
}

fn each(
    snapshot: &Snapshot,
    section: u32,
    mut load: impl FnMut(&[u8]) -> Result<(), ApplyError>,
) -> Result<(), ApplyError> {
    let mut loaded = Ok(());
    let read = snapshot.read_section(section, |frame| {
        if loaded.is_ok() {
            loaded = load(frame);
        }
    });
    read.expect("a verified snapshot is read");
    loaded
}

/// Returns the frames of an engine's state, each with its section.
fn frames(engine: &Engine) -> Vec<(u32, Vec<u8>)> {
    let (mut snapshot, mut frames) = (engine.snapshot(), Vec::new());
    while let Some(frame) = snapshot.next_frame() {
        frames.push((KEYSPACE, frame));
    }
    frames.extend(snapshot.query_frames().map(|frame| (WATCHED, frame)));
    frames.extend(snapshot.name_frames().map(|frame| (NAMED, frame)));
    snapshot.check().expect("large values are whole");
    frames
}

fn write(engine: &Engine) -> Arc<MemoryStorage> {
    let storage = Arc::new(MemoryStorage::new());
    let mut writer = SnapshotWriter::create(storage.clone(), LSN).expect("memory takes everything");
    for (section, frame) in frames(engine) {
        writer.write_frame(section, &frame).expect("memory takes everything");
    }
    writer.finish().expect("memory takes everything");
    storage
}

/// Fixes every checksum of a snapshot's file that can be located.
fn seal(file: &mut [u8]) {
    let length = file.len();
    let Some(trailer) = length.checked_sub(TRAILER_BYTES).filter(|trailer| *trailer >= 32) else { return };
    put_checksum(file, 28, 0..28);
    let index =
        usize::try_from(u64::from_le_bytes(file[trailer..trailer + 8].try_into().expect("eight bytes")));
    if let Some(index) = index.ok().filter(|index| *index <= trailer) {
        let entries = file[index..trailer].to_vec();
        for entry in entries.chunks_exact(16) {
            let (offset, rest) = entry.split_first_chunk::<8>().expect("sixteen bytes");
            let bytes = u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
            let offset = usize::try_from(u64::from_le_bytes(*offset)).unwrap_or(usize::MAX);
            let end = offset.saturating_add(12).saturating_add(bytes);
            if end <= index {
                put_checksum(file, offset, offset + 4..end);
            }
        }
        put_checksum(file, trailer + 16, index..trailer);
    }
    put_checksum(file, trailer + 24, trailer..trailer + 24);
}

fn put_checksum(file: &mut [u8], at: usize, covered: std::ops::Range<usize>) {
    let checksum = crc32c::crc32c(&file[covered]).to_le_bytes();
    file[at..at + 4].copy_from_slice(&checksum);
}

fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let input_of = |engine: &Engine| {
        let mut input = vec![0];
        for (section, frame) in frames(engine) {
            input.push(section as u8);
            put_block(&mut input, &frame);
        }
        input
    };
    let mut inputs: Vec<(&'static str, Vec<u8>)> =
        state::SCRIPTS.iter().map(|(name, script)| (*name, input_of(&state::after(script)))).collect();
    let watched = state::after("SET a b");
    state::watch(&watched);
    inputs.push(("watched", input_of(&watched)));
    let file = write(&watched).read(NAME).expect("the file");
    inputs.push(("file", [&[FILE], file.as_slice()].concat()));
    // Large enough to be written in several parts.
    let members = |name: &str, score: bool| {
        (0..300).fold(name.to_owned(), |line, member| {
            if score { format!("{line} {member} m{member}") } else { format!("{line} m{member}") }
        })
    };
    let script = [members("RPUSH l", false), members("HSET h", true), members("ZADD z", true)].join("\n");
    inputs.push(("large", input_of(&state::after(&script))));
    inputs.push(("large-set", input_of(&state::after(&members("SADD s", false)))));
    inputs
}
