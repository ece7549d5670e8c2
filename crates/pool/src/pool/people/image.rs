//! Serialisation of rules and users for snapshots.
//!
//! ```text
//! ruled       limits │ limit* │ guarantees │ guarantee* │ pool misses* │ users │ user*
//! limit       max │ window, 0 if none │ all draws 0, wins 1 │ [items]
//! guarantee   after │ whole pool 0, user 1 │ soft from, 0 if not │ [step] │ items
//! items       count │ number*
//! user        id │ (window │ count)*, for each rule
//! ```
//!
//! Without rules, `ruled` is two zeros.

use super::standing::idle_ms;
use super::{People, Person, Tallies, Tally, USERS_MAX};
use crate::by::NAME_BYTES_MAX;
use crate::catalogue::rules::{Guarantee, Limit, RULES_MAX, Rules, Scope, Soft};
use crate::pool::Pool;
use crate::pool::ruled::Ruled;
use crate::record::bytes::{Reader, put_bytes, put_number};

impl Ruled {
    pub(in crate::pool) fn write(&self, into: &mut Vec<u8>) {
        write_rules(&self.rules, into);
        self.tracks.iter().for_each(|misses| put_number(into, *misses));
        put_number(into, self.people.len() as u64);
        for Person { id, tallies, .. } in &self.people.all {
            put_bytes(into, id);
            for Tally { window, count } in tallies {
                put_number(into, *window);
                put_number(into, *count);
            }
        }
    }

    /// Reads the rules of a pool with `items` items, and its users; `Some(None)` if there are no
    /// rules.
    #[expect(clippy::option_option, reason = "there may be no rules, and what is read may be none")]
    pub(in crate::pool) fn read(reader: &mut Reader<'_>, items: usize) -> Option<Option<Self>> {
        let rules = read_rules(reader, items)?;
        if rules.is_empty() {
            return Some(None);
        }
        let tracks = rules.guarantees().iter().map(|guarantee| {
            let max = if guarantee.scope == Scope::Pool { guarantee.after } else { 0 };
            reader.number().filter(|&misses| misses <= max)
        });
        let tracks = tracks.collect::<Option<_>>()?;
        let mut people = People::default();
        for _ in 0..reader.small::<usize>().filter(|&count| count <= USERS_MAX)? {
            let id = reader.bytes().filter(|id| (1..=NAME_BYTES_MAX).contains(&id.len()))?;
            let tallies = read_tallies(reader, &rules)?;
            if people.find(id).is_some() {
                return None;
            }
            let idle_ms = idle_ms(&rules, &tallies);
            people.push(Person { id: id.into(), tallies, idle_ms });
        }
        Some(Some(Self { rules, tracks, people }))
    }
}

impl<S> Pool<S> {
    /// Appends the rules and what they have counted.
    pub(in crate::pool) fn write_rules_and_users(&self, into: &mut Vec<u8>) {
        match &self.ruled {
            Some(ruled) => ruled.write(into),
            None => write_rules(&Rules::default(), into),
        }
    }

    /// Appends the rules alone, and nothing if there are none. For the first link of a hash chain.
    pub fn write_rules(&self, into: &mut Vec<u8>) {
        if let Some(ruled) = &self.ruled {
            write_rules(&ruled.rules, into);
        }
    }
}

fn write_rules(rules: &Rules<u32>, into: &mut Vec<u8>) {
    put_number(into, rules.limits().len() as u64);
    for Limit { max, per_ms, wins_of } in rules.limits() {
        put_number(into, *max);
        put_number(into, per_ms.unwrap_or(0));
        put_number(into, u64::from(wins_of.is_some()));
        if let Some(items) = wins_of {
            write_items(items, into);
        }
    }
    put_number(into, rules.guarantees().len() as u64);
    for Guarantee { after, of, scope, soft } in rules.guarantees() {
        put_number(into, *after);
        put_number(into, u64::from(*scope == Scope::User));
        put_number(into, soft.map_or(0, |soft| soft.from));
        if let Some(soft) = soft {
            put_number(into, soft.step);
        }
        write_items(of, into);
    }
}

fn write_items(items: &[u32], into: &mut Vec<u8>) {
    put_number(into, items.len() as u64);
    items.iter().for_each(|item| put_number(into, u64::from(*item)));
}

fn read_rules(reader: &mut Reader<'_>, items: usize) -> Option<Rules<u32>> {
    let count = |reader: &mut Reader<'_>| reader.small::<usize>().filter(|&count| count <= RULES_MAX);
    let limits = (0..count(reader)?).map(|_| {
        let (max, per_ms) = (reader.number()?, reader.number()?);
        let wins_of = match reader.number()? {
            0 => None,
            1 => Some(read_items(reader, items)?),
            _ => return None,
        };
        Some(Limit { max, per_ms: Some(per_ms).filter(|&per_ms| per_ms > 0), wins_of })
    });
    let limits = limits.collect::<Option<_>>()?;
    let guarantees = (0..count(reader)?).map(|_| {
        let after = reader.number()?;
        let scope = match reader.number()? {
            0 => Scope::Pool,
            1 => Scope::User,
            _ => return None,
        };
        let soft = match reader.number()? {
            0 => None,
            from => Some(Soft { from, step: reader.number()? }),
        };
        Some(Guarantee { after, of: read_items(reader, items)?, scope, soft })
    });
    Rules::new(limits, guarantees.collect::<Option<_>>()?).ok()
}

fn read_items(reader: &mut Reader<'_>, items_max: usize) -> Option<Vec<u32>> {
    let count = reader.small::<usize>().filter(|&count| count <= items_max)?;
    let items = (0..count).map(|_| reader.small().filter(|&item: &u32| (item as usize) < items_max));
    let items: Vec<u32> = items.collect::<Option<_>>()?;
    items.is_sorted().then_some(items)
}

/// Reads the tallies of a user; they must not all be 0.
fn read_tallies(reader: &mut Reader<'_>, rules: &Rules<u32>) -> Option<Tallies> {
    let mut tally = || Some(Tally { window: reader.number()?, count: reader.number()? });
    let mut tallies = Vec::new();
    for limit in rules.limits() {
        let tally = tally()?;
        if limit.per_ms.is_none() && tally.window > 0 {
            return None;
        }
        tallies.push(tally);
    }
    for guarantee in rules.guarantees() {
        let tally = tally()?;
        let max = if guarantee.scope == Scope::User { guarantee.after } else { 0 };
        if tally.window > 0 || tally.count > max {
            return None;
        }
        tallies.push(tally);
    }
    tallies.iter().any(|tally| tally.count > 0).then(|| tallies.into())
}
