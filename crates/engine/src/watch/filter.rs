//! Operators on a watched read's emissions: a subscriber gets only what it needs.
//!
//! They do what the circuit operators of the same names do, answer by answer, with the record's
//! time as clock. Their state belongs to the query, so all subscribers of the same read with the
//! same operators share one sequence. It is saved in snapshots and replayed with the log.

use crate::command::parse;
use crate::error::CommandError;
use crate::persist::record::{Cursor, put_bytes, put_varint};
use crate::wire::reply::{Protocol, Reply};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

const MAX_WINDOW: u64 = 65_536;
const MAX_OPERATORS: usize = 16;

/// Operators, in the order in which they are applied.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Filter {
    /// Words in upper case, by which filters are compared and encoded.
    words: Box<[Box<[u8]>]>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Operator {
    /// Drops an answer equal to the one before it.
    Diff,
    /// Passes every n-th answer.
    Every(u64),
    /// Passes the first n answers.
    Limit(u64),
    /// Drops the first n answers.
    Skip(u64),
    /// Passes a number greater than all before it.
    High,
    /// Passes a number less than all before it.
    Low,
    /// Passes numbers from the first to the second.
    Range(Number, Number),
    /// Passes an answer if this many microseconds have passed since the last one that passed.
    Throttle(u64),
    /// Replaces a number by an aggregate of the last n.
    Window(u64, Aggregate),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aggregate {
    Average,
    Sum,
    Least,
    Greatest,
}

/// A number in an answer. Integers are compared as integers: a 64-bit float cannot distinguish all
/// of them.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Number {
    Integer(i64),
    Float(f64),
}

impl Filter {
    /// Parses operators such as `HIGH` or `RANGE 1 5`, one after the other, optionally separated by
    /// `|`.
    pub fn parse(words: &[&[u8]]) -> Result<Self, CommandError> {
        let (mut rest, mut kept, mut count) = (words, Vec::new(), 0);
        while let Some((&name, after)) = rest.split_first() {
            if name == b"|" {
                rest = after;
                continue;
            }
            let (_, behind) = Operator::parse(name, after)?;
            count += 1;
            if count > MAX_OPERATORS {
                return Err(CommandError::text("ERR more than 16 operators"));
            }
            let taken = rest.len() - behind.len();
            kept.extend(rest[..taken].iter().map(|word| word.to_ascii_uppercase().into_boxed_slice()));
            rest = behind;
        }
        Ok(Self { words: kept.into() })
    }

    pub(super) fn of_words<'a>(words: impl Iterator<Item = &'a [u8]>) -> Self {
        Self { words: words.map(Box::from).collect() }
    }

    /// Returns whether every answer passes unchanged.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the words of the operators.
    pub fn words(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.words.iter().map(|word| &**word)
    }

    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        put_varint(into, self.words.len() as u64);
        self.words().for_each(|word| put_bytes(into, word));
    }

    pub(super) fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let count = bytes.varint().and_then(|count| usize::try_from(count).ok())?;
        if count > bytes.remaining() {
            return None;
        }
        let words: Option<Vec<&[u8]>> = (0..count).map(|_| bytes.bytes()).collect();
        Self::parse(&words?).ok().filter(|filter| filter.words.len() == count)
    }

    fn operators(&self) -> Vec<Operator> {
        let words: Vec<&[u8]> = self.words().collect();
        let (mut rest, mut operators) = (words.as_slice(), Vec::new());
        while let Some((name, after)) = rest.split_first() {
            let (operator, behind) =
                Operator::parse(name, after).expect("a filter is made of words that were operators");
            operators.push(operator);
            rest = behind;
        }
        operators
    }
}

impl Operator {
    /// Parses an operator's arguments. Returns it with the remaining words.
    fn parse<'a, 'b>(name: &[u8], rest: &'a [&'b [u8]]) -> Result<(Self, &'a [&'b [u8]]), CommandError> {
        let name = String::from_utf8_lossy(&name[..name.len().min(64)]).to_ascii_uppercase();
        let whole = |at: usize, what: &str, most: u64| {
            let number = rest.get(at).and_then(|arg| parse::canonical_integer(arg));
            let number = number.and_then(|number| u64::try_from(number).ok());
            number.filter(|number| (1..=most).contains(number)).ok_or_else(|| {
                CommandError::Text(format!("ERR {name} takes {what}: a number from 1 to {most}").into())
            })
        };
        let most = i64::MAX as u64;
        let (operator, taken) = match name.as_str() {
            "DIFF" => (Self::Diff, 0),
            "HIGH" => (Self::High, 0),
            "LOW" => (Self::Low, 0),
            "EVERY" => (Self::Every(whole(0, "how many answers make one", most)?), 1),
            "LIMIT" => (Self::Limit(whole(0, "how many answers pass", most)?), 1),
            "SKIP" => (Self::Skip(whole(0, "how many answers do not pass", most)?), 1),
            "THROTTLE" => {
                let most = most / 1000;
                (Self::Throttle(whole(0, "the milliseconds between answers", most)? * 1000), 1)
            }
            "RANGE" => {
                let bound = |at: usize| rest.get(at).and_then(|arg| Number::parse(arg));
                match (bound(0), bound(1)) {
                    (Some(low), Some(high)) if low.compare(high) != Ordering::Greater => {
                        (Self::Range(low, high), 2)
                    }
                    _ => {
                        return Err(CommandError::text(
                            "ERR RANGE takes the least and the greatest number that pass",
                        ));
                    }
                }
            }
            "WINDOW" => {
                let size = whole(0, "how many answers it holds", MAX_WINDOW)?;
                let aggregate = rest.get(1).and_then(|word| Aggregate::parse(word));
                let aggregate = aggregate
                    .ok_or(CommandError::text("ERR WINDOW makes AVG, SUM, MIN or MAX of its numbers"))?;
                (Self::Window(size, aggregate), 2)
            }
            _ => {
                return Err(CommandError::Text(
                    format!(
                        "ERR unknown option '{name}' after '|': valid are DIFF, EVERY, LIMIT, SKIP, HIGH, LOW, RANGE, \
                         THROTTLE, WINDOW, and SQUASH, UPDATES, RESUME, OLD, PROGRESS, MARK, AS, ATLEASTONCE, ATMOSTONCE, CHANNEL"
                    )
                    .into(),
                ));
            }
        };
        Ok((operator, &rest[taken..]))
    }
}

impl Aggregate {
    fn parse(word: &[u8]) -> Option<Self> {
        let all = [("AVG", Self::Average), ("SUM", Self::Sum), ("MIN", Self::Least), ("MAX", Self::Greatest)];
        all.into_iter().find(|(name, _)| parse::is(word, name)).map(|(_, aggregate)| aggregate)
    }

    fn of(self, numbers: &VecDeque<f64>) -> f64 {
        const NOT_EMPTY: &str = "a window holds the number that came last";
        // Sum from +0.0, and compare with an order that distinguishes the zeros: the result is the
        // same on every machine and with every compiler.
        let sum = || numbers.iter().fold(0.0, |sum, number| sum + number);
        match self {
            Self::Average => sum() / numbers.len() as f64,
            Self::Sum => sum(),
            Self::Least => numbers.iter().copied().min_by(f64::total_cmp).expect(NOT_EMPTY),
            Self::Greatest => numbers.iter().copied().max_by(f64::total_cmp).expect(NOT_EMPTY),
        }
    }
}

impl Number {
    fn parse(text: &[u8]) -> Option<Self> {
        if let Some(integer) = parse::canonical_integer(text) {
            return Some(Self::Integer(integer));
        }
        let float: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
        (!float.is_nan()).then_some(Self::Float(float))
    }

    /// Returns the number in an encoded answer: an integer, a double, or a string that looks like
    /// one.
    fn of(answer: &[u8]) -> Option<Self> {
        let (head, rest) = answer.split_first()?;
        let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
        match head {
            b':' | b',' => Self::parse(&rest[..end]),
            b'$' => Self::parse(rest.get(end + 2..rest.len().checked_sub(2)?)?),
            _ => None,
        }
    }

    fn float(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    /// Total order; neither number is NaN.
    fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => one.cmp(&other),
            (one, other) => one.float().total_cmp(&other.float()),
        }
    }

    fn encode(self, into: &mut Vec<u8>) {
        let (tag, bits) = match self {
            Self::Integer(value) => (1, value as u64),
            Self::Float(value) => (2, value.to_bits()),
        };
        into.push(tag);
        into.extend_from_slice(&bits.to_le_bytes());
    }
}

/// A filter with the state of its operators. A clone shares what is large.
#[derive(Debug, Clone)]
pub(super) struct Filtering {
    stages: Box<[(Operator, Memory)]>,
    protocol: Protocol,
}

#[derive(Debug, Clone, PartialEq)]
enum Memory {
    Nothing,
    Count(u64),
    Last(Option<Arc<[u8]>>),
    Extreme(Option<Number>),
    Time(Option<u64>),
    Numbers(Arc<VecDeque<f64>>),
}

impl Filtering {
    /// Returns `None` if the filter is empty.
    pub(super) fn new(filter: &Filter, protocol: Protocol) -> Option<Self> {
        let stages: Box<[_]> =
            filter.operators().into_iter().map(|operator| (operator, Memory::of(operator))).collect();
        (!stages.is_empty()).then_some(Self { stages, protocol })
    }

    /// Applies the operators to an answer at `time_us`. Returns the result; `None` if it does not
    /// pass.
    pub(super) fn apply(&mut self, answer: &[u8], time_us: u64) -> Option<Vec<u8>> {
        let mut answer = answer.to_vec();
        for (operator, memory) in &mut self.stages {
            if !step(*operator, memory, &mut answer, time_us, self.protocol) {
                return None;
            }
        }
        Some(answer)
    }

    pub(super) fn bytes(&self) -> usize {
        self.stages.iter().map(|(_, memory)| size_of::<(Operator, Memory)>() + memory.bytes()).sum()
    }

    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        self.stages.iter().for_each(|(_, memory)| memory.encode(into));
    }

    /// Decodes the state; `None` if the bytes are not of this filter.
    pub(super) fn decode(&mut self, bytes: &mut Cursor<'_>) -> Option<()> {
        self.stages.iter_mut().try_for_each(|(operator, memory)| {
            *memory = Memory::decode(*operator, bytes)?;
            Some(())
        })
    }
}

/// Applies one operator, which may change the answer. Returns whether it passes.
fn step(
    operator: Operator,
    memory: &mut Memory,
    answer: &mut Vec<u8>,
    time_us: u64,
    protocol: Protocol,
) -> bool {
    match (operator, memory) {
        (Operator::Diff, Memory::Last(last)) => {
            let is_new = last.as_deref() != Some(answer.as_slice());
            if is_new {
                *last = Some(answer.as_slice().into());
            }
            is_new
        }
        (Operator::Every(interval), Memory::Count(count)) => {
            *count = count.wrapping_add(1) % interval;
            *count == 0
        }
        (Operator::Limit(most), Memory::Count(count)) => {
            *count = count.saturating_add(1);
            *count <= most
        }
        (Operator::Skip(first), Memory::Count(count)) => {
            *count = count.saturating_add(1);
            *count > first
        }
        (Operator::High, Memory::Extreme(extreme)) => beats(extreme, answer, Ordering::Greater),
        (Operator::Low, Memory::Extreme(extreme)) => beats(extreme, answer, Ordering::Less),
        (Operator::Range(low, high), Memory::Nothing) => Number::of(answer).is_some_and(|number| {
            number.compare(low) != Ordering::Less && number.compare(high) != Ordering::Greater
        }),
        (Operator::Throttle(pause_us), Memory::Time(passed)) => {
            let is_due = passed.is_none_or(|passed| time_us >= passed.saturating_add(pause_us));
            if is_due {
                *passed = Some(time_us);
            }
            is_due
        }
        (Operator::Window(size, aggregate), Memory::Numbers(numbers)) => {
            let Some(number) = Number::of(answer) else { return false };
            let numbers = Arc::make_mut(numbers);
            if numbers.len() as u64 >= size {
                numbers.pop_front();
            }
            numbers.push_back(number.float());
            let mut reply = Reply::new(protocol);
            reply.double(aggregate.of(numbers));
            *answer = reply.take();
            true
        }
        (operator, memory) => unreachable!("{operator:?} does not remember {memory:?}"),
    }
}

fn beats(extreme: &mut Option<Number>, answer: &[u8], wanted: Ordering) -> bool {
    let Some(number) = Number::of(answer) else { return false };
    let is_beaten = extreme.is_none_or(|extreme| number.compare(extreme) == wanted);
    if is_beaten {
        *extreme = Some(number);
    }
    is_beaten
}

impl Memory {
    fn of(operator: Operator) -> Self {
        match operator {
            Operator::Diff => Self::Last(None),
            Operator::Every(_) | Operator::Limit(_) | Operator::Skip(_) => Self::Count(0),
            Operator::High | Operator::Low => Self::Extreme(None),
            Operator::Range(..) => Self::Nothing,
            Operator::Throttle(_) => Self::Time(None),
            Operator::Window(..) => Self::Numbers(Arc::default()),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Last(last) => last.as_ref().map_or(0, |last| last.len()),
            Self::Numbers(numbers) => numbers.capacity() * size_of::<f64>(),
            Self::Nothing | Self::Count(_) | Self::Extreme(_) | Self::Time(_) => 0,
        }
    }

    fn encode(&self, into: &mut Vec<u8>) {
        match self {
            Self::Nothing => {}
            Self::Count(count) => put_varint(into, *count),
            Self::Last(None) | Self::Extreme(None) | Self::Time(None) => into.push(0),
            Self::Last(Some(last)) => {
                into.push(1);
                put_bytes(into, last);
            }
            Self::Extreme(Some(number)) => number.encode(into),
            Self::Time(Some(time_us)) => {
                into.push(1);
                put_varint(into, *time_us);
            }
            Self::Numbers(numbers) => {
                put_varint(into, numbers.len() as u64);
                numbers.iter().for_each(|number| into.extend_from_slice(&number.to_bits().to_le_bytes()));
            }
        }
    }

    fn decode(operator: Operator, bytes: &mut Cursor<'_>) -> Option<Self> {
        Some(match Self::of(operator) {
            Self::Nothing => Self::Nothing,
            Self::Count(_) => Self::Count(bytes.varint()?),
            Self::Last(_) => Self::Last(match bytes.u8()? {
                0 => None,
                _ => Some(bytes.bytes()?.into()),
            }),
            Self::Extreme(_) => Self::Extreme(match bytes.u8()? {
                0 => None,
                1 => Some(Number::Integer(bytes.u64()? as i64)),
                _ => Some(Number::Float(f64::from_bits(bytes.u64()?))),
            }),
            Self::Time(_) => Self::Time(match bytes.u8()? {
                0 => None,
                _ => Some(bytes.varint()?),
            }),
            Self::Numbers(_) => {
                let count = bytes.varint().filter(|count| *count <= MAX_WINDOW)?;
                let numbers: Option<VecDeque<f64>> =
                    (0..count).map(|_| bytes.u64().map(f64::from_bits)).collect();
                Self::Numbers(Arc::new(numbers?))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persist::damage;
    use proptest::prelude::*;
    use tidemark_circuit::{Fiber, Flow};

    fn filter(line: &str) -> Result<Filter, String> {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        Filter::parse(&words).map_err(|error| error.to_string())
    }

    /// Returns the numbers that pass, given one per second.
    fn passed(line: &str, numbers: &[i64]) -> Vec<f64> {
        let mut filtering = Filtering::new(&filter(line).expect("operators"), Protocol::Resp3).expect("some");
        let answers = numbers.iter().zip(0..).filter_map(|(number, second)| {
            let mut reply = Reply::new(Protocol::Resp3);
            reply.bulk_integer(*number);
            let answer = filtering.apply(reply.bytes(), second * 1_000_000)?;
            // The state can be encoded and decoded at any time.
            let mut bytes = Vec::new();
            filtering.encode(&mut bytes);
            let mut again = Filtering::new(&filter(line).expect("operators"), Protocol::Resp3).expect("some");
            let mut cursor = Cursor::new(&bytes);
            again.decode(&mut cursor).expect("what was encoded decodes");
            assert!(cursor.is_empty());
            filtering = again;
            Number::of(&answer).map(Number::float)
        });
        answers.collect()
    }

    #[test]
    fn operators_do_what_they_say() {
        for (line, through) in [
            ("EVERY 2", vec![1.0, 5.0]),
            ("HIGH", vec![3.0, 4.0, 5.0]),
            ("LOW", vec![3.0, 1.0]),
            ("RANGE 2 4", vec![3.0, 4.0]),
            ("RANGE -1.5 1", vec![1.0]),
            ("LIMIT 2", vec![3.0, 1.0]),
            ("SKIP 3", vec![5.0]),
            ("THROTTLE 2000", vec![3.0, 4.0]),
            ("WINDOW 2 avg", vec![3.0, 2.0, 2.5, 4.5]),
            ("WINDOW 3 SUM", vec![3.0, 4.0, 8.0, 10.0]),
            ("WINDOW 2 MIN | DIFF", vec![3.0, 1.0, 4.0]),
            ("WINDOW 2 MAX HIGH", vec![3.0, 4.0, 5.0]),
        ] {
            assert_eq!(passed(line, &[3, 1, 4, 5]), through, "{line}");
        }
        assert_eq!(passed("HIGH", &[i64::MAX - 1, i64::MAX]).len(), 2, "integers are distinguished");
    }

    #[test]
    fn what_is_no_number_does_not_pass_where_numbers_are_compared() {
        for line in ["HIGH", "LOW", "RANGE 0 1", "WINDOW 1 SUM"] {
            let mut filtering =
                Filtering::new(&filter(line).expect("operators"), Protocol::Resp2).expect("some");
            for answer in [
                b"_\r\n".as_slice(),
                b"$-1\r\n",
                b"$1\r\nx\r\n",
                b"*1\r\n:1\r\n",
                b"-ERR\r\n",
                b"$3\r\nnan\r\n",
                b"",
                b"$",
            ] {
                assert_eq!(filtering.apply(answer, 0), None, "{line}");
            }
        }
    }

    #[test]
    fn mistakes_say_what_is_expected() {
        for (line, error) in [
            ("EVERY", "ERR EVERY takes how many answers make one"),
            ("EVERY 0", "ERR EVERY takes"),
            ("LIMIT x", "ERR LIMIT takes"),
            ("RANGE 1", "ERR RANGE takes"),
            ("RANGE 2 1", "ERR RANGE takes"),
            ("WINDOW 3", "ERR WINDOW makes AVG"),
            ("WINDOW 65537 AVG", "ERR WINDOW takes"),
            ("NONSENSE", "ERR unknown option 'NONSENSE' after '|'"),
        ] {
            assert!(filter(line).expect_err(line).starts_with(error), "{line}: {:?}", filter(line));
        }
        assert!(filter(&"DIFF ".repeat(17)).is_err());
        assert!(filter("").expect("none").is_empty());
        assert_eq!(filter("high | every 3"), filter("HIGH EVERY 3"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn operators_are_those_of_circuits(numbers in proptest::collection::vec(-5_i64..5, 0..40), n in 1_usize..6) {
            let fibers = [
                ("DIFF".to_owned(), Fiber::<i64>::new().diff().boxed()),
                ("HIGH".to_owned(), Fiber::new().high().boxed()),
                ("LOW".to_owned(), Fiber::new().low().boxed()),
                (format!("EVERY {n}"), Fiber::new().every(n as u64).expect("not 0").boxed()),
                (format!("LIMIT {n}"), Fiber::new().limit(n as u64).boxed()),
                (format!("SKIP {n}"), Fiber::new().skip(n as u64).boxed()),
                (format!("RANGE -{n} {n}"), Fiber::new().range(-(n as i64), n as i64).expect("in order").boxed()),
                (format!("HIGH | EVERY {n} | DIFF"), Fiber::new().high().every(n as u64).expect("not 0").diff().boxed()),
            ];
            for (line, fiber) in fibers {
                let expected: Vec<f64> = fiber.trace(numbers.clone()).expect("no fault").iter().map(|value| *value as f64).collect();
                prop_assert_eq!(passed(&line, &numbers), expected, "{}", line);
            }
            let sums = Flow::<i64>::new().window(n).expect("not 0").map(|window| window.iter().sum::<i64>() as f64);
            prop_assert_eq!(passed(&format!("WINDOW {n} SUM"), &numbers), sums.trace(numbers.clone()).expect("no fault"));
        }

        #[test]
        fn any_bytes_are_a_filter_s_memory_or_refused(bytes in damage::bytes(60)) {
            let filter = filter("DIFF HIGH THROTTLE 1 WINDOW 3 AVG EVERY 2").expect("operators");
            let decode = |bytes: &mut Cursor<'_>| {
                let mut filtering = Filtering::new(&filter, Protocol::Resp3).expect("some");
                filtering.decode(bytes).map(|()| filtering)
            };
            let encode = |filtering: &Filtering| {
                let mut form = Vec::new();
                filtering.encode(&mut form);
                form
            };
            // The state, and its effect on the next answers.
            let view = |filtering: &Filtering| {
                let mut filtering = filtering.clone();
                let passed = [1, 2, 9].map(|number| filtering.apply(format!(":{number}\r\n").as_bytes(), number));
                (encode(&filtering), passed)
            };
            damage::check(&bytes, decode, encode, view)?;
        }

        #[test]
        fn words_are_a_filter_exactly_if_they_are_its_operators(
            words in proptest::collection::vec(
                prop_oneof!["DIFF|HIGH|high|\\||x", "(EVERY|LIMIT|SKIP|THROTTLE|WINDOW|RANGE)", "[0-3]|AVG|MAX"],
                0..6,
            ),
        ) {
            let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
            let mut bytes = Vec::new();
            put_varint(&mut bytes, words.len() as u64);
            words.iter().for_each(|word| put_bytes(&mut bytes, word));
            let decoded = Filter::decode(&mut Cursor::new(&bytes));
            let parsed = Filter::parse(&words).ok().filter(|filter| filter.words.len() == words.len());
            prop_assert_eq!(&decoded, &parsed);
            let encode = |filter: &Filter| {
                let mut form = Vec::new();
                filter.encode(&mut form);
                form
            };
            prop_assert!(decoded.is_none_or(|filter| encode(&filter).eq_ignore_ascii_case(&bytes)));
            damage::check(&bytes, Filter::decode, encode, Filter::clone)?;
        }
    }
}
