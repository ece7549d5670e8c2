//! A series against an ordered map.

use super::*;
use crate::{BLOCK_POINTS, Beside, Block, BlockSource, Place, guarded};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// What a series is: an ordered map with policies.
#[derive(Debug)]
struct Model {
    options: Options,
    points: BTreeMap<i64, f64>,
    floor: i64,
}

impl Model {
    fn append(&mut self, time: i64, value: f64) -> Result<Appended<f64>, AppendError> {
        if time < self.floor {
            return Err(AppendError::TooOld { time, floor: self.floor });
        }
        if let (Some(ignore), Some((last, last_value))) = (self.options.ignore, self.points.last_key_value())
            && self.options.duplicates == DuplicatePolicy::Last
            && time >= *last
            && (time - last) as u64 <= ignore.time
            && (value - last_value).abs() <= ignore.value
        {
            return Ok(Appended::Ignored(*last));
        }
        let Some(old) = self.points.get(&time).copied() else {
            self.points.insert(time, value);
            self.retain();
            return Ok(Appended::Added);
        };
        let kept = match self.options.duplicates {
            DuplicatePolicy::Block => return Err(AppendError::Duplicate(time)),
            DuplicatePolicy::First => old,
            DuplicatePolicy::Last => value,
            DuplicatePolicy::Min => old.min(value),
            DuplicatePolicy::Max => old.max(value),
            DuplicatePolicy::Sum => old + value,
        };
        self.points.insert(time, kept);
        Ok(Appended::Replaced(old))
    }

    fn retain(&mut self) {
        if self.options.retention > 0
            && let Some((newest, _)) = self.points.last_key_value()
        {
            self.floor = self.floor.max(newest - self.options.retention as i64);
            self.points = self.points.split_off(&self.floor);
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Append(i64, f64),
    /// Many points behind the newest.
    Extend(u16, i64),
    /// Many points, spread over what there is.
    Late(u16, i64),
    Remove(i64, i64),
    Retention(u64),
    Seal,
    SealElsewhere,
    SealHead,
    /// Compresses away from the series what waits longest, or else its head.
    BeginSealing,
    /// Puts back what was compressed, if nothing else is there by now.
    EndSealing,
    SealAll,
    /// To bytes and back.
    Store,
    /// Blocks to a file, and so many bytes of points out of memory.
    DropPoints(usize),
    Read(i64, i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let time = || -200_i64..30_000;
    let value = || (-500_i64..500).prop_map(|digits| digits as f64 / 10.0);
    let step = prop_oneof![
        8 => (time(), value()).prop_map(|(time, value)| Step::Append(time, value)),
        3 => (1_u16..1_500, 1_i64..7).prop_map(|(count, step)| Step::Extend(count, step)),
        3 => (60_u16..300, 1_i64..7).prop_map(|(count, step)| Step::Extend(count, step)),
        1 => (900_u16..1_200, 1_i64..50).prop_map(|(count, step)| Step::Late(count, step)),
        2 => (time(), 0_i64..4_000).prop_map(|(from, length)| Step::Remove(from, from + length)),
        1 => (0_u64..20_000).prop_map(Step::Retention),
        1 => Just(Step::Seal),
        1 => Just(Step::SealElsewhere),
        2 => Just(Step::SealHead),
        2 => Just(Step::BeginSealing),
        2 => Just(Step::EndSealing),
        1 => Just(Step::SealAll),
        1 => Just(Step::Store),
        2 => (0_usize..20_000).prop_map(Step::DropPoints),
        3 => (time(), time()).prop_map(|(from, to)| Step::Read(from, to)),
    ];
    proptest::collection::vec(step, 1..40)
}

fn options() -> impl Strategy<Value = Options> {
    use DuplicatePolicy::*;
    let policies = prop_oneof![Just(Block), Just(First), Just(Last), Just(Min), Just(Max), Just(Sum)];
    let ignore = prop_oneof![2 => Just(None), 1 => Just(Some(Ignore { time: 3, value: 5.0 }))];
    let retention = prop_oneof![2 => Just(0_u64), 1 => 1_u64..20_000];
    (policies, ignore, retention).prop_map(|(duplicates, ignore, retention)| Options {
        retention,
        duplicates,
        ignore,
    })
}

fn read(series: &Series<f64>, from: i64, to: i64, direction: Direction) -> Vec<(i64, f64)> {
    let mut points = Vec::new();
    series.read(from..=to, direction, &mut |times: &[i64], values: &[f64]| {
        let run = times.iter().copied().zip(values.iter().copied());
        match direction {
            Direction::Forward => points.extend(run),
            Direction::Backward => points.extend(run.rev()),
        }
        ControlFlow::Continue(())
    });
    points
}

fn check(series: &Series<f64>, model: &Model, from: i64, to: i64) {
    let expected: Vec<(i64, f64)> =
        if from > to { Vec::new() } else { model.points.range(from..=to).map(|(t, v)| (*t, *v)).collect() };
    assert_eq!(read(series, from, to, Direction::Forward), expected);
    let mut snapshot = Vec::new();
    series.snapshot(from..=to).read(Direction::Forward, &mut |times: &[i64], values: &[f64]| {
        snapshot.extend(times.iter().copied().zip(values.iter().copied()));
        ControlFlow::Continue(())
    });
    assert_eq!(snapshot, expected);
    let reversed: Vec<_> = expected.iter().rev().copied().collect();
    assert_eq!(read(series, from, to, Direction::Backward), reversed);
    assert_eq!(series.count_in(from..=to), expected.len() as u64);
    assert_eq!(series.len(), model.points.len() as u64);
    assert_eq!(series.floor(), model.floor);
    for time in [from, to, from + 1] {
        assert_eq!(series.get(time), model.points.get(&time).copied(), "at {time}");
        let pair = |(time, value): (&i64, &f64)| (*time, *value);
        assert_eq!(series.at_or_before(time), model.points.range(..=time).next_back().map(pair));
        assert_eq!(series.at_or_after(time), model.points.range(time..).next().map(pair));
    }
    assert_eq!(series.last(), model.points.last_key_value().map(|(time, value)| (*time, *value)));
    assert_eq!(series.first(), model.points.first_key_value().map(|(time, value)| (*time, *value)));
}

/// Returns the series after a way through bytes.
fn stored(series: &Series<f64>) -> Series<f64> {
    let (mut head, mut parts) = (Vec::new(), Vec::new());
    series.encode_head(&mut head);
    for index in 0..series.parts() {
        let mut part = Vec::new();
        series.encode_part(index, &mut part);
        parts.push(part);
    }
    Series::assemble(*series.options(), &head, parts.iter().map(Vec::as_slice)).unwrap()
}

/// A file of blocks in memory.
#[derive(Debug, Default)]
struct MemoryFile {
    words: Mutex<Vec<u64>>,
    fails: AtomicBool,
}

impl BlockSource for MemoryFile {
    fn read(&self, offset: u64, header: &Block, _beside: &mut Beside) -> Result<Vec<u64>, String> {
        if self.fails.load(Relaxed) {
            return Err(format!("offset {offset} of a test's file"));
        }
        let offset = offset as usize;
        Ok(self.words.lock().unwrap()[offset..offset + header.stored_words()].to_vec())
    }

    fn describe(&self, position: u64) -> String {
        format!("at offset {position} of block file 7")
    }

    fn number(&self) -> u64 {
        7
    }
}

/// Gives a place to every block that has none, and returns the file of those.
fn store_blocks(series: &Series<f64>) -> Arc<MemoryFile> {
    let file = Arc::new(MemoryFile::default());
    for block in (0..series.parts()).filter_map(|index| series.block(index)) {
        if block.place().is_none() {
            let mut words = file.words.lock().unwrap();
            let offset = words.len() as u64;
            words.extend_from_slice(block.words());
            block.set_place(Place { source: Arc::<MemoryFile>::clone(&file), position: offset, bytes: 0 });
        }
    }
    file
}

/// A series of 4,096 points at every third time in four blocks that are in a file only, and the file.
fn dropped() -> (Series<f64>, Arc<MemoryFile>) {
    let mut series =
        Series::new(Options { duplicates: DuplicatePolicy::Last, retention: 20_000, ..Options::default() });
    for time in 0..4_096 {
        series.append(time * 3, (time % 100) as f64).unwrap();
    }
    series.seal_all();
    let file = store_blocks(&series);
    let (before, freed) = (series.bytes(), series.drop_points(usize::MAX));
    assert_eq!(series.bytes(), before - freed);
    assert_eq!((series.bytes_of_points(), series.parts()), (0, 4));
    (series, file)
}

#[test]
fn damaged_words_are_not_served() {
    let (series, file) = dropped();
    let end = series.block(0).unwrap().stored_words() - 1;
    for (word, bit) in [(0, 3), (1, 40), (2, 0), (8, 9), (11, 60), (end, 1)] {
        file.words.lock().unwrap()[word] ^= 1 << bit;
        let failure = guarded(|| series.get(300)).expect_err("a bit is flipped");
        assert_eq!((failure.first, failure.last), (0, 1_023 * 3), "{failure}");
        assert!(failure.to_string().contains("block file 7"), "{failure}");
        assert_eq!(guarded(|| series.get(1_024 * 3)), Ok(Some(24.0)), "another block");
        file.words.lock().unwrap()[word] ^= 1 << bit;
    }
    assert_eq!(guarded(|| series.get(300)), Ok(Some(0.0)));
}

#[test]
fn a_change_that_needs_a_block_that_cannot_be_read_changes_nothing() {
    let (mut series, file) = dropped();
    let twin = series.clone();
    file.fails.store(true, Relaxed);
    for range in [4..=7, 10..=5_000, 5_000..=i64::MAX] {
        assert!(guarded(|| series.remove(range.clone())).is_err(), "{range:?}");
    }
    assert!(guarded(|| series.append(300, 1.0)).is_ok_and(|appended| appended.is_err()), "it reports itself");
    assert_eq!(series.append(300, 1.0), Err(AppendError::Unreadable(300)));
    let block = crate::take_refusing_block().expect("a block");
    assert!(block.first <= 300 && 300 <= block.last, "{block}");
    assert_eq!(crate::take_refusing_block(), None);
    assert!(matches!(series.check(300, 1.0, DuplicatePolicy::Last), Err(AppendError::Unreadable(_))));
    assert!(guarded(|| series.read_for_change(300..=300)).is_err());
    assert_eq!(series.append(4_096 * 3, 1.0), Ok(Appended::Added), "it needs no block");
    file.fails.store(false, Relaxed);
    assert_eq!(series.remove(4_096 * 3..=4_096 * 3), 1);
    for direction in [Direction::Forward, Direction::Backward] {
        assert_eq!(read(&series, 0, i64::MAX, direction), read(&twin, 0, i64::MAX, direction));
    }
    assert_eq!(series.remove(i64::MIN..=i64::MAX), 4_096);
}

#[test]
fn blocks_are_counted_and_leave_without_being_read() {
    let (mut series, file) = dropped();
    file.fails.store(true, Relaxed);
    assert_eq!(series.count_in(0..=1_023 * 3), 1_024);
    assert_eq!(series.len(), 4_096);
    series.append(23_070, 1.0).unwrap();
    assert_eq!(series.parts(), 3, "the retention dropped the first block");
    assert_eq!(series.remove(1_024 * 3..=2 * 1_024 * 3 - 1), 1_024);
    assert_eq!(series.parts(), 2);
}

#[test]
fn late_points_over_a_block_that_cannot_be_read_have_a_limit() {
    let (mut series, file) = dropped();
    file.fails.store(true, Relaxed);
    // The time of no point, before the block: the block need not be read to know that.
    let mut taken = 0;
    for index in 0..20_000 {
        let time = -1 - index;
        match series.append(time, 0.5) {
            Ok(Appended::Added) => taken += 1,
            Err(AppendError::Unreadable(_) | AppendError::TooOld { .. }) => break,
            other => panic!("{other:?}"),
        }
    }
    assert!((1_000..=4_000).contains(&taken), "{taken} late points");
    file.fails.store(false, Relaxed);
    assert_eq!(series.len(), 4_096 + taken);
    series.append(4, 0.5).unwrap();
    assert_eq!(series.get(4), Some(0.5));
}

fn apply(series: &mut Series<f64>, model: &mut Model, compressed: &mut Option<SealedPiece<f64>>, step: Step) {
    match step {
        Step::Append(time, value) => {
            assert_eq!(series.append(time, value), model.append(time, value), "append at {time}");
        }
        Step::Extend(count, step) => {
            let start = model.points.last_key_value().map_or(0, |(time, _)| *time).max(model.floor) + step;
            let times: Vec<i64> = (0..i64::from(count)).map(|index| start + index * step).collect();
            let values: Vec<f64> = times.iter().map(|time| (time % 97) as f64 / 4.0).collect();
            series.extend(&times, &values).unwrap();
            model.points.extend(times.iter().copied().zip(values));
            model.retain();
        }
        Step::Late(count, step) => {
            for index in 0..i64::from(count) {
                let (time, value) = (index * step, index as f64);
                assert_eq!(series.append(time, value), model.append(time, value), "late append at {time}");
            }
        }
        Step::Remove(from, to) => {
            let before = model.points.len();
            model.points.retain(|time, _| !(from..=to).contains(time));
            assert_eq!(series.remove(from..=to), (before - model.points.len()) as u64);
        }
        Step::Retention(retention) => {
            model.options.retention = retention;
            model.retain();
            series.set_options(model.options);
        }
        Step::Seal => series.seal(),
        Step::SealElsewhere => {
            if let Some(unsealed) = series.unsealed() {
                assert!(series.put_sealed(unsealed.clone().seal()));
                assert!(!series.put_sealed(unsealed.seal()), "what is sealed is not sealed again");
            }
        }
        Step::SealHead => series.seal_head(),
        Step::BeginSealing => {
            *compressed = series.unsealed().or_else(|| series.unsealed_head()).map(Unsealed::seal);
        }
        Step::EndSealing => {
            if let Some(sealed) = compressed.take() {
                series.put_sealed(sealed);
            }
        }
        Step::SealAll => series.seal_all(),
        Step::Store => *series = stored(series),
        Step::DropPoints(bytes) => {
            store_blocks(series);
            series.drop_points(bytes);
        }
        Step::Read(from, to) => check(series, model, from, to),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn a_series_is_an_ordered_map_with_policies(options in options(), steps in steps()) {
        let mut series = Series::new(options);
        let mut model = Model { options, points: BTreeMap::new(), floor: i64::MIN };
        let mut compressed = None;
        for step in steps {
            apply(&mut series, &mut model, &mut compressed, step);
        }
        check(&series, &model, i64::MIN, i64::MAX - 1);
        series.seal_all();
        check(&series, &model, i64::MIN, i64::MAX - 1);
    }
}

#[test]
fn times_at_the_ends_of_their_range_are_taken() {
    let mut series = Series::new(Options { duplicates: DuplicatePolicy::Last, ..Options::default() });
    for time in [i64::MAX, i64::MIN, 0, i64::MIN + 1, i64::MAX - 1] {
        assert_eq!(series.append(time, time), Ok(Appended::Added));
    }
    for _ in 0..2 {
        assert_eq!(series.get(i64::MIN), Some(i64::MIN));
        assert_eq!(series.get(i64::MAX), Some(i64::MAX));
        assert_eq!(series.at_or_after(1), Some((i64::MAX - 1, i64::MAX - 1)));
        assert_eq!(series.count_in(i64::MIN..=i64::MAX), 5);
        assert_eq!(series.append(i64::MIN, 7), Ok(Appended::Replaced(i64::MIN)));
        assert_eq!(series.append(i64::MIN, i64::MIN), Ok(Appended::Replaced(7)));
        series.seal_all();
    }
}

#[test]
fn a_sum_beyond_the_range_is_refused() {
    let mut series = Series::new(Options { duplicates: DuplicatePolicy::Sum, ..Options::default() });
    series.append(1, i64::MAX).unwrap();
    assert_eq!(series.append(1, 1), Err(AppendError::Overflow(1)));
    assert_eq!(series.get(1), Some(i64::MAX));
}

#[test]
fn points_that_do_not_rise_are_not_appended_together() {
    let mut series = Series::new(Options::default());
    series.append(5, 1.0).unwrap();
    for (times, values) in
        [(&[6, 6][..], &[1.0, 2.0][..]), (&[5, 6], &[1.0, 2.0]), (&[7], &[]), (&[], &[1.0])]
    {
        assert_eq!(series.extend(times, values), Err(AppendError::NotRising));
    }
    assert_eq!(series.len(), 1);
}

#[test]
fn a_line_between_two_points_gives_the_values_between_them() {
    let mut series = Series::new(Options::default());
    series.extend(&[0, 10], &[1.0, 3.0]).unwrap();
    assert_eq!(series.interpolate(5), Some(2.0));
    assert_eq!(series.interpolate(10), Some(3.0));
    assert_eq!(series.interpolate(11), None);
    assert_eq!(series.interpolate(-1), None);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn bytes_that_are_no_series_are_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        flips in proptest::collection::vec(any::<proptest::sample::Index>(), 1..3),
    ) {
        let _ = Series::<f64>::assemble(Options::default(), &bytes, [&bytes[..]]);
        let mut series = Series::new(Options::default());
        for time in 0..3_000 {
            series.append(time * 3, time as f64).unwrap();
        }
        series.append(7, 0.5).unwrap();
        series.seal();
        let mut part = Vec::new();
        series.encode_part(1, &mut part);
        let whole = Series::<f64>::assemble(Options::default(), &[0; 16], [&part[..]]).unwrap();
        prop_assert_eq!(whole.len(), 1_024);
        for flip in flips {
            let at = flip.index(part.len());
            part[at] ^= 1;
        }
        if let Ok(read) = Series::<f64>::assemble(Options::default(), &[0; 16], [&part[..]]) {
            prop_assert_eq!(read.len(), 1_024, "flips that undo each other");
        }
    }
}

#[test]
fn a_piece_goes_as_soon_as_its_last_point_is_too_old() {
    let mut series = Series::new(Options { retention: 1_500, ..Options::default() });
    for time in 0..6_000_i64 {
        assert_eq!(series.append(time, 0.5), Ok(Appended::Added));
        assert_eq!(series.floor(), time - 1_500);
        assert_eq!(series.len(), (time + 1).min(1_501) as u64);
        assert!(series.describe()[0].last >= series.floor(), "at {time}");
    }
}

/// Points of the pieces, and then of the head.
fn shape(series: &Series<f64>) -> Vec<usize> {
    series.describe().iter().map(|chunk| chunk.points).collect()
}

/// A series of points that come one by one, and whose head is compressed when it has grown.
fn slowly_filled(count: i64) -> Series<f64> {
    let mut series = Series::new(Options::default());
    for time in 0..count {
        let before = series.head_growth();
        series.append(time, (time % 10) as f64).unwrap();
        if series.head_growth() > before {
            series.seal_head();
            series.seal();
        }
    }
    series
}

#[test]
fn small_blocks_become_whole_ones() {
    assert_eq!(shape(&slowly_filled(63)), [63]);
    assert_eq!(shape(&slowly_filled(64)), [56, 8], "the newest stay in the head");
    assert_eq!(shape(&slowly_filled(64 + 3 * 56)), [4 * 56, 8]);
    assert_eq!(shape(&slowly_filled(64 + 5 * 56)), [4 * 56, 56, 56, 8]);
    let mut series = slowly_filled(10_300);
    series.seal();
    let shape = shape(&series);
    assert_eq!(&shape[..10], [BLOCK_POINTS; 10], "{shape:?}");
    assert!(shape.len() <= 13, "{shape:?}");
    assert_eq!(series.len(), 10_300);
    assert_eq!(series.lasting_parts(), 10);
}

#[test]
fn a_series_has_no_more_memory_than_its_newest_points_need() {
    for count in [64, 200, 1_100, 2_400] {
        let mut bulk = Series::new(Options::default());
        for first in (0..count).step_by(100) {
            let times: Vec<i64> = (first..count.min(first + 100)).collect();
            bulk.extend(&times, &vec![0.5; times.len()]).unwrap();
            bulk.seal();
        }
        bulk.seal_head();
        for series in [bulk, slowly_filled(count)] {
            let bytes = series.bytes();
            let blocks = 300 * series.chunks();
            assert!(bytes <= blocks + 128 * 16, "{bytes} bytes for {count} points: {:?}", shape(&series));
        }
    }
}

#[test]
fn points_that_are_appended_together_make_whole_blocks() {
    let times: Vec<i64> = (0..4_096).collect();
    let mut series = Series::new(Options::default());
    series.extend(&times, &vec![1.0; times.len()]).unwrap();
    series.seal();
    assert_eq!(shape(&series), [BLOCK_POINTS; 4]);
    // Behind small blocks, the first points fill the block that those began.
    let mut series = slowly_filled(200);
    let behind: Vec<i64> = (200..4_296).collect();
    series.extend(&behind, &vec![1.0; behind.len()]).unwrap();
    series.seal();
    assert_eq!(shape(&series), [1_024, 1_024, 1_024, 1_024, 200]);
}

type Change = fn(&mut Series<f64>);

#[test]
fn what_has_changed_is_not_replaced_by_a_block_of_before() {
    let filled = || {
        let mut series = Series::new(Options { duplicates: DuplicatePolicy::Last, ..Options::default() });
        (0..100).for_each(|time| assert_eq!(series.append(time * 2, 1.0), Ok(Appended::Added)));
        series.seal_head();
        (100..200).for_each(|time| assert_eq!(series.append(time * 2, 1.0), Ok(Appended::Added)));
        series
    };
    let changes: [(&str, Change); 5] = [
        ("a value in the head", |series| assert_eq!(series.append(250, 2.0), Ok(Appended::Replaced(1.0)))),
        ("a point in the head", |series| assert_eq!(series.append(251, 2.0), Ok(Appended::Added))),
        ("points removed from the head", |series| assert_eq!(series.remove(240..=250), 6)),
        ("points removed from a block", |series| assert_eq!(series.remove(20..=30), 6)),
        ("another compression", |series| series.seal_all()),
    ];
    for (what, change) in changes {
        let mut series = filled();
        let sealed = series.unsealed_head().expect("the head is long").seal();
        change(&mut series);
        let points = read(&series, 0, 1_000, Direction::Forward);
        let is_put = series.put_sealed(sealed);
        assert_eq!(is_put, what == "points removed from a block", "{what}");
        assert_eq!(read(&series, 0, 1_000, Direction::Forward), points, "{what}");
    }
    let mut series = filled();
    let sealed = series.unsealed_head().expect("the head is long").seal();
    series.append(1_000, 3.0).unwrap();
    series.append(33, 3.0).unwrap();
    let points = read(&series, 0, 1_000, Direction::Forward);
    assert!(series.put_sealed(sealed), "points behind the head's, and late ones, are not in the way");
    assert_eq!(read(&series, 0, 1_000, Direction::Forward), points);
}

#[test]
fn a_head_that_is_compressed_is_dropped_in_its_time() {
    let mut series = Series::new(Options { retention: 1_500, ..Options::default() });
    for time in 0..3_000_i64 {
        series.append(time, 0.5).unwrap();
        if time % 100 == 99 {
            series.seal_head();
        }
        assert!(series.describe()[0].last >= series.floor(), "at {time}");
        assert_eq!(series.len(), (time + 1).min(1_501) as u64);
    }
    for time in 0..100 {
        series.append(10_000 + time, 0.5).unwrap();
    }
    let sealed = series.unsealed_head().unwrap().seal();
    series.append(20_000, 0.5).unwrap();
    assert!(series.put_sealed(sealed));
    assert_eq!((series.len(), series.stored()), (1, 9), "only points of the head hide");
}

#[test]
fn options_that_change_hold_for_the_next_point() {
    let mut series = Series::new(Options::default());
    for time in 0..3 {
        series.append(time, 1.0).unwrap();
    }
    let ignore = Some(Ignore { time: 10, value: 0.0 });
    series.set_options(Options { ignore, duplicates: DuplicatePolicy::Last, ..Options::default() });
    assert_eq!(series.append(3, 1.0), Ok(Appended::Ignored(2)));
    series.set_options(Options { retention: 1, ..Options::default() });
    assert_eq!(series.append(4, 1.0), Ok(Appended::Added));
    assert_eq!((series.floor(), series.len()), (3, 1));
    series.set_options(Options::default());
    series.append(5, 1.0).unwrap();
    assert_eq!((series.floor(), series.len()), (3, 2));
}
