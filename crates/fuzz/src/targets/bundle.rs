//! Bundles of blocks, as block files have them: bytes are refused, or give blocks that are read back from
//! the bundle that they make.
//!
//! ```text
//! input    times of another bundle, as a block of bytes │ bundle
//! ```

use super::Target;
use crate::input::{Input, put_block};
use tidemark_series::{Block, Bundle, BundleTimes, Options, Series, StoredBundle};

pub(super) const TARGET: Target = Target {
    name: "bundle",
    run,
    corpus,
    // What begins a bundle, and what begins compressed bytes.
    words: &[
        b"\x01\x01\x01\x00",
        b"\x01\x08\x01\x00",
        b"\x00\x01",
        b"\x28\xb5\x2f\xfd",
        b"\xff\xff\xff\xff\x0f",
    ],
};

fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let other = BundleTimes::read(input.block());
    let bytes = input.rest();
    // A file's checksum does not keep bytes away that were written with it.
    let _ = BundleTimes::elsewhere(bytes);
    let Ok(stored) = StoredBundle::read(bytes, other.as_ref().ok()) else { return false };
    let blocks = (0..stored.len()).map(|index| Block::from_words::<f64>(&stored.words(index).ok()?).ok());
    let Some(blocks) = blocks.collect::<Option<Vec<Block>>>() else { return false };
    let mut again = Vec::new();
    Bundle::of(&blocks).encode(None, &mut again);
    let read = StoredBundle::read(&again, None).expect("what was written is a bundle");
    for (index, block) in blocks.iter().enumerate() {
        let words = read.words(index).expect("what was written has its blocks");
        assert_eq!(words, block.words(), "a block after a way through a bundle");
    }
    true
}

fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let decimals = bundle_of(|time| (time * 1_000 + time % 7, (time % 100) as f64 / 10.0));
    let runs = bundle_of(|time| (time, (time / 100) as f64));
    let hard = bundle_of(|time| (time * time, if time % 9 == 0 { f64::NAN } else { (time as f64).sqrt() }));
    let alone = |bundle: &[u8]| {
        let mut input = Vec::new();
        put_block(&mut input, &[]);
        input.extend(bundle);
        input
    };
    let mut shared = Vec::new();
    put_block(&mut shared, &plain(&decimals, None));
    shared.extend(plain(&decimals, Some(4)));
    let mut compressed = Vec::new();
    hard.encode(None, &mut compressed);
    vec![
        ("decimals", alone(&plain(&decimals, None))),
        ("runs", alone(&plain(&runs, None))),
        ("hard", alone(&plain(&hard, None))),
        ("compressed", alone(&compressed)),
        ("shared_times", shared),
        ("nothing", vec![0]),
    ]
}

/// Encodes a bundle without the general compressor, so that mutations of its bytes are mutations of what is
/// in it.
fn plain(bundle: &Bundle, times_in: Option<u32>) -> Vec<u8> {
    let mut stored = Vec::new();
    bundle.encode(times_in, &mut stored);
    // Form, number of blocks, type of values, and a short number.
    let (start, mut rest) = stored.split_at(4);
    let mut bytes = start.to_vec();
    while !rest.is_empty() {
        let (length, stored) = (take_varint(&mut rest), take_varint(&mut rest));
        let (part, behind) = rest.split_at(stored);
        let part = if stored == length {
            part.to_vec()
        } else {
            zstd::bulk::decompress(part, length).expect("what was compressed")
        };
        put_varint(part.len(), &mut bytes);
        put_varint(part.len(), &mut bytes);
        bytes.extend(part);
        rest = behind;
    }
    bytes
}

fn take_varint(from: &mut &[u8]) -> usize {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = from.split_first().expect("a varint has an end");
        *from = rest;
        value |= usize::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            break;
        }
    }
    value
}

fn put_varint(mut value: usize, into: &mut Vec<u8>) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

/// A bundle of two blocks.
fn bundle_of(point: impl Fn(i64) -> (i64, f64)) -> Bundle {
    let mut series = Series::new(Options::default());
    for index in 1..1_500 {
        let (time, value) = point(index);
        series.append(time, value).expect("points behind all others are taken");
    }
    series.seal_all();
    let blocks: Vec<Block> = (0..series.parts()).filter_map(|part| series.block(part).cloned()).collect();
    Bundle::of(&blocks)
}
