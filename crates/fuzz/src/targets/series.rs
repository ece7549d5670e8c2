//! Parts of a series, as snapshots have them: bytes are refused, or give points that are read back
//! from the bytes that they make.
//!
//! ```text
//! input    flags u8 │ head │ part*, each as a block of bytes
//! flags    1: the values are integers; 2: booleans; 4: keep the checksums as they are
//! ```

use super::Target;
use crate::input::{Input, put_block};
use tidemark_series::{Direction, DuplicatePolicy, Options, Sample, Series};

const INTEGERS: u8 = 1;
const BOOLEANS: u8 = 2;
const AS_THEY_ARE: u8 = 4;

/// Bytes of a block before its checksum, its first byte in a part included, and behind it.
const BEFORE_CHECKSUM: usize = 9;
const BEHIND_CHECKSUM: usize = 13;

pub(super) const TARGET: Target = Target {
    name: "series",
    run,
    corpus,
    words: &[
        b"TMSB",
        b"\0TMSB\x01\x01",
        b"\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\0\0\0\0\0\0\0\x80",
        b"\0\x04",
    ],
};

const OPTIONS: Options = Options { retention: 0, duplicates: DuplicatePolicy::Last, ignore: None };

fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let flags = input.u8();
    let head = input.block().to_vec();
    let mut parts = Vec::new();
    while !input.is_empty() {
        let mut part = input.block().to_vec();
        if flags & AS_THEY_ARE == 0 {
            seal(&mut part);
        }
        parts.push(part);
    }
    match flags & (INTEGERS | BOOLEANS) {
        INTEGERS => check::<i64>(&head, &parts),
        BOOLEANS => check::<bool>(&head, &parts),
        _ => check::<f64>(&head, &parts),
    }
}

/// Puts the right checksum into a part that is long enough to be a block.
fn seal(part: &mut [u8]) {
    if part.len() > BEHIND_CHECKSUM + 4 && part[0] == 0 {
        let first = crc32c::crc32c(&part[1..BEFORE_CHECKSUM]);
        let checksum = crc32c::crc32c_append(first, &part[BEHIND_CHECKSUM + 4..]);
        part[BEFORE_CHECKSUM..BEHIND_CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
    }
}

fn check<V: Sample>(head: &[u8], parts: &[Vec<u8>]) -> bool {
    let Ok(series) = Series::<V>::assemble(OPTIONS, head, parts.iter().map(Vec::as_slice)) else {
        return false;
    };
    let points = points_of(&series);
    for (time, _) in points.iter().take(64) {
        series.get(*time);
        series.at_or_before(*time);
    }
    let (mut again, mut encoded) = (Vec::new(), Vec::new());
    series.encode_head(&mut again);
    for index in 0..series.parts() {
        let mut part = Vec::new();
        series.encode_part(index, &mut part);
        encoded.push(part);
    }
    let read = Series::<V>::assemble(OPTIONS, &again, encoded.iter().map(Vec::as_slice));
    assert_eq!(
        points_of(&read.expect("what was encoded is a series")),
        points,
        "points after a way through bytes"
    );
    true
}

/// Returns the points by their bits, which tell NaNs apart.
fn points_of<V: Sample>(series: &Series<V>) -> Vec<(i64, u64)> {
    let mut points = Vec::new();
    series.read(i64::MIN..=i64::MAX, Direction::Forward, &mut |times: &[i64], values: &[V]| {
        points.extend(times.iter().copied().zip(values.iter().map(|value| value.to_bits())));
        std::ops::ControlFlow::Continue(())
    });
    points
}

fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let of_numbers = |value: fn(i64) -> f64| series_of(0, |time| (time * 1_000 + time % 7, value(time)));
    vec![
        ("decimals", of_numbers(|time| (time % 100) as f64 / 10.0)),
        ("full_precision", of_numbers(|time| (time as f64).sqrt())),
        ("runs", of_numbers(|time| (time / 100) as f64)),
        ("not_a_number", of_numbers(|time| if time % 9 == 0 { f64::NAN } else { 1.5 })),
        ("integers", series_of(INTEGERS, |time| (time * time, time * 3 % 1_000))),
        ("booleans", series_of(BOOLEANS, |time| (time, time % 5 == 0))),
        ("nothing", vec![0]),
    ]
}

/// Encodes a series of some blocks, late points and a head.
fn series_of<V: Sample>(flags: u8, point: impl Fn(i64) -> (i64, V)) -> Vec<u8> {
    let mut series = Series::new(OPTIONS);
    for index in 1..2_200 {
        let (time, value) = point(index);
        series.append(time * 2, value).expect("points behind all others are taken");
    }
    series.seal();
    let (time, value) = point(5);
    series.append(time * 2 + 1, value).expect("late points are taken");
    let mut input = vec![flags];
    let mut head = Vec::new();
    series.encode_head(&mut head);
    put_block(&mut input, &head);
    for index in 0..series.parts() {
        let mut part = Vec::new();
        series.encode_part(index, &mut part);
        put_block(&mut input, &part);
    }
    input
}
