//! Integers, by what the step from one to the next is like.
//!
//! Differences to the first integer are divided by their greatest common divisor. Then one of three
//! transforms makes them small: the distance to a straight line, the difference to the integer
//! before, or the difference of two such differences. What is left is packed by one width, chosen
//! for the smallest size; the few that need more bits are exceptions (PFOR: "Super-Scalar RAM-CPU
//! Cache Compression", ICDE 2006).
//!
//! All arithmetic wraps, in both directions, so every sequence of `i64` is read back as it was.

use super::line::{FRACTION_MAX, Line};
use super::packing::{CHUNK, Packed, bit_length, pack};
use super::positions::{self, Positions};
use super::window::{Fit, unzigzag, zigzag};
use super::words::{Reader, Words};
use crate::BLOCK_POINTS;

/// Distance between the positions whose running sum is stored, so that one integer can be read
/// without adding up all before it.
const RESTART: usize = CHUNK;

/// How an integer is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Transform {
    /// By a line through the first integer.
    Line = 0,
    /// By the integer before.
    Delta = 1,
    /// By the two integers before.
    DeltaOfDelta = 2,
}

impl Transform {
    fn of_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Line),
            1 => Some(Self::Delta),
            2 => Some(Self::DeltaOfDelta),
            _ => None,
        }
    }

    /// Number of integers at the start that have no prediction.
    fn unpredicted(self) -> usize {
        self as usize
    }
}

fn greatest_common_divisor(mut left: u64, mut right: u64) -> u64 {
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left
}

/// Returns the greatest common divisor of the differences, at least 1.
fn common_divisor(differences: &[i64]) -> u64 {
    let mut divisor = 0;
    for difference in differences {
        let magnitude = difference.unsigned_abs();
        if divisor == 0 || magnitude % divisor != 0 {
            divisor = greatest_common_divisor(divisor, magnitude);
            if divisor == 1 {
                break;
            }
        }
    }
    divisor.max(1)
}

/// Writes what is left of `steps` after the prediction. Positions without a prediction repeat the
/// first that has one, so that they cost nothing.
fn predict(steps: &[i64], transform: Transform, line: Line, into: &mut [i64; BLOCK_POINTS]) {
    match transform {
        Transform::Line => {
            for (index, (left, step)) in into.iter_mut().zip(steps).enumerate() {
                *left = step.wrapping_sub(line.at(index));
            }
        }
        Transform::Delta => {
            for (left, pair) in into[1..].iter_mut().zip(steps.windows(2)) {
                *left = pair[1].wrapping_sub(pair[0]);
            }
        }
        Transform::DeltaOfDelta => {
            for (left, three) in into[2..].iter_mut().zip(steps.windows(3)) {
                *left = three[2].wrapping_sub(three[1]).wrapping_sub(three[1].wrapping_sub(three[0]));
            }
        }
    }
    let unpredicted = transform.unpredicted();
    let first = into[unpredicted.min(steps.len() - 1)];
    into[..unpredicted].fill(first);
}

/// A way to encode, and what it costs.
struct Plan {
    transform: Transform,
    line: Line,
    fit: Fit,
}

/// Returns the cheapest way to encode `steps`.
fn plan(steps: &[i64], scratch: &mut [i64; BLOCK_POINTS]) -> Plan {
    let count = steps.len();
    let line = Line::through(steps);
    let mut best: Option<Plan> = None;
    let candidates = [
        (Transform::Line, Line::FLAT, 0),
        (Transform::Line, line, 64),
        (Transform::Delta, Line::FLAT, 64 + 24 * (count / RESTART) as u64),
        (Transform::DeltaOfDelta, Line::FLAT, 64),
    ];
    for (transform, line, bits) in candidates {
        if count <= transform.unpredicted()
            || (bits == 64 && transform == Transform::Line && line == Line::FLAT)
        {
            continue;
        }
        predict(steps, transform, line, scratch);
        let mut fit = Fit::of(&scratch[..count]);
        fit.bits += bits;
        if best.as_ref().is_none_or(|best| fit.bits < best.fit.bits) {
            best = Some(Plan { transform, line, fit });
        }
        if fit.width == 0 && fit.exceptions == 0 {
            break;
        }
    }
    best.expect("the flat line can encode everything")
}

/// Appends `values`, at least one and at most [`BLOCK_POINTS`]. O(n), no allocation but `into`'s.
pub(crate) fn encode(values: &[i64], into: &mut Words) {
    let count = values.len();
    assert!((1..=BLOCK_POINTS).contains(&count), "{count} integers in a block");
    let mut steps = [0; BLOCK_POINTS];
    for (step, value) in steps.iter_mut().zip(values) {
        *step = value.wrapping_sub(values[0]);
    }
    let steps = &mut steps[..count];
    let divisor = common_divisor(steps);
    if divisor > 1 {
        for step in &mut *steps {
            *step = divided(*step, divisor);
        }
    }
    let mut scratch = [0; BLOCK_POINTS];
    let Plan { transform, line, fit } = plan(steps, &mut scratch);
    predict(steps, transform, line, &mut scratch);
    let restarts = Restarts::of(transform, steps);
    into.push(
        u64::from(transform as u8)
            | u64::from(divisor > 1) << 2
            | u64::from(line != Line::FLAT) << 3
            | u64::from(fit.width) << 8
            | u64::from(fit.exception_width) << 16
            | u64::from(line.fraction) << 24
            | u64::from(restarts.width) << 32
            | (fit.exceptions as u64) << 48,
    );
    into.push(values[0].cast_unsigned());
    into.push(fit.base.cast_unsigned());
    if divisor > 1 {
        into.push(divisor);
    }
    if line != Line::FLAT {
        into.push(line.slope.cast_unsigned());
    }
    if transform == Transform::DeltaOfDelta {
        into.push(steps[1].cast_unsigned());
    }
    encode_residuals(&scratch[..count], &fit, into);
    restarts.encode(into);
}

/// Divides a difference by a divisor of it.
fn divided(step: i64, divisor: u64) -> i64 {
    let magnitude = (step.unsigned_abs() / divisor).cast_signed();
    if step < 0 { magnitude.wrapping_neg() } else { magnitude }
}

/// Packs what is left after the prediction: what fits into the width, then the exceptions.
fn encode_residuals(residuals: &[i64], fit: &Fit, into: &mut Words) {
    let mut packed = [0; BLOCK_POINTS];
    let mut positions = Vec::with_capacity(fit.exceptions);
    let mut exceptions = Vec::with_capacity(fit.exceptions);
    for (index, (slot, residual)) in packed.iter_mut().zip(residuals).enumerate() {
        let above = residual.wrapping_sub(fit.base);
        if bit_length(above.cast_unsigned()) <= fit.width {
            *slot = above.cast_unsigned();
        } else {
            positions.push(index as u64);
            exceptions.push(zigzag(above));
        }
    }
    assert_eq!(exceptions.len(), fit.exceptions, "exceptions at a width of {}", fit.width);
    pack(&packed[..residuals.len()], fit.width, into);
    positions::encode(&positions, into);
    pack(&exceptions, fit.exception_width, into);
}

/// Running sums at every [`RESTART`]th position, for [`Transform::Delta`].
struct Restarts {
    sums: Vec<u64>,
    width: u32,
}

impl Restarts {
    fn of(transform: Transform, steps: &[i64]) -> Self {
        let sums: Vec<u64> = match transform {
            Transform::Delta => steps.iter().step_by(RESTART).skip(1).map(|sum| zigzag(*sum)).collect(),
            Transform::Line | Transform::DeltaOfDelta => Vec::new(),
        };
        let width = sums.iter().map(|sum| bit_length(*sum)).max().unwrap_or(0);
        Self { sums, width }
    }

    fn count(transform: Transform, count: usize) -> usize {
        if transform == Transform::Delta { (count - 1) / RESTART } else { 0 }
    }

    fn encode(&self, into: &mut Words) {
        pack(&self.sums, self.width, into);
    }
}

/// Integers that [`encode`] wrote.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Integers<'a> {
    count: usize,
    transform: Transform,
    first: i64,
    divisor: i64,
    base: i64,
    line: Line,
    first_delta: i64,
    packed: Packed<'a>,
    width: u32,
    positions: Positions<'a>,
    exceptions: Packed<'a>,
    restarts: Packed<'a>,
}

impl<'a> Integers<'a> {
    /// Takes `count` integers; `None` if words are missing or the description is impossible. O(1); the
    /// rest is checked by [`Integers::is_well_formed`].
    #[inline]
    pub(crate) fn read(from: &mut Reader<'a>, count: usize) -> Option<Self> {
        if count == 0 || count > BLOCK_POINTS {
            return None;
        }
        let head = from.word()?;
        let transform = Transform::of_code((head & 3) as u8)?;
        let byte = |shift: u32| (head >> shift & 0xff) as u32;
        let first = from.word()?.cast_signed();
        let base = from.word()?.cast_signed();
        let divisor = if head & 4 == 0 { 1 } else { from.word()?.cast_signed() };
        let line = if head & 8 == 0 {
            Line::FLAT
        } else {
            Line { slope: from.word()?.cast_signed(), fraction: byte(24) }
        };
        let first_delta = if transform == Transform::DeltaOfDelta { from.word()?.cast_signed() } else { 0 };
        let exception_count = (head >> 48) as usize;
        if count <= transform.unpredicted() || line.fraction > FRACTION_MAX || exception_count > count {
            return None;
        }
        let packed = Packed::read(from, count, byte(8))?;
        let (positions, exceptions) = match exception_count {
            0 => (Positions::NONE, Packed::NONE),
            some => (Positions::read(from, some)?, Packed::read(from, some, byte(16))?),
        };
        let restarts = Packed::read(from, Restarts::count(transform, count), byte(32))?;
        Some(Self {
            count,
            transform,
            first,
            divisor,
            base,
            line,
            first_delta,
            packed,
            width: byte(8),
            positions,
            exceptions,
            restarts,
        })
    }

    /// Whether the positions of the exceptions rise and are in the block. O(exceptions).
    pub(crate) fn is_well_formed(&self) -> bool {
        self.positions.are_well_formed(self.count)
    }

    /// Returns what has a packed integer for each integer.
    pub(super) fn packed(&self) -> Packed<'a> {
        self.packed
    }

    /// Returns the integer at `index`. O(1) for a line, at most 128 additions for deltas, O(count)
    /// for deltas of deltas.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> i64 {
        let step = match self.transform {
            Transform::Line => self.line.at(index).wrapping_add(self.residual(index)),
            Transform::Delta => self.sum_of_deltas(index),
            Transform::DeltaOfDelta => {
                let mut steps = [0; BLOCK_POINTS];
                self.decode(&mut steps);
                return steps[index].cast_signed();
            }
        };
        self.first.wrapping_add(step.wrapping_mul(self.divisor))
    }

    /// Returns what is left at `index` after the prediction.
    #[inline]
    fn residual(&self, index: usize) -> i64 {
        let above = match self.positions.find(index) {
            Some(exception) => unzigzag(self.exceptions.get(exception)),
            None => self.packed.get(index).cast_signed(),
        };
        self.base.wrapping_add(above)
    }

    /// Adds up the deltas since the restart before `index`.
    fn sum_of_deltas(&self, index: usize) -> i64 {
        let (restart, distance) = (index / RESTART, index % RESTART);
        let start = index - distance;
        let packed = self.packed.sum_of_chunk(restart, distance + 1).wrapping_sub(self.packed.get(start));
        let of_bases = self.base.wrapping_mul(distance as i64);
        let mut sum = self.sum_at_restart(restart).wrapping_add(of_bases).wrapping_add(packed.cast_signed());
        if self.positions.len() > 0 {
            // An exception's place among the packed integers is zero.
            for exception in self.positions.count_before(start + 1)..self.positions.count_before(index + 1) {
                sum = sum.wrapping_add(unzigzag(self.exceptions.get(exception)));
            }
        }
        sum
    }

    /// Returns the sum of the deltas up to a restart.
    #[inline]
    fn sum_at_restart(&self, restart: usize) -> i64 {
        if restart == 0 { 0 } else { unzigzag(self.restarts.get(restart - 1)) }
    }

    /// Writes the deltas from a restart on, at least `count` of them, to `into`; the base is missing in
    /// each, and the first is not the step to the restart.
    #[inline]
    fn unpack_deltas(&self, restart: usize, count: usize, into: &mut [u64; RESTART]) {
        self.packed.unpack_chunk(restart, count, into);
        if self.positions.len() > 0 {
            let start = restart * RESTART;
            for exception in self.positions.count_before(start)..self.positions.len() {
                let position = self.positions.get(exception) - start;
                if position >= count {
                    break;
                }
                into[position] = unzigzag(self.exceptions.get(exception)).cast_unsigned();
            }
        }
    }

    /// Returns how many integers are at most `value`, if they rise. O(1) for a line without
    /// exceptions that fits exactly, else O(log n) for a line, at most 128 additions for deltas, and
    /// O(n) for the rest.
    pub(crate) fn count_up_to(&self, value: i64) -> usize {
        if value < self.first {
            return 0;
        }
        if self.transform == Transform::Line
            && self.positions.len() == 0
            && self.line.slope > 0
            && self.width < 63
        {
            return self.count_along_line(value);
        }
        if self.transform == Transform::Delta {
            return self.count_deltas_up_to(value);
        }
        let mut integers = [0; BLOCK_POINTS];
        self.decode(&mut integers);
        integers[..self.count].partition_point(|integer| integer.cast_signed() <= value)
    }

    /// Adds up the deltas behind the last restart that is not above `value`, which is not below the
    /// first integer.
    fn count_deltas_up_to(&self, value: i64) -> usize {
        let at_restart =
            |restart: usize| self.first.wrapping_add(self.sum_at_restart(restart).wrapping_mul(self.divisor));
        let (mut restart, mut above) = (0, Restarts::count(self.transform, self.count) + 1);
        while restart + 1 < above {
            let middle = usize::midpoint(restart, above);
            if at_restart(middle) <= value { restart = middle } else { above = middle }
        }
        let start = restart * RESTART;
        let count = RESTART.min(self.count - start);
        let mut deltas = [0; RESTART];
        self.unpack_deltas(restart, count, &mut deltas);
        let mut integer = at_restart(restart);
        for (index, delta) in deltas[..count].iter().enumerate().skip(1) {
            let delta = self.base.wrapping_add(delta.cast_signed());
            integer = integer.wrapping_add(delta.wrapping_mul(self.divisor));
            if integer > value {
                return start + index;
            }
        }
        start + count
    }

    /// Narrows the search to the positions where the line is near `value`.
    #[inline]
    fn count_along_line(&self, value: i64) -> usize {
        let distance = value.cast_unsigned().wrapping_sub(self.first.cast_unsigned());
        let step = if self.divisor == 1 { distance } else { distance / self.divisor.cast_unsigned() };
        let Some(height) = i64::try_from(step).ok().and_then(|step| step.checked_sub(self.base)) else {
            return self.count;
        };
        let high = self.line.positions_up_to(height, self.count);
        if self.width == 0 {
            return high;
        }
        let spread = (1_i64 << self.width) - 1;
        let low = self.line.positions_up_to(height.saturating_sub(spread), self.count);
        let (mut low, mut high) = (low, high);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.get(middle) <= value {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Writes all integers to the front of `into`, each as a word with its bits. O(count), no
    /// allocation.
    pub(crate) fn decode(&self, into: &mut [u64; BLOCK_POINTS]) {
        self.packed.unpack(into);
        for (exception, position) in self.positions.iter().enumerate() {
            into[position] = unzigzag(self.exceptions.get(exception)).cast_unsigned();
        }
        let into = &mut into[..self.count];
        match (self.transform, self.divisor) {
            (Transform::Line, 1) if self.line == Line::FLAT => {
                let base = self.first.wrapping_add(self.base).cast_unsigned();
                into.iter_mut().for_each(|word| *word = word.wrapping_add(base));
            }
            (Transform::Line, divisor) if self.is_progression() => {
                let step = (self.line.slope >> self.line.fraction).wrapping_mul(divisor).cast_unsigned();
                let mut value = self.first.wrapping_add(self.base.wrapping_mul(divisor)).cast_unsigned();
                for word in into {
                    *word = value;
                    value = value.wrapping_add(step);
                }
            }
            (Transform::Line, divisor) => self.decode_line(into, divisor.cast_unsigned()),
            // Apart from the general case: it saves a multiplication for each integer.
            (Transform::Delta, 1) => self.decode_deltas(into, 1),
            (Transform::Delta, divisor) => self.decode_deltas(into, divisor.cast_unsigned()),
            (Transform::DeltaOfDelta, divisor) => self.decode_deltas_of_deltas(into, divisor.cast_unsigned()),
        }
    }

    /// Whether all integers are on the line, and its steps are whole.
    fn is_progression(&self) -> bool {
        let is_whole = self.line.slope & ((1 << self.line.fraction) - 1) == 0;
        self.width == 0 && self.positions.len() == 0 && is_whole
    }

    fn decode_line(&self, words: &mut [u64], divisor: u64) {
        let (first, base) = (self.first.cast_unsigned(), self.base.cast_unsigned());
        let mut scaled = 0_i64;
        for word in words {
            let height = (scaled >> self.line.fraction).cast_unsigned();
            let step = height.wrapping_add(base).wrapping_add(*word);
            *word = first.wrapping_add(step.wrapping_mul(divisor));
            scaled = scaled.wrapping_add(self.line.slope);
        }
    }

    #[inline]
    fn decode_deltas(&self, words: &mut [u64], divisor: u64) {
        let base = self.base.cast_unsigned().wrapping_mul(divisor);
        let mut value = self.first.cast_unsigned();
        words[0] = value;
        for word in &mut words[1..] {
            // Only this addition waits for the integer before.
            let delta = base.wrapping_add(word.wrapping_mul(divisor));
            value = value.wrapping_add(delta);
            *word = value;
        }
    }

    fn decode_deltas_of_deltas(&self, words: &mut [u64], divisor: u64) {
        let (first, base) = (self.first.cast_unsigned(), self.base.cast_unsigned());
        let mut delta = self.first_delta.cast_unsigned();
        let mut step = delta;
        words[0] = first;
        words[1] = first.wrapping_add(step.wrapping_mul(divisor));
        for word in &mut words[2..] {
            delta = delta.wrapping_add(base.wrapping_add(*word));
            step = step.wrapping_add(delta);
            *word = first.wrapping_add(step.wrapping_mul(divisor));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(values: &[i64]) -> Vec<u64> {
        let mut words = Words::default();
        encode(values, &mut words);
        words.into_vec()
    }

    fn check(values: &[i64]) -> usize {
        let words = encoded(values);
        let mut reader = Reader::new(&words);
        let integers = Integers::read(&mut reader, values.len()).expect("what was encoded is well formed");
        assert!(reader.is_empty());
        let mut decoded = [0; BLOCK_POINTS];
        integers.decode(&mut decoded);
        assert_eq!(decoded[..values.len()].iter().map(|word| word.cast_signed()).collect::<Vec<_>>(), values);
        for (index, value) in values.iter().enumerate() {
            assert_eq!(integers.get(index), *value, "at {index}");
        }
        words.len() * 8
    }

    fn check_rising(values: &[i64]) {
        let words = encoded(values);
        let integers = Integers::read(&mut Reader::new(&words), values.len()).unwrap();
        for value in values {
            for near in [value.saturating_sub(1), *value, value.saturating_add(1)] {
                let count = values.partition_point(|value| *value <= near);
                assert_eq!(integers.count_up_to(near), count, "up to {near}");
            }
        }
        assert_eq!(integers.count_up_to(i64::MAX), values.len());
    }

    /// Sequences as series have them, and sequences that no series has.
    fn sequences() -> impl Strategy<Value = Vec<i64>> {
        let steps = prop_oneof![
            (1_i64..2_000_000_000).prop_map(|step| (step, 0_i64)),
            (1_i64..2_000_000_000, 0_i64..1_000),
            (0_i64..4, 1_i64..3),
        ];
        let regular = (any::<i64>(), steps, proptest::collection::vec(0_i64..1 << 20, 1..=BLOCK_POINTS))
            .prop_map(|(first, (step, jitter), noise)| {
                let mut value = first;
                let next = |noise: i64| {
                    let jitter = if jitter == 0 { 0 } else { noise % jitter };
                    value = value.wrapping_add(step).wrapping_add(jitter);
                    value
                };
                noise.into_iter().map(next).collect::<Vec<_>>()
            });
        let extremes = prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(0), -3_i64..3, any::<i64>()];
        prop_oneof![
            regular,
            proptest::collection::vec(extremes, 1..40),
            proptest::collection::vec(any::<i64>(), 1..=BLOCK_POINTS),
            proptest::collection::vec(
                prop_oneof![60 => 0_i64..50, 1 => any::<i64>()],
                BLOCK_POINTS..=BLOCK_POINTS
            ),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

        #[test]
        fn integers_are_read_back_one_by_one_and_all_together(values in sequences()) {
            check(&values);
        }

        #[test]
        fn the_count_up_to_a_value_is_that_of_a_sorted_list(mut values in sequences()) {
            values.sort_unstable();
            values.dedup();
            check_rising(&values);
        }

        #[test]
        fn damaged_words_are_refused_or_decoded_to_something(
            values in sequences(),
            damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u64>()), 1..4),
        ) {
            let mut words = encoded(&values);
            for (at, bits) in damage {
                let at = at.index(words.len());
                words[at] ^= bits;
            }
            if let Some(integers) = Integers::read(&mut Reader::new(&words), values.len())
                && integers.is_well_formed()
            {
                integers.decode(&mut [0; BLOCK_POINTS]);
                for (index, value) in values.iter().enumerate() {
                    integers.get(index);
                    integers.count_up_to(*value);
                }
            }
        }
    }

    #[test]
    fn regular_times_take_a_few_words() {
        let milliseconds: Vec<i64> = (0..1024).map(|index| 1_700_000_000_000 + index * 15_000).collect();
        assert!(check(&milliseconds) <= 40);
        check_rising(&milliseconds);
    }

    #[test]
    fn times_with_jitter_take_the_jitters_bits() {
        let jittered: Vec<i64> = (0..1024).map(|index| index * 1_000_000 + index * 7919 % 61).collect();
        // 6 bits a point, and at most 48 bytes.
        assert!(check(&jittered) <= 6 * 128 + 48);
        check_rising(&jittered);
    }

    #[test]
    fn a_common_divisor_costs_one_word() {
        let nanoseconds: Vec<i64> =
            (0..1024).map(|index| (index * 1000 + index * 31 % 7) * 1_000_000).collect();
        assert!(check(&nanoseconds) <= 3 * 128 + 56);
    }

    #[test]
    fn single_outliers_do_not_widen_the_rest() {
        let mut values: Vec<i64> = (0..1024).map(|index| index * 31 % 16).collect();
        values[100] = 1 << 50;
        values[700] = -(1 << 40);
        assert!(check(&values) <= 4 * 128 + 56);
    }
}
