//! Recovery of a log: a directory with any files is opened or refused. An opened log has records
//! with ascending LSNs, accepts one more, and has the same records after a crash directly after
//! recovery and after a clean stop.
//!
//! ```text
//! input   flags u8 │ file*
//! flags   1: verify the tail alone; 2: fix no checksum; the rest seeds the crash
//! file    kind u8 │ number u64 │ number of pieces u8 │ piece*
//! piece   shape u8 │ block            see `Shape`
//! ```
//!
//! A file is composed of pieces, each of which gets the checksum and the length of its shape. So
//! mutations within a piece, and of the order of pieces, reach recovery.

use super::Target;
use crate::input::{Input, put_block};
use std::sync::Arc;
use tidemark_log::{
    Durability, Format, Log, Lsn, MemoryStorage, Options, Recovery, SnapshotWriter, Storage, Verify,
};

const VERIFY_TAIL: u8 = 1;
const AS_THEY_ARE: u8 = 2;
/// A binary header fills a page.
const HEADER_BYTES: usize = 4096;
/// Offset of the second copy in `END`.
const SECOND_OFFSET: usize = 4096;
/// Most bytes of all files of an input together.
const FILES_BYTES_MAX: usize = 1 << 20;

pub(super) const TARGET: Target = Target {
    name: "log_recovery",
    run,
    corpus,
    words: &[
        b"TIDELOG\n",
        b"TIDEEND\n",
        b"\x01\0\0\0\0\0\0\0",
        b"\x02\0\0\0\0\0\0\0",
        b"\0\0\0\0\x01\0\0\0",
        b" durable=",
        b"tidemark-log version=2 format=text first=",
        b" follows=",
        b" salt=",
        b" created_us=",
        b"\\x",
        b"\\n",
        b"\"tidemark_log\":",
        b"\"follows\":",
        b"\"text\":\"",
        b"\"base64\":\"",
        b"\"durable\":\"",
        b"\\u00",
        b"00000000000000000001",
        b"18446744073709551615",
    ],
};

/// Kind of a piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Bytes without changes.
    Bytes,
    /// As many zeros as the block's first two bytes say.
    Zeros,
    /// Beginning of a binary header, or a copy in `END`: padded and sealed.
    Header,
    /// A binary frame after its length.
    Frame,
    /// A line without its checksum.
    TextLine,
    JsonLine,
}

impl Shape {
    const ALL: [Self; 6] =
        [Self::Bytes, Self::Zeros, Self::Header, Self::Frame, Self::TextLine, Self::JsonLine];
}

fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let flags = input.u8();
    let storage = MemoryStorage::with_crashes();
    let mut bytes = 0;
    while !input.is_empty() {
        let name = name(&mut input);
        let file = file(&mut input, flags & AS_THEY_ARE == 0);
        bytes += file.len();
        if bytes > FILES_BYTES_MAX {
            break;
        }
        storage.put(&name, file);
    }
    let verify = if flags & VERIFY_TAIL == 0 { Verify::All } else { Verify::Tail };
    let Some((log, recovery)) = open(&storage, verify) else { return false };
    let crashed = storage.crash(u64::from(flags));
    let Some(records) = read(&log, &recovery, verify) else { return false };

    // All recovered records are durable.
    let (again, found) = open(&crashed, verify).expect("what recovery leaves can be opened");
    assert_eq!(
        read(&again, &found, verify).as_ref(),
        Some(&records),
        "a crash behind recovery takes nothing"
    );
    again.close().expect("memory takes everything");

    let last = records.last().map_or(recovery.last_lsn, |record| record.0);
    let mut more = records.clone();
    // The highest possible LSNs have no successor.
    if let Ok(lsn) = log.append(1, 1, |payload| payload.extend_from_slice(b"more")) {
        assert!(lsn > last, "record {lsn} follows {last}");
        more.push((lsn, 1, 1, b"more".to_vec()));
    }
    log.close().expect("memory takes everything");
    let (again, found) = open(&storage, verify).expect("a log that was closed can be opened");
    assert_eq!(found.torn, None, "a log that was closed has no torn tail");
    assert_eq!(read(&again, &found, verify), Some(more), "a clean stop takes nothing");
    // Accepted inputs have at least a record, not only a header.
    !records.is_empty()
}

fn open(storage: &MemoryStorage, verify: Verify) -> Option<(Log, Recovery)> {
    let options = Options {
        segment_bytes: Options::SEGMENT_BYTES_MIN,
        durability: Durability::Off,
        seed: Some(7),
        verify,
        ..Options::default()
    };
    match Log::open(Arc::new(storage.clone()), options) {
        Ok(opened) => Some(opened),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

type Records = Vec<(Lsn, u64, u8, Vec<u8>)>;

/// Returns all records; `None` if one is damaged, which is allowed only if opening has not verified
/// the records.
fn read(log: &Log, recovery: &Recovery, verify: Verify) -> Option<Records> {
    let mut records = Records::new();
    let mut replay = log.replay(log.floor()).expect("a log is read from its floor");
    loop {
        match replay.next_batch() {
            Ok(Some(batch)) => {
                records.extend(batch.into_iter().map(|r| (r.lsn, r.time_us, r.kind, r.payload.to_vec())));
            }
            Ok(None) => break,
            Err(error) => {
                assert!(verify == Verify::Tail, "verified records are read: {error}");
                return None;
            }
        }
    }
    assert!(records.is_sorted_by(|one, next| one.0 < next.0), "LSNs ascend");
    assert_eq!(records.len() as u64, recovery.records, "as many records as recovery says");
    if let (Some(first), Some(last)) = (records.first(), records.last()) {
        assert_eq!((first.0, last.0), (recovery.first_lsn, recovery.last_lsn));
    }
    Some(records)
}

fn name(input: &mut Input<'_>) -> String {
    let (kind, number) = (input.u8(), input.u64());
    match kind % 5 {
        0 => "END".to_owned(),
        1 | 2 => format!("segment-{number:020}.tide"),
        3 => format!("spare-{number:06}.tide"),
        _ => format!("snapshot-{number:020}.tide"),
    }
}

fn file(input: &mut Input<'_>, sealed: bool) -> Vec<u8> {
    let (mut file, mut salt) = (Vec::new(), 0);
    for _ in 0..input.u8() {
        let shape = Shape::ALL[usize::from(input.u8()) % Shape::ALL.len()];
        put_piece(&mut file, shape, input.block(), &mut salt, sealed);
        if file.len() > FILES_BYTES_MAX {
            break;
        }
    }
    file
}

fn put_piece(file: &mut Vec<u8>, shape: Shape, block: &[u8], salt: &mut u32, sealed: bool) {
    let checksum = |salt, bytes: &[u8]| if sealed { crc32c::crc32c_append(salt, bytes) } else { 0 };
    match shape {
        Shape::Bytes => file.extend_from_slice(block),
        Shape::Zeros => file.resize(file.len() + usize::from(Input::new(block).u16()), 0),
        Shape::Header if block.starts_with(b"TIDEEND") => {
            let copy = [block, &checksum(0, block).to_le_bytes()].concat();
            file.extend_from_slice(&copy);
            file.resize(file.len().max(SECOND_OFFSET), 0);
            file.extend_from_slice(&copy);
        }
        Shape::Header => {
            let mut header = block.to_vec();
            header.resize(HEADER_BYTES - 4, 0);
            *salt = u32::from_le_bytes([header[24], header[25], header[26], header[27]]);
            file.extend_from_slice(&header);
            file.extend(checksum(0, &header).to_le_bytes());
        }
        Shape::Frame => {
            let covered = [&(block.len() as u32).to_le_bytes(), block].concat();
            file.extend(checksum(*salt, &covered).to_le_bytes());
            file.extend_from_slice(&covered);
        }
        Shape::TextLine | Shape::JsonLine => {
            let (opening, between, closing) =
                if shape == Shape::TextLine { ("", " ", "") } else { ("{\"crc\":\"", "\",", "\"}") };
            let body: Vec<u8> = block.iter().copied().filter(|byte| *byte != b'\n').collect();
            let covered = [&body, closing.as_bytes()].concat();
            // A segment begins with its header, whose checksum has a fixed salt.
            let own = salt_of(&body);
            let checksum = checksum(if own.is_some() { 1 } else { *salt }, &covered);
            *salt = own.unwrap_or(*salt);
            file.extend_from_slice(format!("{opening}{checksum:08x}{between}").as_bytes());
            file.extend_from_slice(&covered);
            file.push(b'\n');
        }
    }
}

/// Returns the salt in the line of a header.
fn salt_of(body: &[u8]) -> Option<u32> {
    let text = String::from_utf8_lossy(body);
    let is_header = text.starts_with("tidemark-log ") || text.starts_with("\"tidemark_log\":");
    let (_, rest) = text.split_once(" salt=").or_else(|| text.split_once("\"salt\":"))?;
    let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse().ok().filter(|_| is_header)
}

/// Splits a file that the log has written into pieces. The log writes markers at times that vary,
/// so they are left out, and one is inserted after the second record.
fn pieces(name: &str, file: &[u8]) -> Vec<(Shape, Vec<u8>)> {
    if name == "END" {
        return vec![(Shape::Header, file[..32].to_vec())];
    }
    if name.starts_with("snapshot") {
        return vec![(Shape::Bytes, file.to_vec())];
    }
    let mut pieces = if file.starts_with(b"TIDELOG") { frames(file) } else { lines(file) };
    if let Some((shape, record)) = pieces.get(2) {
        let marker = match shape {
            Shape::Frame => [&record[..16], &[0], &record[..8]].concat(),
            _ => {
                let text = String::from_utf8_lossy(record);
                let lsn: u64 = text
                    .chars()
                    .filter(char::is_ascii_digit)
                    .take(1)
                    .collect::<String>()
                    .parse()
                    .expect("an LSN");
                let line = match shape {
                    Shape::TextLine => format!("{lsn} 1000000 0 durable={lsn:020}"),
                    _ => format!("\"lsn\":{lsn},\"time_us\":1000000,\"kind\":0,\"durable\":\"{lsn:020}"),
                };
                line.into_bytes()
            }
        };
        pieces.insert(3, (*shape, marker));
    }
    if file.starts_with(b"TIDELOG") {
        pieces.push((Shape::Zeros, 512_u16.to_le_bytes().to_vec()));
    }
    pieces
}

fn lines(file: &[u8]) -> Vec<(Shape, Vec<u8>)> {
    let mut pieces = Vec::new();
    for line in file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let text = String::from_utf8_lossy(line);
        if text.contains("durable") {
            continue;
        }
        let json = line.strip_prefix(b"{\"crc\":\"").and_then(|rest| rest.strip_suffix(b"\"}"));
        pieces.push(match json {
            Some(rest) => (Shape::JsonLine, rest[8 + 2..].to_vec()),
            None => (Shape::TextLine, line[8 + 1..].to_vec()),
        });
    }
    pieces
}

fn frames(file: &[u8]) -> Vec<(Shape, Vec<u8>)> {
    let mut pieces = vec![(Shape::Header, file[..44].to_vec())];
    let mut rest = &file[HEADER_BYTES..];
    while let Some((prefix, behind)) = rest.split_first_chunk::<8>() {
        let length = u32::from_le_bytes([prefix[4], prefix[5], prefix[6], prefix[7]]) as usize;
        if length == 0 {
            break;
        }
        let (frame, behind) = behind.split_at(length);
        if frame[16] != 0 {
            pieces.push((Shape::Frame, frame.to_vec()));
        }
        rest = behind;
    }
    pieces
}

/// Returns the input that describes a directory.
fn input_of(flags: u8, storage: &MemoryStorage) -> Vec<u8> {
    let mut input = vec![flags];
    let mut names = storage.list().expect("names");
    names.sort_unstable();
    // The log makes spare files when it has time, so they vary.
    names.retain(|name| !name.starts_with("spare"));
    for name in names {
        let digits: String = name.chars().filter(char::is_ascii_digit).collect();
        let kind = match name.as_bytes() {
            [b'E', ..] => 0,
            [b's', b'e', ..] => 1,
            _ => 4,
        };
        input.push(kind);
        input.extend(digits.parse::<u64>().unwrap_or_default().to_le_bytes());
        let file = storage.read(&name).expect("a file");
        let pieces = pieces(&name, &file);
        input.push(u8::try_from(pieces.len()).expect("files of a corpus have few pieces"));
        for (shape, block) in pieces {
            input.push(Shape::ALL.iter().position(|other| *other == shape).expect("a shape") as u8);
            put_block(&mut input, &block);
        }
    }
    input
}

/// Returns a log with a few records that was killed `kills` times, and then closed if `closed` is
/// set.
fn directory(format: Format, kills: usize, payload_bytes: usize, closed: bool) -> MemoryStorage {
    let mut storage = MemoryStorage::new();
    for kill in 0..=kills {
        let options = Options {
            segment_bytes: Options::SEGMENT_BYTES_MIN,
            durability: Durability::Always,
            format,
            seed: Some(kill as u64),
            ..Options::default()
        };
        let (log, _) = Log::open(Arc::new(storage.clone()), options).expect("opens");
        for record in 0..3_u8 {
            let payload = [&b"SET \"k\\\xff\n"[..], &vec![b'a' + record; payload_bytes]].concat();
            log.append(1_000_000, 1 + record, |into| into.extend_from_slice(&payload)).expect("is accepted");
            log.wait_durable(log.appended()).expect("memory takes everything");
        }
        if kill == kills && closed {
            log.close().expect("closes");
        } else {
            storage = storage.fork();
        }
    }
    storage
}

fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let mut inputs = vec![
        ("binary", input_of(0, &directory(Format::Binary, 0, 3, true))),
        ("binary-killed", input_of(0x10, &directory(Format::Binary, 1, 3, false))),
        ("binary-tail", input_of(VERIFY_TAIL, &directory(Format::Binary, 2, 3, true))),
        ("binary-segments", input_of(0x40, &directory(Format::Binary, 0, 1500, true))),
        ("jsonl", input_of(0, &directory(Format::Jsonl, 0, 3, true))),
        ("jsonl-killed", input_of(0x20, &directory(Format::Jsonl, 1, 3, false))),
        ("text", input_of(0, &directory(Format::Text, 0, 3, true))),
        ("text-killed", input_of(0x30, &directory(Format::Text, 1, 3, false))),
        ("empty", input_of(0, &MemoryStorage::new())),
    ];
    let storage = directory(Format::Binary, 0, 3, false);
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let mut snapshot = SnapshotWriter::create(shared, Lsn(2)).expect("begins");
    snapshot.write_frame(0, b"state").expect("is written");
    snapshot.finish().expect("is finished");
    let mut input = input_of(0, &storage);
    // A spare file of 512 zeros.
    input.extend([3, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 0, 0, 2]);
    inputs.push(("binary-snapshot", input));
    inputs
}
