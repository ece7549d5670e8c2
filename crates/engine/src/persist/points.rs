//! The form of points in the log: those of one command, or of a run of commands, in columns.
//!
//! ```text
//! points       db u8 │ run*
//! run          head u8 │ key? │ policy u8? │ definition? │ points varint? │ time varint* │ values
//! head         form of the values, 4 bits │ KEY │ POLICY │ DEFINITION │ SEVERAL
//! key          bytes in common with the key before, at the start varint, at the end varint │ length of
//!              the middle varint │ middle
//! definition   length varint │ definition of the series that the run creates
//! time         zigzag of the difference to the time before; from the second time of a run on, of
//!              the difference to the difference before
//! values       SAME: none, each is the value before
//!              RAW: the bits of each
//!              XOR: for each, the bytes in which it differs from the value before: number of leading
//!              equal bytes, 4 bits │ number of differing bytes, 4 bits │ these bytes
//!              DECIMAL + e: zigzag varint of the difference to the number before, from 0; the value
//!              is the number divided by 10^e
//! ```
//!
//! A run without a key continues the series of the run before. The first time differs from the
//! record's time in milliseconds, so a point that is stamped when it comes takes one byte for it. The
//! value before the first is 0. Times are computed modulo 2^64.
//!
//! Runs are in the order in which the points were added, because a compaction may join several
//! series. Values keep all of their bits: each form is used only if it gives back the same.

use crate::keyspace::MAX_BYTES;
use crate::persist::apply_error::ApplyError;
use crate::persist::record::{Cursor, put_bytes, put_varint};
use crate::value::{Definition, POLICIES};
use tidemark_series::DuplicatePolicy;

const FORM: u8 = 0x0f;
const KEY: u8 = 0x10;
const POLICY: u8 = 0x20;
const DEFINITION: u8 = 0x40;
const SEVERAL: u8 = 0x80;

const SAME: u8 = 0;
const RAW: u8 = 1;
const XOR: u8 = 2;
/// Decimals without a fraction; the forms above have one digit more each.
const DECIMAL: u8 = 3;

/// Powers of ten that decimals are divided by: an `f64` has each of them exactly.
const POWERS: [f64; 13] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12];

const _: () = assert!(DECIMAL as usize + POWERS.len() == FORM as usize + 1, "every form has a code");

/// Most points of a run that the encoder writes: a value that is no decimal makes at most this many
/// others longer.
const RUN_POINTS: usize = 128;

/// Encoder of a record of points.
#[derive(Debug, Default)]
pub(crate) struct PointsEncoder {
    bytes: Vec<u8>,
    /// Key of the run that is being collected, or of the last one.
    key: Vec<u8>,
    /// Bytes at its start and its end that are those of the key before, if it is not written yet.
    shared: Option<(usize, usize)>,
    policy: Option<DuplicatePolicy>,
    /// Encoded definition for the run; empty for none.
    definition: Vec<u8>,
    times: Vec<i64>,
    values: Vec<f64>,
    /// Last time of the run before.
    time: i64,
    /// Last value of the run before.
    value: u64,
    numbers: Vec<i64>,
}

impl PointsEncoder {
    /// Begins a record of a database at a time in microseconds since 1970. Keeps the memory.
    pub(crate) fn begin(&mut self, db: u8, now_us: u64) {
        self.bytes.clear();
        self.bytes.push(db);
        self.key.clear();
        self.shared = None;
        self.policy = None;
        self.definition.clear();
        self.times.clear();
        self.values.clear();
        (self.time, self.value) = (first_base(now_us), 0);
    }

    /// Whether there are no points.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.len() <= 1 && self.times.is_empty()
    }

    /// Notes that the next point creates its series.
    pub(crate) fn create(&mut self, key: &[u8], definition: &Definition) {
        self.begin_run(key);
        definition.encode(&mut self.definition);
    }

    /// Adds a point.
    pub(crate) fn push(&mut self, key: &[u8], policy: Option<DuplicatePolicy>, time: i64, value: f64) {
        self.continue_run(key, policy);
        self.times.push(time);
        self.values.push(value);
    }

    /// Adds points of one series.
    pub(crate) fn extend(
        &mut self,
        key: &[u8],
        policy: Option<DuplicatePolicy>,
        mut times: &[i64],
        mut values: &[f64],
    ) {
        assert_eq!(times.len(), values.len(), "each point has a time and a value");
        while !times.is_empty() {
            self.continue_run(key, policy);
            let (now, later) = times.split_at(times.len().min(RUN_POINTS - self.times.len()));
            self.times.extend_from_slice(now);
            self.values.extend_from_slice(&values[..now.len()]);
            (times, values) = (later, &values[now.len()..]);
        }
    }

    /// Returns the record's payload.
    pub(crate) fn finish(&mut self) -> &[u8] {
        self.end_run();
        &self.bytes
    }

    /// Returns the memory that it holds, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity() + self.key.capacity() + self.definition.capacity()
    }

    /// Ends the run that is being collected if the next point does not belong to it.
    fn continue_run(&mut self, key: &[u8], policy: Option<DuplicatePolicy>) {
        let is_new = self.bytes.len() == 1 && self.times.is_empty() && self.shared.is_none();
        if is_new || self.key != key {
            self.begin_run(key);
        } else if (self.policy != policy || self.times.len() >= RUN_POINTS) && !self.times.is_empty() {
            self.end_run();
        }
        self.policy = policy;
    }

    fn begin_run(&mut self, key: &[u8]) {
        self.end_run();
        let in_common = |(one, other): &(&u8, &u8)| one == other;
        let start = self.key.iter().zip(key).take_while(in_common).count();
        let rests = self.key[start..].iter().rev().zip(key[start..].iter().rev());
        let end = rests.take_while(in_common).count();
        self.key.truncate(start);
        self.key.extend_from_slice(&key[start..]);
        self.shared = Some((start, end));
    }

    /// Writes the run that is being collected, if it has points.
    fn end_run(&mut self) {
        let Self { bytes, times, values, .. } = self;
        let (Some(&last), count) = (times.last(), times.len()) else { return };
        let head = bytes.len();
        bytes.push(0);
        let mut flags = 0;
        if let Some((start, end)) = self.shared.take() {
            flags |= KEY;
            put_varint(bytes, start as u64);
            put_varint(bytes, end as u64);
            put_bytes(bytes, &self.key[start..self.key.len() - end]);
        }
        if let Some(policy) = self.policy {
            flags |= POLICY;
            let code = POLICIES.iter().position(|(_, known)| *known == policy);
            bytes.push(code.expect("every policy has a code") as u8);
        }
        if !self.definition.is_empty() {
            flags |= DEFINITION;
            put_bytes(bytes, &self.definition);
            self.definition.clear();
        }
        if count > 1 {
            flags |= SEVERAL;
            put_varint(bytes, count as u64);
        }
        put_times(bytes, times, self.time);
        let form = put_values(bytes, values, self.value, &mut self.numbers);
        bytes[head] = flags | form;
        self.time = last;
        self.value = values[count - 1].to_bits();
        times.clear();
        values.clear();
    }
}

/// Returns the time before the first: that of the record, in milliseconds.
fn first_base(now_us: u64) -> i64 {
    (now_us / 1000) as i64
}

#[inline]
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

#[inline]
fn unzigzag(code: u64) -> i64 {
    (code >> 1).cast_signed() ^ -(code & 1).cast_signed()
}

fn put_times(into: &mut Vec<u8>, times: &[i64], base: i64) {
    let [first, rest @ ..] = times else { return };
    put_varint(into, zigzag(first.wrapping_sub(base)));
    let (mut before, mut step) = (*first, 0_i64);
    for time in rest {
        let new_step = time.wrapping_sub(before);
        put_varint(into, zigzag(new_step.wrapping_sub(step)));
        (before, step) = (*time, new_step);
    }
}

/// Appends values and returns their form.
fn put_values(into: &mut Vec<u8>, values: &[f64], base: u64, numbers: &mut Vec<i64>) -> u8 {
    if values.iter().all(|value| value.to_bits() == base) {
        return SAME;
    }
    let (start, raw_bytes) = (into.len(), 8 * values.len());
    if let Some(digits) = decimals(values, numbers) {
        let mut before = 0_i64;
        for number in numbers.iter() {
            // The numbers have at most 54 bits.
            put_varint(into, zigzag(number - before));
            before = *number;
        }
        if into.len() - start <= raw_bytes {
            return DECIMAL + digits;
        }
        into.truncate(start);
    }
    let mut before = base;
    for value in values {
        let bits = value.to_bits();
        put_difference(into, before ^ bits);
        before = bits;
        if into.len() - start > raw_bytes {
            break;
        }
    }
    if into.len() - start <= raw_bytes {
        return XOR;
    }
    into.truncate(start);
    values.iter().for_each(|value| into.extend_from_slice(&value.to_bits().to_le_bytes()));
    RAW
}

/// Appends the bytes of a difference that are not 0, the highest first, and where they are.
fn put_difference(into: &mut Vec<u8>, difference: u64) {
    if difference == 0 {
        into.push(0x80);
        return;
    }
    let (leading, trailing) = (difference.leading_zeros() / 8, difference.trailing_zeros() / 8);
    let count = 8 - leading - trailing;
    into.push((leading << 4 | count) as u8);
    // All eight bytes, because copies of a fixed length are fast.
    let end = into.len() + count as usize;
    into.extend_from_slice(&(difference << (8 * leading)).to_be_bytes());
    into.truncate(end);
}

fn take_difference(bytes: &mut Cursor<'_>) -> Option<u64> {
    let head = bytes.u8()?;
    let (leading, count) = (usize::from(head >> 4), usize::from(head & 15));
    let mut difference = [0; 8];
    difference.get_mut(leading..leading + count)?.copy_from_slice(bytes.take(count)?);
    Some(u64::from_be_bytes(difference))
}

/// Finds the fewest digits after the point with which all values are decimals, and the values as
/// whole numbers of the last digit. `None` if a value is no decimal of at most twelve such digits and
/// 53 bits.
fn decimals(values: &[f64], numbers: &mut Vec<i64>) -> Option<u8> {
    let mut digits = 0;
    'more: loop {
        let power = *POWERS.get(digits)?;
        numbers.clear();
        for value in values {
            match whole(*value, power) {
                Some(number) => numbers.push(number),
                None => {
                    // A value that no number of digits fits ends the search now.
                    digits =
                        (digits + 1..POWERS.len()).find(|more| whole(*value, POWERS[*more]).is_some())?;
                    continue 'more;
                }
            }
        }
        return Some(digits as u8);
    }
}

/// Returns the number that, divided by `power`, is exactly `value`.
#[inline]
fn whole(value: f64, power: f64) -> Option<i64> {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    let scaled = rounded(value * power);
    let number = scaled as i64;
    let fits = scaled.abs() < LIMIT && (number as f64 / power).to_bits() == value.to_bits();
    fits.then_some(number)
}

/// Returns the nearest whole number, of two the even one. Adding a number of which the last bit is a
/// one rounds; processors without an instruction for rounding call a function for the others.
#[inline]
fn rounded(value: f64) -> f64 {
    const ONES: f64 = 6_755_399_441_055_744.0;
    if value.abs() < ONES / 3.0 { (value + ONES) - ONES } else { value.round_ties_even() }
}

/// Points of one series that stand together in a record.
#[derive(Debug, PartialEq)]
pub(crate) struct PointsRun<'r> {
    /// Their key.
    pub(crate) key: &'r [u8],
    /// Definition of the series, if they create it.
    pub(crate) definition: Option<Definition>,
    /// What becomes of a second point at the same time, if the command said so.
    pub(crate) policy: Option<DuplicatePolicy>,
    /// Their times.
    pub(crate) times: &'r [i64],
    /// Their values.
    pub(crate) values: &'r [f64],
}

/// Policy of a run, and the definition of the series that it creates.
type RunOptions = (Option<DuplicatePolicy>, Option<Definition>);

/// Decoder of a record of points.
#[derive(Debug, Clone)]
pub(crate) struct PointsDecoder<'a> {
    cursor: Cursor<'a>,
    has_key: bool,
    key: Vec<u8>,
    times: Vec<i64>,
    values: Vec<f64>,
    time: i64,
    value: u64,
}

impl<'a> PointsDecoder<'a> {
    /// Begins to read a payload, behind its database.
    pub(crate) fn new(cursor: Cursor<'a>, time_us: u64) -> Self {
        Self {
            cursor,
            has_key: false,
            key: Vec::new(),
            times: Vec::new(),
            values: Vec::new(),
            time: first_base(time_us),
            value: 0,
        }
    }

    /// Whether all runs were read.
    pub(crate) fn is_empty(&self) -> bool {
        self.cursor.is_empty()
    }

    /// Whether there is more than one run.
    pub(crate) fn has_several(&self) -> Result<bool, ApplyError> {
        let mut ahead = self.clone();
        Ok(ahead.next_run()?.is_some() && !ahead.is_empty())
    }

    /// Reads the next run; `None` behind the last.
    pub(crate) fn next_run(&mut self) -> Result<Option<PointsRun<'_>>, ApplyError> {
        if self.cursor.is_empty() {
            return Ok(None);
        }
        let (policy, definition) =
            self.read().ok_or_else(|| self.cursor.malformed("a run of points is cut off"))??;
        Ok(Some(PointsRun { key: &self.key, definition, policy, times: &self.times, values: &self.values }))
    }

    /// Reads a run into the buffers; `None` if the bytes end too early.
    fn read(&mut self) -> Option<Result<RunOptions, ApplyError>> {
        let head = self.cursor.u8()?;
        if head & KEY != 0 {
            let start = usize::try_from(self.cursor.varint()?).unwrap_or(usize::MAX);
            let end = usize::try_from(self.cursor.varint()?).unwrap_or(usize::MAX);
            let middle = self.cursor.bytes()?;
            let shared = start.saturating_add(end);
            if shared > self.key.len() || shared + middle.len() > MAX_BYTES {
                return Some(Err(self
                    .cursor
                    .malformed(format!("a key shares {shared} bytes with the one before"))));
            }
            let end = self.key.len() - end;
            self.key.splice(start..end, middle.iter().copied());
            self.has_key = true;
        } else if !self.has_key {
            return Some(Err(self.cursor.malformed("the first run has no key")));
        }
        let mut policy = None;
        if head & POLICY != 0 {
            let code = self.cursor.u8()?;
            let Some((_, known)) = POLICIES.get(usize::from(code)) else {
                return Some(Err(self.cursor.malformed(format!("there is no policy {code}"))));
            };
            policy = Some(*known);
        }
        let mut definition = None;
        if head & DEFINITION != 0 {
            let mut bytes = self.cursor.nested()?;
            definition = Definition::decode(&mut bytes)
                .filter(|definition| bytes.is_empty() && definition.relations.is_none());
            if definition.is_none() {
                return Some(Err(bytes.malformed("the definition of a series is malformed")));
            }
        }
        let mut count = 1;
        if head & SEVERAL != 0 {
            // Each point takes at least one byte, so a damaged count reserves no more than a small
            // multiple of the record's size.
            count = usize::try_from(self.cursor.varint()?)
                .ok()
                .filter(|count| *count <= self.cursor.remaining())?;
        }
        self.take_times(count)?;
        self.take_values(head & FORM, count)?;
        if self.times.iter().any(|time| *time < 0) || self.values.iter().any(|value| value.is_infinite()) {
            return Some(Err(self.cursor.malformed("a point has a negative time or an infinite value")));
        }
        Some(Ok((policy, definition)))
    }

    fn take_times(&mut self, count: usize) -> Option<()> {
        self.times.clear();
        let mut step = 0_i64;
        for index in 0..count {
            let difference = unzigzag(self.cursor.varint()?);
            if index > 0 {
                step = step.wrapping_add(difference);
                self.time = self.time.wrapping_add(step);
            } else {
                self.time = self.time.wrapping_add(difference);
            }
            self.times.push(self.time);
        }
        Some(())
    }

    fn take_values(&mut self, form: u8, count: usize) -> Option<()> {
        self.values.clear();
        match form {
            SAME => self.values.resize(count, f64::from_bits(self.value)),
            RAW => {
                for _ in 0..count {
                    self.values.push(f64::from_bits(self.cursor.u64()?));
                }
            }
            XOR => {
                for _ in 0..count {
                    self.value ^= take_difference(&mut self.cursor)?;
                    self.values.push(f64::from_bits(self.value));
                }
            }
            decimal => {
                let power = POWERS[usize::from(decimal - DECIMAL)];
                let mut number = 0_i64;
                for _ in 0..count {
                    number = number.wrapping_add(unzigzag(self.cursor.varint()?));
                    self.values.push(number as f64 / power);
                }
            }
        }
        if let Some(last) = self.values.last() {
            self.value = last.to_bits();
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persist::damage;
    use proptest::prelude::*;

    /// A point as it is added: its key, whether it creates the series, its policy, its bits.
    type Point = (Vec<u8>, bool, Option<usize>, i64, u64);

    fn value() -> impl Strategy<Value = u64> {
        prop_oneof![
            4 => (-100_000_i32..100_000, 0_i32..6).prop_map(|(number, digits)| {
                (f64::from(number) / 10_f64.powi(digits)).to_bits()
            }),
            2 => any::<f32>().prop_map(|value| f64::from(value).to_bits()),
            2 => any::<u64>(),
            1 => proptest::sample::select(vec![
                0.0, -0.0, f64::NAN, -f64::NAN, 5e-324, f64::MIN_POSITIVE, f64::MAX, f64::MIN, 0.1 + 0.2, 1e15, 1e22,
                9_007_199_254_740_991.0, 9_007_199_254_740_992.0, f64::from_bits(0x7ff0_0000_0000_0001),
            ])
            .prop_map(f64::to_bits),
        ]
        .prop_filter("an infinite value is refused before it is logged", |bits| !f64::from_bits(*bits).is_infinite())
    }

    fn time() -> impl Strategy<Value = i64> {
        prop_oneof![
            4 => 1_767_225_600_000_i64..1_767_225_700_000,
            2 => 0_i64..1000,
            1 => 0..=i64::MAX,
            1 => proptest::sample::select(vec![0, i64::MAX]),
        ]
    }

    fn points() -> impl Strategy<Value = Vec<Point>> {
        let key = prop_oneof![
            3 => (0_u8..4).prop_map(|number| format!("sensor:{number}").into_bytes()),
            1 => proptest::collection::vec(any::<u8>(), 0..40),
        ];
        let policy = prop_oneof![3 => Just(None), 1 => (0..POLICIES.len()).prop_map(Some)];
        let few = (key, proptest::bool::weighted(0.1), policy, time(), value(), 1_usize..200);
        let repeated = few.prop_map(|(key, creates, policy, time, value, count)| {
            // Long runs of one series, too.
            let count = if count > 190 { count } else { 1 };
            let point = move |at: usize| {
                let time = time.saturating_add(1000 * at as i64);
                (key.clone(), creates && at == 0, policy, time, value)
            };
            (0..count).map(point).collect::<Vec<_>>()
        });
        proptest::collection::vec(repeated, 0..20).prop_map(|parts| parts.concat())
    }

    fn definition() -> Definition {
        Definition { retention: 7, policy: Some(DuplicatePolicy::Last), ..Definition::default() }
    }

    fn encode(points: &[Point], now_us: u64) -> Vec<u8> {
        let mut encoder = PointsEncoder::default();
        encoder.begin(0, now_us);
        for (key, creates, policy, time, bits) in points {
            if *creates {
                encoder.create(key, &definition());
            }
            encoder.push(key, policy.map(|at| POLICIES[at].1), *time, f64::from_bits(*bits));
        }
        assert_eq!(encoder.is_empty(), points.is_empty());
        encoder.finish().to_vec()
    }

    fn decode(bytes: &[u8], now_us: u64) -> Result<Vec<Point>, ApplyError> {
        let mut cursor = Cursor::new(bytes);
        cursor.u8();
        let mut decoder = PointsDecoder::new(cursor, now_us);
        let mut points = Vec::new();
        while let Some(run) = decoder.next_run()? {
            let policy = run
                .policy
                .map(|policy| POLICIES.iter().position(|(_, known)| *known == policy).expect("a policy"));
            for (at, (time, value)) in run.times.iter().zip(run.values).enumerate() {
                let creates = run.definition.is_some() && at == 0;
                points.push((run.key.to_vec(), creates, policy, *time, value.to_bits()));
            }
        }
        Ok(points)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn points_read_back_to_the_bit(points in points(), now_us in 0..u64::MAX) {
            prop_assert_eq!(decode(&encode(&points, now_us), now_us), Ok(points));
        }

        #[test]
        fn a_batch_is_what_its_points_are(
            points in proptest::collection::vec((time(), value()), 1..600),
            policy in proptest::option::of(0..POLICIES.len()),
        ) {
            let (times, values): (Vec<i64>, Vec<f64>) =
                points.iter().map(|(time, bits)| (*time, f64::from_bits(*bits))).unzip();
            let mut encoder = PointsEncoder::default();
            encoder.begin(0, 5);
            encoder.extend(b"k", policy.map(|at| POLICIES[at].1), &times, &values);
            let expected: Vec<Point> =
                points.iter().map(|(time, bits)| (b"k".to_vec(), false, policy, *time, *bits)).collect();
            prop_assert_eq!(decode(encoder.finish(), 5), Ok(expected));
        }

        #[test]
        fn an_encoder_is_used_again(one in points(), other in points()) {
            let mut encoder = PointsEncoder::default();
            for points in [&one, &other] {
                encoder.begin(0, 9);
                for (key, _, policy, time, bits) in points {
                    encoder.push(key, policy.map(|at| POLICIES[at].1), *time, f64::from_bits(*bits));
                }
                let again = decode(encoder.finish(), 9).expect("what was encoded decodes");
                let plain: Vec<Point> =
                    points.iter().cloned().map(|(key, _, policy, time, bits)| (key, false, policy, time, bits)).collect();
                prop_assert_eq!(again, plain);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in damage::bytes(200), now_us in 0..u64::MAX) {
            if let Ok(points) = decode(&bytes, now_us) {
                prop_assert_eq!(decode(&encode(&points, now_us), now_us), Ok(points));
            }
        }

        #[test]
        fn a_record_that_is_cut_loses_whole_runs_or_is_refused(points in points(), part in 0.0..1.0) {
            let bytes = encode(&points, 1);
            let cut = (bytes.len() as f64 * part) as usize;
            if let Ok(left) = decode(&bytes[..cut], 1) {
                prop_assert_eq!(&points[..left.len()], &left[..]);
            }
        }
    }

    /// Bytes of a record of these points, less its database.
    fn bytes_of(points: impl Iterator<Item = (String, i64, f64)>) -> usize {
        let points: Vec<Point> =
            points.map(|(key, time, value)| (key.into_bytes(), false, None, time, value.to_bits())).collect();
        encode(&points, 1_767_225_600_000_000).len() - 1
    }

    #[test]
    fn points_are_small() {
        let now = 1_767_225_600_000;
        let measured = |at: i64| 20.0 + ((at * 37) % 100) as f64 / 10.0;
        let many =
            bytes_of((0..1000).map(|at| (format!("sensor:{:06}:temperature", at * 7), now, measured(at))));
        assert!(many < 10_000, "{many} bytes of 1,000 points of as many series with long names");
        let short = bytes_of((0..1000).map(|at| (format!("sensor:{:06}", at * 7), now, measured(at))));
        assert!(short < 10_000, "{short} bytes of 1,000 points of as many series");
        let within = bytes_of((0..1000).map(|at| ("sensor".to_owned(), now + 1000 * at, measured(at))));
        assert!(within < 3_000, "{within} bytes of 1,000 points of one series");
        let constant = bytes_of((0..1000).map(|at| ("sensor".to_owned(), now + 1000 * at, 7.0)));
        assert!(constant < 1_200, "{constant} bytes of 1,000 points of a constant");
    }

    #[test]
    fn what_no_run_can_be_is_refused() {
        for (bytes, error) in [
            (&b"\0\x00\x00"[..], "byte 2: the first run has no key"),
            (b"\0\x10\x01\x00\x01k\x00", "byte 6: a key shares 1 bytes with the one before"),
            (b"\0\x30\x00\x00\x01k\x09\x00", "byte 7: there is no policy 9"),
            (b"\0\x50\x00\x00\x01k\x01\x00\x00", "byte 8: the definition of a series is malformed"),
            (b"\0\x10\x00\x00\x01k", "byte 6: a run of points is cut off"),
            (b"\0\x90\x00\x00\x01k\xff\x7f\x00", "byte 8: a run of points is cut off"),
            (b"\0\x10\x00\x00\x01k\x01", "byte 7: a point has a negative time or an infinite value"),
            (
                b"\0\x11\x00\x00\x01k\x00\0\0\0\0\0\0\xf0\x7f",
                "byte 15: a point has a negative time or an infinite value",
            ),
            (b"\0\x12\x00\x00\x01k\x00\x58aaaaaaaa", "byte 8: a run of points is cut off"),
        ] {
            let refused = decode(bytes, 0).expect_err("it is malformed").to_string();
            assert_eq!(refused, format!("the bytes are malformed at {error}"), "{bytes:?}");
        }
    }
}
