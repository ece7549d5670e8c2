//! What a series is created with.

use super::Labels;
use super::rules::Relations;
use crate::persist::record::{Cursor, put_varint};
use tidemark_series::{DuplicatePolicy, Ignore, Options};

/// Unit of a series' times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum Unit {
    /// Milliseconds, as in Redis.
    #[default]
    Milliseconds = 0,
    /// Nanoseconds.
    Nanoseconds = 1,
    /// Microseconds.
    Microseconds = 2,
    /// Seconds.
    Seconds = 3,
}

impl Unit {
    /// All units, with their names.
    pub(crate) const ALL: [(Self, &'static str); 4] = [
        (Self::Milliseconds, "ms"),
        (Self::Nanoseconds, "ns"),
        (Self::Microseconds, "us"),
        (Self::Seconds, "s"),
    ];

    /// Returns the name.
    pub(crate) fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Returns the unit with this code in snapshots.
    pub(crate) fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().map(|(unit, _)| unit).find(|unit| *unit as u8 == code)
    }

    /// Returns its length in nanoseconds.
    pub(crate) fn nanoseconds(self) -> i64 {
        match self {
            Self::Milliseconds => 1_000_000,
            Self::Nanoseconds => 1,
            Self::Microseconds => 1_000,
            Self::Seconds => 1_000_000_000,
        }
    }

    /// Returns a time in this unit, given in microseconds since 1970.
    pub(crate) fn of_micros(self, now_us: u64) -> i64 {
        let now_us = i64::try_from(now_us).unwrap_or(i64::MAX);
        match self {
            Self::Milliseconds => now_us / 1_000,
            Self::Nanoseconds => now_us.saturating_mul(1_000),
            Self::Microseconds => now_us,
            Self::Seconds => now_us / 1_000_000,
        }
    }
}

/// The policies with their names. A policy's place is its code in snapshots and in the log.
pub(crate) const POLICIES: [(&str, DuplicatePolicy); 6] = [
    ("block", DuplicatePolicy::Block),
    ("first", DuplicatePolicy::First),
    ("last", DuplicatePolicy::Last),
    ("min", DuplicatePolicy::Min),
    ("max", DuplicatePolicy::Max),
    ("sum", DuplicatePolicy::Sum),
];

/// What a series is created or altered with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Definition {
    /// Unit of its times.
    pub(crate) unit: Unit,
    /// Age above which points are dropped, relative to the newest; 0 for none.
    pub(crate) retention: u64,
    /// Size of a chunk in bytes, as clients set and read it; blocks have 1,024 points.
    pub(crate) chunk_bytes: u32,
    /// Whether full blocks are compressed.
    pub(crate) is_compressed: bool,
    /// What becomes of a second point at a time, if the client has said it.
    pub(crate) policy: Option<DuplicatePolicy>,
    /// Which points say nothing new.
    pub(crate) ignore: Ignore,
    /// Its labels.
    pub(crate) labels: Labels,
    /// What it knows of other series, if anything.
    pub(crate) relations: Option<Box<Relations>>,
}

impl Default for Definition {
    fn default() -> Self {
        Self {
            unit: Unit::default(),
            retention: 0,
            chunk_bytes: 4096,
            is_compressed: true,
            policy: None,
            ignore: Ignore::default(),
            labels: Labels::default(),
            relations: None,
        }
    }
}

impl Definition {
    /// Returns the options of its points. Points of a compacted series are never ignored.
    pub(super) fn options(&self) -> Options {
        let is_compacted = self.relations.as_deref().is_some_and(|relations| relations.source.is_some());
        Options {
            retention: self.retention,
            duplicates: self.policy.unwrap_or_default(),
            ignore: (self.ignore != Ignore::default() && !is_compacted).then_some(self.ignore),
        }
    }

    pub(crate) fn encode(&self, into: &mut Vec<u8>) {
        // An absent policy is 0.
        let policy = self.policy.map_or(0, |policy| {
            1 + POLICIES.iter().position(|(_, known)| *known == policy).expect("every policy has a code")
                as u8
        });
        into.extend_from_slice(&[self.unit as u8, u8::from(self.is_compressed), policy]);
        put_varint(into, self.retention);
        put_varint(into, u64::from(self.chunk_bytes));
        put_varint(into, self.ignore.time);
        into.extend_from_slice(&self.ignore.value.to_bits().to_le_bytes());
        self.labels.encode(into);
        if let Some(relations) = &self.relations {
            relations.encode(into);
        }
    }

    pub(crate) fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let unit = Unit::of_code(bytes.u8()?)?;
        let is_compressed = match bytes.u8()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let policy = match bytes.u8()? {
            0 => None,
            code => Some(POLICIES.get(usize::from(code) - 1)?.1),
        };
        let retention = bytes.varint()?;
        let chunk_bytes = u32::try_from(bytes.varint()?).ok()?;
        let ignore = Ignore { time: bytes.varint()?, value: f64::from_bits(bytes.u64()?) };
        let labels = Labels::decode(bytes)?;
        let relations = if bytes.is_empty() { None } else { Some(Box::new(Relations::decode(bytes)?)) };
        Some(Self { unit, retention, chunk_bytes, is_compressed, policy, ignore, labels, relations })
    }
}
