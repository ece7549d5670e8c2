//! Limiters: how many units a client may use in a period.
//!
//! A limiter is a [`Policy`], its usage, and whether it was defined explicitly. One that a call
//! created implicitly is deleted once its usage has no effect any more.
//! [`tidemark_counter::limiter`] defines the usage and the rules; time is an argument, that of the
//! command.

mod leases;
mod policy;

pub use leases::Leases;
pub use policy::{Algorithm, Policy};

use leases::ByLeases;
use policy::LOG_ENTRIES;

use super::{InParts, Value};
use crate::persist::record::{Cursor, put_varint};
use smallvec::{SmallVec, smallvec};
use std::collections::VecDeque;
use tidemark_counter::limiter::{
    Decision, Entry, Lease, Level, Limiter, Time, Tokens, Water, Window, Windows,
};
use xxhash_rust::xxh3::xxh3_64;

/// A limiter and its usage.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    policy: Policy,
    /// Whether it was defined explicitly: it stays when unused, and its policy has precedence.
    is_kept: bool,
    /// Usage, in the form of the policy's algorithm.
    usage: Usage,
}

/// Recorded usage of a limiter.
#[derive(Debug, Clone, PartialEq)]
enum Usage {
    /// When the limit is fully available again: nanoseconds since 1970.
    Gcra(u64),
    Token(Tokens),
    Leaky(Water),
    Fixed(Window),
    Sliding(Windows),
    /// Grants, oldest first.
    Log(VecDeque<Entry>),
    /// Boxed, because it would enlarge all other variants.
    Leases(Box<Leases>),
}

/// Evaluates an expression with the policy's limiter and the usage; at most `$leases_max` leases.
macro_rules! with_rule {
    ($usage:expr, $policy:expr, $leases_max:expr, |$rule:ident, $state:ident| $body:expr) => {
        match $usage {
            Usage::Gcra($state) => with_rule!($policy.gcra(), $rule, $body),
            Usage::Token($state) => with_rule!($policy.token(), $rule, $body),
            Usage::Leaky($state) => with_rule!($policy.leaky(), $rule, $body),
            Usage::Fixed($state) => with_rule!($policy.fixed(), $rule, $body),
            Usage::Sliding($state) => with_rule!($policy.sliding(), $rule, $body),
            Usage::Log($state) => with_rule!($policy.log(), $rule, $body),
            Usage::Leases($state) => with_rule!(ByLeases($policy.concurrency($leases_max)), $rule, $body),
        }
    };
    ($made:expr, $rule:ident, $body:expr) => {{
        let $rule = $made;
        $body
    }};
}

/// Error for a call with another algorithm than that of the key's limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherAlgorithm(
    /// Algorithm of the limiter.
    pub Algorithm,
);

/// No bound on leases: where none is granted, and at replay, whose grants were admitted.
pub const NO_BOUND: usize = usize::MAX;

impl Limit {
    /// Creates an unused limiter.
    pub fn new(policy: Policy, is_kept: bool) -> Self {
        let usage = match policy.algorithm() {
            Algorithm::Gcra => Usage::Gcra(policy.gcra().fresh()),
            Algorithm::Token => Usage::Token(policy.token().fresh()),
            Algorithm::Leaky => Usage::Leaky(policy.leaky().fresh()),
            Algorithm::Fixed => Usage::Fixed(policy.fixed().fresh()),
            Algorithm::Sliding => Usage::Sliding(policy.sliding().fresh()),
            Algorithm::Log => Usage::Log(policy.log().fresh()),
            Algorithm::Concurrency => Usage::Leases(Box::default()),
        };
        Self { policy, is_kept, usage }
    }

    /// Returns its policy.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Whether it was defined explicitly, and not implicitly by a call.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Returns the algorithm's name; Redis has no such type.
    pub fn encoding(&self) -> &'static str {
        self.policy.algorithm().name()
    }

    /// Returns the policy for a call: the one it brings, unless the limiter was defined explicitly.
    pub fn in_force(&self, brought: Option<Policy>) -> Result<Policy, OtherAlgorithm> {
        let algorithm = self.policy.algorithm();
        match brought {
            Some(brought) if brought.algorithm() != algorithm => Err(OtherAlgorithm(algorithm)),
            Some(brought) if !self.is_kept => Ok(brought),
            _ => Ok(self.policy),
        }
    }

    /// Changes the policy to another one of the same algorithm, which also applies to past usage.
    pub fn follow(&mut self, policy: Policy) {
        assert_eq!(policy.algorithm(), self.policy.algorithm(), "the usage is of the algorithm");
        self.policy = policy;
    }

    /// Marks the limiter as defined explicitly.
    pub fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Clears the usage, but keeps the last ID of its leases.
    pub fn reset(&mut self) {
        match &mut self.usage {
            Usage::Leases(leases) => leases.clear(),
            _ => *self = Self::new(self.policy, self.is_kept),
        }
    }

    /// Takes units under a policy of its algorithm, all or none. A refusal changes nothing. There
    /// are at most `leases_max` leases; the ID of a granted one is [`Leases::last_id`].
    pub fn take(&mut self, policy: Policy, now: Time, amount: u64, leases_max: usize) -> Decision {
        assert_eq!(policy.algorithm(), self.policy.algorithm(), "the usage is of the algorithm");
        with_rule!(&mut self.usage, policy, leases_max, |rule, state| rule.check(state, now, amount))
    }

    /// Returns what [`Limit::take`] would return.
    pub fn peek(&self, policy: Policy, now: Time, amount: u64, leases_max: usize) -> Decision {
        assert_eq!(policy.algorithm(), self.policy.algorithm(), "the usage is of the algorithm");
        with_rule!(&self.usage, policy, leases_max, |rule, state| rule.peek(state, now, amount))
    }

    /// Refunds taken units that still count. Leases are [released](Self::release) instead.
    pub fn refund(&mut self, now: Time, amount: u64) {
        with_rule!(&mut self.usage, self.policy, NO_BOUND, |rule, state| rule.refund(state, now, amount));
    }

    /// Returns its leases, if its algorithm has any.
    pub fn leases(&self) -> Option<&Leases> {
        match &self.usage {
            Usage::Leases(leases) => Some(leases),
            _ => None,
        }
    }

    /// Extends a lease to the policy's term from now; never shortens it. Returns the lease; `None`
    /// if there is none or it has ended.
    pub fn renew(&mut self, policy: Policy, now: Time, id: u64) -> Option<Lease> {
        match &mut self.usage {
            Usage::Leases(leases) => leases.renew(policy.concurrency(NO_BOUND).term(), now, id),
            _ => None,
        }
    }

    /// Releases the leases with these IDs, which must be sorted. Returns how many had not ended.
    pub fn release(&mut self, now: Time, ids: &[u64]) -> usize {
        match &mut self.usage {
            Usage::Leases(leases) => leases.release(now, ids),
            _ => 0,
        }
    }

    /// Returns when the usage has no effect any more. Milliseconds since 1970, rounded up.
    pub fn idle_at_ms(&self) -> u64 {
        let at = with_rule!(&self.usage, self.policy, NO_BOUND, |rule, state| rule.idle_at(state));
        at.as_nanos().div_ceil(1_000_000)
    }

    /// Returns when its key may be deleted; `None` for never.
    pub fn deadline(&self) -> Option<u64> {
        let named_ms = self.leases().map_or(0, Leases::fresh_names_ms);
        (!self.is_kept).then(|| self.idle_at_ms().max(named_ms))
    }

    /// Returns the recorded usage as named numbers, which do not change as time passes.
    pub fn noted(&self) -> SmallVec<[(&'static str, i64); 4]> {
        match &self.usage {
            Usage::Gcra(_) => SmallVec::new(),
            Usage::Token(Tokens { level, updated }) => {
                smallvec![("tokens", signed(level.units)), ("updated-at", millis(*updated))]
            }
            Usage::Leaky(Water { level, updated }) => {
                smallvec![("used", signed(level.units)), ("updated-at", millis(*updated))]
            }
            Usage::Fixed(Window { start, used }) => {
                smallvec![("used", signed(*used)), ("window-at", millis(*start))]
            }
            Usage::Sliding(Windows { start, current, previous }) => smallvec![
                ("used", signed(*current)),
                ("used-before", signed(*previous)),
                ("window-at", millis(*start)),
            ],
            Usage::Log(entries) => smallvec![("grants", signed(entries.len() as u64))],
            Usage::Leases(leases) => smallvec![
                ("leases", signed(leases.noted().len() as u64)),
                ("used", signed(leases.units())),
                ("last-lease", signed(leases.last_id())),
            ],
        }
    }
}

impl Value for Limit {
    fn is_empty(&self) -> bool {
        false
    }

    fn elements(&self) -> usize {
        1
    }

    fn encoding(&self) -> &'static str {
        self.encoding()
    }

    fn in_parts(&self) -> Option<&dyn InParts> {
        None
    }

    fn in_parts_mut(&mut self) -> Option<&mut dyn InParts> {
        None
    }

    fn encode(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&[self.policy.algorithm().code(), u8::from(self.is_kept)]);
        put_numbers(into, [self.policy.limit(), self.policy.period_ms(), self.policy.burst()]);
        match &self.usage {
            Usage::Gcra(arrival) => put_varint(into, *arrival),
            Usage::Token(Tokens { level, updated }) | Usage::Leaky(Water { level, updated }) => {
                put_numbers(into, [level.units, level.fraction, updated.as_nanos()]);
            }
            Usage::Fixed(Window { start, used }) => put_numbers(into, [start.as_nanos(), *used]),
            Usage::Sliding(Windows { start, current, previous }) => {
                put_numbers(into, [start.as_nanos(), *current, *previous]);
            }
            Usage::Log(entries) => {
                put_varint(into, entries.len() as u64);
                entries.iter().for_each(|entry| put_numbers(into, [entry.time.as_nanos(), entry.units]));
            }
            Usage::Leases(leases) => leases.encode(into),
        }
    }

    fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let algorithm = Algorithm::of_code(bytes.u8()?)?;
        let is_kept = match bytes.u8()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let policy = Policy::new(algorithm, bytes.varint()?, bytes.varint()?, bytes.varint()?).ok()?;
        let usage = match algorithm {
            Algorithm::Gcra => Usage::Gcra(bytes.varint()?),
            Algorithm::Token => Usage::Token(Tokens { level: get_level(bytes)?, updated: get_time(bytes)? }),
            Algorithm::Leaky => Usage::Leaky(Water { level: get_level(bytes)?, updated: get_time(bytes)? }),
            Algorithm::Fixed => Usage::Fixed(Window { start: get_time(bytes)?, used: bytes.varint()? }),
            Algorithm::Sliding => Usage::Sliding(Windows {
                start: get_time(bytes)?,
                current: bytes.varint()?,
                previous: bytes.varint()?,
            }),
            Algorithm::Log => Usage::Log(get_entries(bytes)?),
            Algorithm::Concurrency => Usage::Leases(Box::new(Leases::decode(bytes)?)),
        };
        Some(Self { policy, is_kept, usage })
    }

    fn digest(&self) -> u64 {
        let mut form = Vec::new();
        self.encode(&mut form);
        xxh3_64(&form)
    }
}

fn put_numbers<const COUNT: usize>(into: &mut Vec<u8>, numbers: [u64; COUNT]) {
    numbers.into_iter().for_each(|number| put_varint(into, number));
}

fn get_time(bytes: &mut Cursor<'_>) -> Option<Time> {
    bytes.varint().map(Time::from_nanos)
}

fn get_level(bytes: &mut Cursor<'_>) -> Option<Level> {
    Some(Level { units: bytes.varint()?, fraction: bytes.varint()? })
}

/// Parses entries, of which there is a limited number in order of time.
fn get_entries(bytes: &mut Cursor<'_>) -> Option<VecDeque<Entry>> {
    let count = usize::try_from(bytes.varint()?).ok().filter(|count| *count <= LOG_ENTRIES)?;
    let entries: VecDeque<Entry> = (0..count)
        .map(|_| Some(Entry { time: get_time(bytes)?, units: bytes.varint()? }))
        .collect::<Option<_>>()?;
    entries.iter().is_sorted_by_key(|entry| entry.time).then_some(entries)
}

/// Converts units to the form for clients.
fn signed(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

/// Converts to whole milliseconds since 1970.
fn millis(time: Time) -> i64 {
    signed(time.as_millis())
}

#[cfg(test)]
mod tests;
