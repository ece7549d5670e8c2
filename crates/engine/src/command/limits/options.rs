//! Arguments of `LIMIT.*` after the keys: amounts and definitions.

use super::answer::invalid;
use crate::command::parse::{self, is};
use crate::error::CommandError;
use crate::value::limit::{Algorithm, Policy};
use smallvec::SmallVec;

/// Condition for a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    Absent,
    Present,
}

/// The options of all commands of the family; each command parses those that it accepts, see
/// [`Accepts`].
#[derive(Debug, Default)]
pub(super) struct Options {
    /// Units: none, one, or one per key.
    pub(super) amounts: SmallVec<[u64; 2]>,
    /// Definitions for limiters that do not exist: none, one, or one per key. `None` if the limiter
    /// must exist.
    pub(super) policies: SmallVec<[Option<Policy>; 1]>,
    pub(super) condition: Option<Condition>,
    /// Duration of a lease. Milliseconds.
    pub(super) ttl_ms: Option<u64>,
}

/// The options that a command accepts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Accepts {
    /// Most amounts after `AMOUNT`.
    pub(super) amounts: usize,
    /// Most definitions.
    pub(super) definitions: usize,
    /// `NX` and `XX`.
    pub(super) condition: bool,
    pub(super) ttl: bool,
}

impl Options {
    /// Parses the arguments after the keys. A repeated option is an error.
    pub(super) fn parse(mut args: &[&[u8]], accepts: Accepts) -> Result<Self, CommandError> {
        let mut options = Self::default();
        while let [word, rest @ ..] = args {
            args = match Algorithm::of_name(word) {
                Some(algorithm) => {
                    if options.policies.len() >= accepts.definitions {
                        return Err(CommandError::Syntax);
                    }
                    let (policy, rest) = definition(algorithm, rest)?;
                    options.policies.push(Some(policy));
                    rest
                }
                None if accepts.definitions > options.policies.len() && is(word, "DEFINED") => {
                    options.policies.push(None);
                    rest
                }
                None => options.other(word, rest, accepts)?,
            };
        }
        Ok(options)
    }

    /// Parses an option that begins with `word` and is not a definition. Returns the remaining
    /// arguments.
    fn other<'r, 'a>(
        &mut self,
        word: &[u8],
        rest: &'r [&'a [u8]],
        accepts: Accepts,
    ) -> Result<&'r [&'a [u8]], CommandError> {
        if accepts.amounts > 0 && self.amounts.is_empty() && is(word, "AMOUNT") {
            let count = rest
                .iter()
                .take(accepts.amounts)
                .take_while(|arg| arg.first().is_some_and(|byte| !byte.is_ascii_alphabetic()))
                .count();
            let (amounts, rest) = rest.split_at_checked(count.max(1)).ok_or(CommandError::Syntax)?;
            for arg in amounts {
                self.amounts.push(amount(arg)?);
            }
            return Ok(rest);
        }
        if accepts.ttl && self.ttl_ms.is_none() && is(word, "TTL") {
            let [ttl, rest @ ..] = rest else { return Err(CommandError::Syntax) };
            self.ttl_ms = Some(period_ms(ttl)?);
            return Ok(rest);
        }
        let condition = match word {
            _ if is(word, "NX") => Condition::Absent,
            _ if is(word, "XX") => Condition::Present,
            _ => return Err(CommandError::Syntax),
        };
        if !accepts.condition || self.condition.replace(condition).is_some() {
            return Err(CommandError::Syntax);
        }
        Ok(rest)
    }

    pub(super) fn amount_of(&self, number: usize) -> u64 {
        match self.amounts[..] {
            [] => 1,
            [one] => one,
            ref several => several.get(number).copied().unwrap_or(1),
        }
    }

    /// Returns the definition for the key at this position, if its limiter does not exist.
    pub(super) fn policy_of(&self, number: usize) -> Option<Policy> {
        match self.policies[..] {
            [one] => one,
            ref several => several.get(number).copied().flatten(),
        }
    }

    /// Returns whether there are none, one, or `keys` amounts and definitions.
    pub(super) fn fit(&self, keys: usize) -> bool {
        let fits = |count: usize| count <= 1 || count == keys;
        fits(self.amounts.len()) && fits(self.policies.len())
    }
}

/// Parses `limit PER milliseconds [BURST burst]`, or for leases `limit TTL milliseconds`. Returns
/// the definition and the remaining arguments.
fn definition<'r, 'a>(
    algorithm: Algorithm,
    args: &'r [&'a [u8]],
) -> Result<(Policy, &'r [&'a [u8]]), CommandError> {
    let [limit, per, period, rest @ ..] = args else { return Err(CommandError::Syntax) };
    if !is(per, if algorithm.has_leases() { "TTL" } else { "PER" }) {
        return Err(CommandError::Syntax);
    }
    let (limit, period_ms) = (units(limit)?, period_ms(period)?);
    match rest {
        [word, burst, rest @ ..] if is(word, "BURST") => {
            if !algorithm.has_burst() {
                return Err(CommandError::text("ERR BURST is for GCRA, TOKEN and LEAKY"));
            }
            let policy = Policy::new(algorithm, limit, period_ms, units(burst)?);
            Ok((policy.map_err(invalid)?, rest))
        }
        rest => Ok((Policy::new(algorithm, limit, period_ms, limit).map_err(invalid)?, rest)),
    }
}

/// Parses a limit, at least 1.
fn units(arg: &[u8]) -> Result<u64, CommandError> {
    parse::positive(arg)
        .ok()
        .filter(|&units| units > 0)
        .ok_or_else(|| wrong("a limit must be a number of at least 1", arg))
}

/// Parses an amount; 0 only asks.
fn amount(arg: &[u8]) -> Result<u64, CommandError> {
    parse::positive(arg).map_err(|_| wrong("an amount must be a number of at least 0", arg))
}

/// Parses a time of at least a millisecond. The upper limit is checked by the limiter.
fn period_ms(arg: &[u8]) -> Result<u64, CommandError> {
    parse::positive(arg)
        .ok()
        .filter(|&ms| ms > 0)
        .ok_or_else(|| wrong("a time must be a number of at least 1 millisecond", arg))
}

fn wrong(rule: &str, arg: &[u8]) -> CommandError {
    CommandError::Text(format!("ERR {rule}, not {}", parse::shown(arg)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Accepts = Accepts { amounts: 3, definitions: 2, condition: true, ttl: true };

    fn parse(line: &str, accepts: Accepts) -> Result<Options, CommandError> {
        let args: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        Options::parse(&args, accepts)
    }

    #[test]
    fn options_come_in_any_order_and_case() {
        let options = parse("amount 3 gcra 10 per 1000 Burst 5 nx", ALL).expect("options");
        assert_eq!(options.amount_of(0), 3);
        let policy = Policy::new(Algorithm::Gcra, 10, 1000, 5).expect("a policy");
        assert_eq!(options.policy_of(0), Some(policy));
        assert_eq!(options.condition, Some(Condition::Absent));
        let options = parse("ttl 7 concurrency 3 ttl 500", ALL).expect("options");
        let policy = Policy::new(Algorithm::Concurrency, 3, 500, 3).expect("a policy");
        assert_eq!((options.policy_of(0), options.ttl_ms), (Some(policy), Some(7)));
        let options = parse("XX AMOUNT 0", ALL).expect("options");
        assert_eq!((options.policy_of(0), options.amount_of(0)), (None, 0));
    }

    #[test]
    fn amounts_and_definitions_are_one_for_all_or_one_for_each() {
        let options = parse("AMOUNT 1 2 3 FIXED 5 PER 10", ALL).expect("options");
        assert_eq!((0..3).map(|key| options.amount_of(key)).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(options.fit(3) && !options.fit(2));
        assert_eq!(options.policy_of(2).map(Policy::limit), Some(5));
        let options = parse("FIXED 5 PER 10 SLIDING 6 PER 10", ALL).expect("options");
        assert!(options.fit(2) && !options.fit(3));
        assert_eq!((0..3).map(|key| options.amount_of(key)).collect::<Vec<_>>(), [1, 1, 1]);
        let options = parse("defined SLIDING 6 PER 10", ALL).expect("options");
        assert_eq!([0, 1].map(|key| options.policy_of(key).map(Policy::limit)), [None, Some(6)]);
        assert!(options.fit(2));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "AMOUNT",
            "AMOUNT -1",
            "AMOUNT x",
            "AMOUNT 1 AMOUNT 1",
            "AMOUNT 1 2 3 4",
            "GCRA",
            "GCRA 1",
            "GCRA 1 PER",
            "GCRA 1 FOR 10",
            "GCRA 0 PER 10",
            "GCRA 1 PER 0",
            "GCRA 1 PER 9223372036854775807",
            "GCRA 9223372036854775808 PER 10",
            "GCRA 1 PER 10 BURST 0",
            "FIXED 1 PER 10 BURST 2",
            "GCRA 1 PER 10 GCRA 1 PER 10 GCRA 1 PER 10",
            "GCRA 1 PER 10 GCRA 1 PER 10 DEFINED",
            "CONCURRENCY 1 PER 10",
            "CONCURRENCY 1 TTL 0",
            "CONCURRENCY 0 TTL 10",
            "CONCURRENCY 1 TTL 10 BURST 2",
            "GCRA 1 TTL 10",
            "TTL",
            "TTL 0",
            "TTL 1.5",
            "TTL 1 TTL 1",
            "NX XX",
            "NX NX",
            "else",
        ] {
            assert!(parse(line, ALL).is_err(), "{line}");
        }
        for line in ["AMOUNT 1", "GCRA 1 PER 10", "DEFINED", "NX", "XX", "TTL 1"] {
            assert!(parse(line, Accepts::default()).is_err(), "{line}");
        }
    }
}
