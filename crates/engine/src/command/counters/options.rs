//! Options of `COUNTER.CREATE`.

use crate::command::parse::{self, is};
use crate::error::CommandError;
use crate::keyspace::CounterDefaults;
use crate::value::Terms;
use tidemark_counter::{Kind, MAX, Promise};

/// The options that were given.
#[derive(Default)]
pub(super) struct Options {
    kind: Option<Kind>,
    promise: Option<Promise>,
    high: Option<u64>,
    low: Option<u64>,
    max_age_ms: Option<u64>,
    idle_ms: Option<u64>,
    settle_ms: Option<u64>,
    pub(super) only_if_absent: bool,
    pub(super) only_if_present: bool,
}

impl Options {
    /// Parses the options. If one is repeated, the last counts.
    pub(super) fn parse(args: &[&[u8]]) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut rest = args.iter();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().copied().ok_or(CommandError::Syntax);
            if is(word, "LIMIT") {
                options.kind = Some(kind(value()?)?);
            } else if is(word, "RELAXED") {
                options.promise = Some(Promise::Relaxed { cap: units("RELAXED", value()?)? });
            } else if is(word, "EXACT") {
                options.promise = Some(Promise::Exact { block: units("EXACT", value()?)? });
            } else if is(word, "HIGH") {
                options.high = Some(units("HIGH", value()?)?);
            } else if is(word, "LOW") {
                options.low = Some(units("LOW", value()?)?);
            } else if is(word, "MAXAGE") {
                options.max_age_ms = Some(units("MAXAGE", value()?)?);
            } else if is(word, "IDLE") {
                options.idle_ms = Some(units("IDLE", value()?)?);
            } else if is(word, "SETTLE") {
                options.settle_ms = Some(units("SETTLE", value()?)?);
            } else if is(word, "NX") && !options.only_if_present {
                options.only_if_absent = true;
            } else if is(word, "XX") && !options.only_if_absent {
                options.only_if_present = true;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }

    /// Resolves limit and terms: from the options, else from the existing counter, else from the
    /// server's defaults. Idle and settle times are not kept: without the option, the counter does
    /// not expire, and its doubt does not settle.
    pub(super) fn resolve(
        &self,
        existing: Option<(Kind, Terms)>,
        defaults: &CounterDefaults,
    ) -> Result<(Kind, Terms), CommandError> {
        let (kind, old) = existing.map_or((Kind::Plain, None), |(kind, terms)| (kind, Some(terms)));
        // Thresholds belong to the promise that they were set for.
        let kept = old.filter(|old| self.promise.is_none_or(|promise| promise == old.promise));
        let of_kept = |number: fn(&Terms) -> u64| kept.as_ref().map(number);
        let promise = self.promise.or(kept.as_ref().map(|kept| kept.promise));
        if let Some(Promise::Exact { .. }) = promise
            && (self.high.is_some() || self.low.is_some())
        {
            return Err(CommandError::text("ERR HIGH and LOW are of relaxed counters only"));
        }
        let high = self.high.or(of_kept(|terms| terms.high));
        let kept_low = of_kept(|terms| terms.low).filter(|low| high.is_none_or(|high| *low <= high));
        let low = self.low.or(kept_low);
        let max_age_ms = self.max_age_ms.or(of_kept(|terms| terms.max_age_ms));
        if !matches!(promise, Some(Promise::Exact { .. })) && self.settle_ms.is_some() {
            return Err(CommandError::text(
                "ERR SETTLE is of exact counters only: of a relaxed one nothing is in doubt, give EXACT as well",
            ));
        }
        let (idle_ms, settle_ms) = (self.idle_ms.unwrap_or(0), self.settle_ms.unwrap_or(0));
        let terms = Terms { idle_ms, settle_ms, ..defaults.terms(promise, high, low, max_age_ms) };
        if !terms.are_sound() {
            return Err(CommandError::text("ERR HIGH must be at most the cap, and LOW at most HIGH"));
        }
        Ok((self.kind.unwrap_or(kind), terms))
    }
}

/// Parses a limit, or `NONE`.
pub(super) fn kind(arg: &[u8]) -> Result<Kind, CommandError> {
    if is(arg, "NONE") {
        return Ok(Kind::Plain);
    }
    let limit = parse::integer(arg)?;
    let is_within = (0..=MAX).contains(&limit);
    let kind = is_within.then_some(Kind::Quota { limit });
    kind.ok_or_else(|| {
        CommandError::Text(format!("ERR a limit is NONE or from 0 to {MAX} units, not {limit}").into())
    })
}

/// Parses the number of an option, at least 1.
fn units(option: &str, arg: &[u8]) -> Result<u64, CommandError> {
    let units = parse::integer(arg)?;
    if (1..=MAX).contains(&units) {
        Ok(units.unsigned_abs())
    } else {
        Err(CommandError::Text(format!("ERR {option} takes a number from 1 to {MAX}, not {units}").into()))
    }
}
