//! Options with which a series is created, altered or added to.

use super::errors;
use crate::command::parse::{canonical_integer, float, is};
use crate::error::CommandError;
use crate::value::{Definition, Labels, POLICIES, Unit};
use tidemark_series::{DuplicatePolicy, Ignore};

/// Options as they were given.
#[derive(Debug, Default)]
pub(super) struct Options<'a> {
    retention: Option<u64>,
    chunk_bytes: Option<u32>,
    is_compressed: Option<bool>,
    policy: Option<DuplicatePolicy>,
    ignore: Option<Ignore>,
    labels: Option<Labels>,
    unit: Option<Unit>,
    /// Policy for this point alone.
    pub(super) on_duplicate: Option<DuplicatePolicy>,
    /// Time of an increment.
    pub(super) timestamp: Option<&'a [u8]>,
}

/// Which options a command has besides those of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Also {
    Nothing,
    OnDuplicate,
    Timestamp,
}

impl<'a> Options<'a> {
    /// Parses the options at the end of `args`, from position `from`.
    ///
    /// Options come in any order, `LABELS` last, because it takes the rest. Redis ignores words that
    /// are no options; here they are refused, as is an option that is given twice.
    pub(super) fn parse(args: &[&'a [u8]], from: usize, also: Also) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut at = from;
        while let Some(word) = args.get(at) {
            let value = args.get(at + 1).copied();
            at += 2;
            if is(word, "LABELS") {
                options.labels = Some(Labels::parse(&args[at - 1..]).ok_or(errors::LABELS)?);
                break;
            } else if is(word, "RETENTION") {
                once(&mut options.retention, word, parse_retention(value)?)?;
            } else if is(word, "CHUNK_SIZE") {
                once(&mut options.chunk_bytes, word, parse_chunk_size(value)?)?;
            } else if is(word, "ENCODING") {
                let encoding = value.ok_or_else(|| errors::arity(args))?;
                once(&mut options.is_compressed, word, parse_encoding(encoding).ok_or(errors::ENCODING)?)?;
            } else if let Some(is_compressed) = parse_encoding(word) {
                at -= 1;
                once(&mut options.is_compressed, word, is_compressed)?;
            } else if is(word, "DUPLICATE_POLICY") {
                once(&mut options.policy, word, parse_policy(value)?)?;
            } else if is(word, "IGNORE") {
                at += 1;
                once(&mut options.ignore, word, parse_ignore(value, args.get(at - 1).copied())?)?;
            } else if is(word, "UNIT") {
                once(&mut options.unit, word, parse_unit(value)?)?;
            } else if is(word, "ON_DUPLICATE") && also == Also::OnDuplicate {
                once(&mut options.on_duplicate, word, parse_policy(value)?)?;
            } else if is(word, "TIMESTAMP") && also == Also::Timestamp {
                once(&mut options.timestamp, word, value.ok_or(errors::INVALID_TIMESTAMP)?)?;
            } else {
                return Err(errors::unknown_option(word));
            }
        }
        Ok(options)
    }

    /// Returns the definition of a new series.
    pub(super) fn definition(self) -> Definition {
        let default = Definition::default();
        Definition { unit: self.unit.unwrap_or_default(), ..self.altered(&default, true) }
    }

    /// Returns a definition with these options changed.
    ///
    /// # Errors
    /// The unit would change.
    pub(super) fn alter(self, old: &Definition) -> Result<Definition, CommandError> {
        if self.unit.is_some_and(|unit| unit != old.unit) {
            return Err(errors::UNIT_FIXED);
        }
        Ok(self.altered(old, false))
    }

    /// The encoding is fixed when the series is created; Redis parses it here too, and ignores it.
    fn altered(self, old: &Definition, is_new: bool) -> Definition {
        Definition {
            unit: old.unit,
            retention: self.retention.unwrap_or(old.retention),
            chunk_bytes: self.chunk_bytes.unwrap_or(old.chunk_bytes),
            is_compressed: self.is_compressed.filter(|_| is_new).unwrap_or(old.is_compressed),
            policy: self.policy.or(old.policy),
            ignore: self.ignore.unwrap_or(old.ignore),
            labels: self.labels.unwrap_or_else(|| old.labels.clone()),
            relations: old.relations.clone(),
        }
    }
}

/// Sets an option that was not given before.
pub(super) fn once<T>(option: &mut Option<T>, word: &[u8], value: T) -> Result<(), CommandError> {
    if option.is_some() {
        let word = crate::command::parse::shown(word);
        return Err(CommandError::Text(format!("ERR syntax error: {word} is given twice").into()));
    }
    *option = Some(value);
    Ok(())
}

fn parse_retention(value: Option<&[u8]>) -> Result<u64, CommandError> {
    let retention = value.and_then(canonical_integer).ok_or(errors::RETENTION)?;
    u64::try_from(retention).map_err(|_| errors::RETENTION)
}

fn parse_chunk_size(value: Option<&[u8]>) -> Result<u32, CommandError> {
    let bytes = value.and_then(canonical_integer).ok_or(errors::CHUNK_SIZE)?;
    let in_range = u32::try_from(bytes).ok().filter(|bytes| (48..=1 << 20).contains(bytes) && bytes % 8 == 0);
    in_range.ok_or(errors::CHUNK_SIZE_RANGE)
}

fn parse_encoding(word: &[u8]) -> Option<bool> {
    if is(word, "COMPRESSED") {
        Some(true)
    } else if is(word, "UNCOMPRESSED") {
        Some(false)
    } else {
        None
    }
}

fn parse_policy(value: Option<&[u8]>) -> Result<DuplicatePolicy, CommandError> {
    let word = value.ok_or(errors::POLICY_MISSING)?;
    let known = POLICIES.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
    known.map(|(_, policy)| *policy).ok_or(errors::POLICY_UNKNOWN)
}

fn parse_ignore(time: Option<&[u8]>, value: Option<&[u8]>) -> Result<Ignore, CommandError> {
    let time = time.and_then(canonical_integer).ok_or(errors::IGNORE)?;
    let value = value.and_then(|value| float(value).ok()).ok_or(errors::IGNORE)?;
    match u64::try_from(time) {
        Ok(time) if value >= 0.0 => Ok(Ignore { time, value }),
        _ => Err(errors::IGNORE_NEGATIVE),
    }
}

fn parse_unit(value: Option<&[u8]>) -> Result<Unit, CommandError> {
    let word = value.ok_or(errors::UNIT)?;
    let known = Unit::ALL.iter().find(|(_, name)| word.eq_ignore_ascii_case(name.as_bytes()));
    known.map(|(unit, _)| *unit).ok_or(errors::UNIT)
}
