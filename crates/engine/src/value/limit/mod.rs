//! Limiters: how many units somebody may have in some time.
//!
//! A limiter is a [`Policy`], what it has noted of the past, and whether it was defined on purpose: one that a call has made
//! on the way is forgotten when it is as if nobody had used it. How the past is noted and what follows from it is in
//! [`tidemark_counter::limiter`]; time is an argument, that of the command.

mod leases;
mod policy;

pub use leases::Leases;
pub use policy::{Algorithm, Policy};

use leases::ByLeases;
use policy::LOG_ENTRIES;

use super::{Collection, Type, collection};
use crate::persist::record::{Cursor, put_varint};
use smallvec::{SmallVec, smallvec};
use std::collections::VecDeque;
use tidemark_counter::limiter::{
    Decision, Entry, Lease, Level, Limiter, Time, Tokens, Water, Window, Windows,
};
use xxhash_rust::xxh3::xxh3_64;

/// A limiter and what it has noted.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    policy: Policy,
    /// Whether it was defined by itself, so that it stays when nobody uses it and its policy wins over that of a call.
    is_kept: bool,
    /// Of the policy's algorithm.
    usage: Usage,
}

/// What a limiter has noted of the past.
#[derive(Debug, Clone, PartialEq)]
enum Usage {
    /// When the limit is whole again: nanoseconds since 1970.
    Gcra(u64),
    Token(Tokens),
    Leaky(Water),
    Fixed(Window),
    Sliding(Windows),
    /// What was granted, oldest first.
    Log(VecDeque<Entry>),
    /// Boxed, because it would make all others larger.
    Leases(Box<Leases>),
}

/// Lets the limiter that the policy describes look at the usage; it has at most `$leases_max` leases at once, if it has any.
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

/// A call speaks of another algorithm than its key's limiter has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherAlgorithm(
    /// What the limiter has.
    pub Algorithm,
);

/// As many leases as there are: where none is granted, and at a replay, whose grants were granted.
pub const NO_BOUND: usize = usize::MAX;

impl Limit {
    /// A limiter that nobody has used yet.
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

    /// What it allows.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Whether it was defined by itself, and not by a call that used it.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Redis has no word for values of this kind: the algorithm's name.
    pub fn encoding(&self) -> &'static str {
        self.policy.algorithm().name()
    }

    /// What holds for a call that brings a policy: its own, unless the limiter was defined by itself.
    pub fn in_force(&self, brought: Option<Policy>) -> Result<Policy, OtherAlgorithm> {
        let algorithm = self.policy.algorithm();
        match brought {
            Some(brought) if brought.algorithm() != algorithm => Err(OtherAlgorithm(algorithm)),
            Some(brought) if !self.is_kept => Ok(brought),
            _ => Ok(self.policy),
        }
    }

    /// Follows another policy of its algorithm from now on; what was used is judged by it.
    pub fn follow(&mut self, policy: Policy) {
        assert_eq!(policy.algorithm(), self.policy.algorithm(), "the usage is of the algorithm");
        self.policy = policy;
    }

    /// Stays when nobody uses it.
    pub fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Forgets what was used, but not which names leases were given.
    pub fn reset(&mut self) {
        match &mut self.usage {
            Usage::Leases(leases) => leases.clear(),
            _ => *self = Self::new(self.policy, self.is_kept),
        }
    }

    /// Takes units under a policy of its algorithm, all or none. A refusal changes nothing. Of leases there are at most `leases_max`
    /// at once, and one that is granted has the name [`Leases::last_id`].
    pub fn take(&mut self, policy: Policy, now: Time, amount: u64, leases_max: usize) -> Decision {
        assert_eq!(policy.algorithm(), self.policy.algorithm(), "the usage is of the algorithm");
        with_rule!(&mut self.usage, policy, leases_max, |rule, state| rule.check(state, now, amount))
    }

    /// What [`Limit::take`] would answer.
    pub fn peek(&self, policy: Policy, now: Time, amount: u64, leases_max: usize) -> Decision {
        assert_eq!(policy.algorithm(), self.policy.algorithm(), "the usage is of the algorithm");
        with_rule!(&self.usage, policy, leases_max, |rule, state| rule.peek(state, now, amount))
    }

    /// Gives back units that were taken, as far as they still count. Leases are [released](Self::release) instead.
    pub fn refund(&mut self, now: Time, amount: u64) {
        with_rule!(&mut self.usage, self.policy, NO_BOUND, |rule, state| rule.refund(state, now, amount));
    }

    /// Its leases, if its algorithm has any.
    pub fn leases(&self) -> Option<&Leases> {
        match &self.usage {
            Usage::Leases(leases) => Some(leases),
            _ => None,
        }
    }

    /// Has a lease last for the policy's term from now on, if it lasts no longer anyway: what has become of it, `None` if there is
    /// none or it has ended.
    pub fn renew(&mut self, policy: Policy, now: Time, id: u64) -> Option<Lease> {
        match &mut self.usage {
            Usage::Leases(leases) => leases.renew(policy.concurrency(NO_BOUND).term(), now, id),
            _ => None,
        }
    }

    /// Gives back the leases of these names, which are in order, and says how many of them had not ended.
    pub fn release(&mut self, now: Time, ids: &[u64]) -> usize {
        match &mut self.usage {
            Usage::Leases(leases) => leases.release(now, ids),
            _ => 0,
        }
    }

    /// From when on it is as if nobody had used it. Milliseconds since 1970, rounded up.
    pub fn idle_at_ms(&self) -> u64 {
        let at = with_rule!(&self.usage, self.policy, NO_BOUND, |rule, state| rule.idle_at(state));
        at.as_nanos().div_ceil(1_000_000)
    }

    /// When its key may go: `None` if it stays.
    pub fn deadline(&self) -> Option<u64> {
        let named_ms = self.leases().map_or(0, Leases::fresh_names_ms);
        (!self.is_kept).then(|| self.idle_at_ms().max(named_ms))
    }

    /// What it has noted, by names and in a form that does not change as time passes.
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

impl Collection for Limit {
    const TYPE: Type = Type::Limit;

    collection!(Limit);

    fn is_empty(&self) -> bool {
        false
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

/// No more than there can be, and in the order of their times.
fn get_entries(bytes: &mut Cursor<'_>) -> Option<VecDeque<Entry>> {
    let count = usize::try_from(bytes.varint()?).ok().filter(|count| *count <= LOG_ENTRIES)?;
    let entries: VecDeque<Entry> = (0..count)
        .map(|_| Some(Entry { time: get_time(bytes)?, units: bytes.varint()? }))
        .collect::<Option<_>>()?;
    entries.iter().is_sorted_by_key(|entry| entry.time).then_some(entries)
}

/// Units as clients see them.
fn signed(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

/// Whole milliseconds since 1970.
fn millis(time: Time) -> i64 {
    signed(time.as_millis())
}

#[cfg(test)]
mod tests;
