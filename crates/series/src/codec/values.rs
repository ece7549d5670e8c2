//! The values of a block: the smallest of several forms.

use super::decimals::{self, Decimals};
use super::dictionary::{self, Dictionary};
use super::integers::{self, Integers};
use super::packing::Packed;
use super::runs::{self, Runs};
use super::split::{self, Split};
use super::words::{Reader, Words};
use crate::BLOCK_POINTS;
use crate::sample::Kind;
use alp::Exponents;

/// Form of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Form {
    Constant = 1,
    Integers = 2,
    Decimals = 3,
    Split = 4,
    Dictionary = 5,
    Raw = 6,
}

impl Form {
    const ALL: [Self; 6] =
        [Self::Constant, Self::Integers, Self::Decimals, Self::Split, Self::Dictionary, Self::Raw];

    fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|form| *form as u8 == code)
    }
}

/// What one block's encoding teaches the next: it saves searches and changes no result's meaning.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hints {
    exponents: Option<Exponents>,
}

/// Encoded values, and the hints for the next block.
struct Encoded {
    form: Form,
    words: Words,
    hints: Hints,
}

/// Share of runs above which they cannot be smaller than all values, in eighths.
const RUNS_MAX_EIGHTHS: usize = 7;

/// Number of runs up to which all values cannot be smaller.
const RUNS_FEW: usize = 16;

/// Appends values, given by their bits: at least one and at most [`BLOCK_POINTS`]. O(n); a few
/// allocations.
pub(crate) fn encode(kind: Kind, values: &[u64], hints: &mut Hints, into: &mut Words) {
    let of_runs = runs::values_of_runs(values);
    let flat = (of_runs.len() > RUNS_FEW).then(|| encode_flat(kind, values, *hints));
    if let Some(flat) = &flat
        && of_runs.len() > values.len() * RUNS_MAX_EIGHTHS / 8
    {
        return append(flat, 0, &Words::default(), hints, into);
    }
    let mut starts = Words::default();
    runs::encode(values, of_runs.len(), &mut starts);
    let runs = encode_flat(kind, &of_runs, *hints);
    match &flat {
        Some(flat) if flat.words.len() < starts.len() + runs.words.len() => {
            append(flat, 0, &Words::default(), hints, into);
        }
        _ => append(&runs, of_runs.len(), &starts, hints, into),
    }
}

/// Appends encoded values behind the starts of their runs, if they have some.
fn append(encoded: &Encoded, runs: usize, starts: &Words, hints: &mut Hints, into: &mut Words) {
    *hints = encoded.hints;
    into.push(u64::from(encoded.form as u8) | (runs as u64) << 16);
    into.extend(starts.as_slice());
    into.extend(encoded.words.as_slice());
}

/// Encodes values without looking for runs, in the smallest form.
fn encode_flat(kind: Kind, values: &[u64], mut hints: Hints) -> Encoded {
    let mut words = Words::default();
    if values.iter().all(|value| *value == values[0]) {
        words.push(values[0]);
        return Encoded { form: Form::Constant, words, hints };
    }
    let mut forms: Vec<(Form, Words)> = Vec::with_capacity(3);
    if dictionary::encode(values, &mut words) {
        forms.push((Form::Dictionary, words));
    }
    match kind {
        Kind::Float => hints.exponents = encode_numbers(values, hints.exponents, &mut forms),
        Kind::Integer | Kind::Boolean => {
            let integers: Vec<i64> = values.iter().map(|value| value.cast_signed()).collect();
            let mut words = Words::default();
            integers::encode(&integers, &mut words);
            forms.push((Form::Integers, words));
        }
    }
    let smallest = forms.into_iter().min_by_key(|(_, words)| words.len());
    match smallest {
        Some((form, words)) if words.len() < values.len() => Encoded { form, words, hints },
        _ => {
            let mut words = Words::default();
            words.extend(values);
            Encoded { form: Form::Raw, words, hints }
        }
    }
}

/// Bits a value above which decimals may be larger than numbers of full precision.
const DECIMAL_BITS_MAX: usize = 44;

/// Encodes numbers as decimals, and as numbers of full precision if they are none. Returns the
/// decimals' exponents.
fn encode_numbers(
    values: &[u64],
    hint: Option<Exponents>,
    forms: &mut Vec<(Form, Words)>,
) -> Option<Exponents> {
    let numbers: Vec<f64> = values.iter().map(|value| f64::from_bits(*value)).collect();
    let mut words = Words::default();
    let exponents = decimals::encode(&numbers, hint, &mut words);
    let are_decimals = exponents.is_some() && words.len() * 64 <= values.len() * DECIMAL_BITS_MAX;
    if exponents.is_some() {
        forms.push((Form::Decimals, words));
    }
    if !are_decimals && !forms.iter().any(|(form, _)| *form == Form::Dictionary) {
        let mut words = Words::default();
        split::encode(&numbers, &mut words);
        forms.push((Form::Split, words));
    }
    exponents
}

/// Takes what is before values without runs: their form, the runs, and the number of values.
#[inline]
fn read_head<'a>(from: &mut Reader<'a>, count: usize) -> Option<(Form, Option<Runs<'a>>, usize)> {
    let head = from.word()?;
    let form = Form::of_code((head & 0xff) as u8)?;
    match (head >> 16) as usize {
        0 => Some((form, None, count)),
        runs => Some((form, Some(Runs::read(from, count, runs)?), runs)),
    }
}

/// Returns the bits of the value at `index`, without reading what describes the others; `None` if
/// words are missing or the description is impossible. O(1) for most forms, O(count) at worst.
pub(crate) fn value_at(mut from: Reader<'_>, count: usize, index: usize) -> Option<u64> {
    let (form, runs, flat_count) = read_head(&mut from, count)?;
    let index = runs.map_or(index, |runs| runs.run_of(index));
    Some(match form {
        Form::Constant => from.word()?,
        Form::Integers => Integers::read(&mut from, flat_count)?.get(index).cast_unsigned(),
        Form::Decimals => Decimals::read(&mut from, flat_count)?.get(index),
        Form::Split => Split::read(&mut from, flat_count)?.get(index),
        Form::Dictionary => Dictionary::read(&mut from, flat_count)?.get(index),
        Form::Raw => from.take(flat_count)?[index],
    })
}

/// Values that [`encode`] wrote.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a> {
    count: usize,
    /// Number of runs, or of points if there are no runs.
    flat_count: usize,
    runs: Option<Runs<'a>>,
    flat: Flat<'a>,
}

/// Values without runs.
#[derive(Debug, Clone, Copy)]
enum Flat<'a> {
    Constant(u64),
    Integers(Integers<'a>),
    Decimals(Decimals<'a>),
    Split(Split<'a>),
    Dictionary(Dictionary<'a>),
    Raw(&'a [u64]),
}

impl<'a> Values<'a> {
    /// Takes `count` values; `None` if words are missing or the description is impossible. O(1).
    pub(crate) fn read(from: &mut Reader<'a>, count: usize) -> Option<Self> {
        if count == 0 || count > BLOCK_POINTS {
            return None;
        }
        let (form, runs, flat_count) = read_head(from, count)?;
        let flat = match form {
            Form::Constant => Flat::Constant(from.word()?),
            Form::Integers => Flat::Integers(Integers::read(from, flat_count)?),
            Form::Decimals => Flat::Decimals(Decimals::read(from, flat_count)?),
            Form::Split => Flat::Split(Split::read(from, flat_count)?),
            Form::Dictionary => Flat::Dictionary(Dictionary::read(from, flat_count)?),
            Form::Raw => Flat::Raw(from.take(flat_count)?),
        };
        Some(Self { count, flat_count, runs, flat })
    }

    /// Whether every position that the values refer to is in the block. O(exceptions + runs).
    pub(crate) fn is_well_formed(&self) -> bool {
        let flat_count = match &self.flat {
            Flat::Integers(integers) if !integers.is_well_formed() => return false,
            Flat::Decimals(decimals) if !decimals.is_well_formed() => return false,
            Flat::Split(split) if !split.is_well_formed() => return false,
            _ => self.flat_count,
        };
        self.runs.is_none_or(|runs| runs.are_well_formed(self.count, flat_count))
    }

    /// Calls `look` with what has a packed integer for each value, or each run.
    pub(super) fn for_each_packed(&self, mut look: impl FnMut(Packed<'a>)) {
        match &self.flat {
            Flat::Constant(_) | Flat::Raw(_) => (),
            Flat::Integers(integers) => look(integers.packed()),
            Flat::Decimals(decimals) => look(decimals.packed()),
            Flat::Split(split) => split.packed().into_iter().for_each(look),
            Flat::Dictionary(dictionary) => look(dictionary.packed()),
        }
    }

    /// Writes the bits of all values to the front of `into`. O(count), no allocation.
    pub(crate) fn decode(&self, into: &mut [u64; BLOCK_POINTS]) {
        match &self.flat {
            Flat::Constant(bits) => return into[..self.count].fill(*bits),
            Flat::Integers(integers) => integers.decode(into),
            Flat::Decimals(decimals) => decimals.decode(into),
            Flat::Split(split) => split.decode(into),
            Flat::Dictionary(dictionary) => dictionary.decode(into),
            Flat::Raw(values) => into[..values.len()].copy_from_slice(values),
        }
        if let Some(runs) = &self.runs {
            runs.expand(into, self.count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(kind: Kind, values: &[u64]) -> Vec<u64> {
        let mut words = Words::default();
        let mut hints = Hints::default();
        encode(kind, values, &mut hints, &mut words);
        let first = words.into_vec();
        let mut words = Words::default();
        encode(kind, values, &mut hints, &mut words);
        // Hints save searches; they may not make a block larger.
        assert!(words.len() <= first.len(), "{} words with hints, {} without", words.len(), first.len());
        first
    }

    fn check(kind: Kind, values: &[u64]) {
        let words = encoded(kind, values);
        let mut reader = Reader::new(&words);
        let read = Values::read(&mut reader, values.len()).expect("what was encoded is well formed");
        assert!(reader.is_empty());
        let mut decoded = [9; BLOCK_POINTS];
        read.decode(&mut decoded);
        assert_eq!(&decoded[..values.len()], values);
        for (index, value) in values.iter().enumerate() {
            let found = value_at(Reader::new(&words), values.len(), index);
            assert_eq!(found, Some(*value), "at {index}");
        }
    }

    /// Numbers as sensors and counters have them, and numbers that are hard to encode.
    fn numbers() -> impl Strategy<Value = Vec<u64>> {
        let special = prop_oneof![
            Just(f64::NAN.to_bits()),
            Just(0x7ff8_dead_beef_0001),
            Just((-0.0_f64).to_bits()),
            Just(0.0_f64.to_bits()),
            Just(f64::INFINITY.to_bits()),
            Just(f64::NEG_INFINITY.to_bits()),
            Just(1_u64),
            Just(f64::MIN_POSITIVE.to_bits()),
            Just(f64::MAX.to_bits()),
            Just((i64::MAX as f64).to_bits()),
            Just(1e300_f64.to_bits()),
        ];
        let decimal = (-100_000_i64..100_000, 0_u8..5)
            .prop_map(|(digits, places)| (digits as f64 / 10_f64.powi(i32::from(places))).to_bits());
        let size = 1..=BLOCK_POINTS;
        prop_oneof![
            proptest::collection::vec(decimal.clone(), size.clone()),
            proptest::collection::vec(prop_oneof![20 => decimal.clone(), 1 => special.clone()], size.clone()),
            proptest::collection::vec(prop_oneof![1 => decimal, 1 => special.clone()], size.clone()),
            proptest::collection::vec(special, size.clone()),
            proptest::collection::vec((0.0_f64..1.0).prop_map(f64::to_bits), size.clone()),
            proptest::collection::vec(any::<u64>(), size.clone()),
            // Runs, long and short.
            proptest::collection::vec((0_u64..4, 1_usize..200), 1..60).prop_map(|runs| {
                let mut values: Vec<u64> = runs
                    .into_iter()
                    .flat_map(|(value, length)| std::iter::repeat_n((value as f64).to_bits(), length))
                    .collect();
                values.truncate(BLOCK_POINTS);
                values
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

        #[test]
        fn numbers_are_read_back_to_the_bit(values in numbers()) {
            check(Kind::Float, &values);
        }

        #[test]
        fn integers_are_read_back(values in numbers()) {
            check(Kind::Integer, &values);
        }

        #[test]
        fn booleans_are_read_back(values in proptest::collection::vec(0_u64..2, 1..=BLOCK_POINTS)) {
            check(Kind::Boolean, &values);
        }

        #[test]
        fn damaged_words_are_refused_or_decoded_to_something(
            values in numbers(),
            damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u64>()), 1..4),
        ) {
            let mut words = encoded(Kind::Float, &values);
            for (at, bits) in damage {
                let at = at.index(words.len());
                words[at] ^= bits;
            }
            if let Some(read) = Values::read(&mut Reader::new(&words), values.len())
                && read.is_well_formed()
            {
                read.decode(&mut [0; BLOCK_POINTS]);
                for index in 0..values.len() {
                    let found = value_at(Reader::new(&words), values.len(), index);
                    prop_assert!(found.is_some());
                }
            }
        }
    }
}
