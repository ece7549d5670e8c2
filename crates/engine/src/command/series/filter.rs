//! Filters of labels: which series a command means.

use super::errors;
use crate::context::Keys;
use crate::error::CommandError;
use crate::keyspace::label_index::{Condition, series_of};
use crate::keyspace::{Database, Entry};
use crate::value::{Labels, TimeSeries};

/// A condition on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Matcher<'a> {
    name: &'a [u8],
    /// Values of which one is meant; none for a label that is absent.
    values: Vec<&'a [u8]>,
    /// Whether the opposite is meant.
    negated: bool,
}

impl Matcher<'_> {
    /// Whether series without the label may match, so that the index cannot find them all.
    fn is_negative(&self) -> bool {
        self.negated || self.values.is_empty()
    }

    fn has(&self, value: &[u8]) -> bool {
        self.values.contains(&value)
    }

    fn matches(&self, labels: &Labels) -> bool {
        let mut own = labels.values(self.name);
        let is_met =
            if self.values.is_empty() { own.next().is_none() } else { own.any(|value| self.has(value)) };
        is_met != self.negated
    }
}

/// Conditions that must all be met, at least one of which names a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Filter<'a>(Vec<Matcher<'a>>);

impl<'a> Filter<'a> {
    /// Parses filters.
    pub(super) fn parse(words: &[&'a [u8]]) -> Result<Self, CommandError> {
        let matchers = words.iter().map(|word| parse_matcher(word).ok_or(errors::FILTER));
        let filter = Self(matchers.collect::<Result<_, _>>()?);
        if filter.0.iter().all(Matcher::is_negative) {
            return Err(errors::NO_MATCHER);
        }
        Ok(filter)
    }

    fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|matcher| matcher.matches(labels))
    }

    /// Finds the series of the selected database, in the order of their keys. O(series that have the
    /// rarest of the labels + n*log(n) of those found).
    pub(super) fn find<'k>(&self, keys: &'k Keys<'_>) -> Vec<(&'k [u8], &'k TimeSeries)> {
        let mut found = Vec::new();
        for shard in keys.shards() {
            let database = shard.database(usize::from(keys.db()));
            let candidates = self.candidates(database).into_iter();
            found.extend(
                candidates.filter(|(entry, series)| keys.is_there(entry) && self.matches(series.labels())),
            );
        }
        in_order(found)
    }

    /// Returns the series that meet all positive conditions.
    fn candidates<'k>(&self, database: &'k Database) -> Vec<(&'k Entry, &'k TimeSeries)> {
        let positive = self.0.iter().filter(|matcher| !matcher.is_negative());
        let conditions: Vec<Condition<'_>> =
            positive.map(|matcher| Condition { name: matcher.name, values: &matcher.values }).collect();
        database.labels().find(database.table(), &conditions)
    }
}

/// Returns all series of the selected database, in the order of their keys. O(keys).
pub(super) fn all<'k>(keys: &'k Keys<'_>) -> Vec<(&'k [u8], &'k TimeSeries)> {
    let mut found = Vec::new();
    for shard in keys.shards() {
        let database = shard.database(usize::from(keys.db()));
        if database.labels().series() > 0 {
            let entries = database.table().iter().filter(|entry| keys.is_there(entry));
            found.extend(entries.filter_map(|entry| Some((entry, series_of(entry)?))));
        }
    }
    in_order(found)
}

fn in_order<'k>(found: Vec<(&'k Entry, &'k TimeSeries)>) -> Vec<(&'k [u8], &'k TimeSeries)> {
    let mut found: Vec<_> = found.into_iter().map(|(entry, series)| (entry.key(), series)).collect();
    found.sort_unstable_by_key(|(key, _)| *key);
    found.dedup_by_key(|(key, _)| *key);
    found
}

/// Parses `label=value`, `label!=value`, a list of values in parentheses, or no value.
fn parse_matcher(word: &[u8]) -> Option<Matcher<'_>> {
    let negation = word.windows(2).position(|pair| pair == b"!=");
    let (name, value, negated) = match negation {
        Some(at) => (&word[..at], &word[at + 2..], true),
        None => {
            let at = word.iter().position(|byte| *byte == b'=')?;
            (&word[..at], &word[at + 1..], false)
        }
    };
    if name.is_empty() {
        return None;
    }
    let mut values = match value {
        [] => Vec::new(),
        [b'(', list @ .., b')'] => parse_list(list)?,
        [b'(', ..] => return None,
        value => vec![value],
    };
    values.sort_unstable();
    values.dedup();
    Some(Matcher { name, values, negated })
}

/// Parses the values of a list; an empty list has one that no label has.
fn parse_list(list: &[u8]) -> Option<Vec<&[u8]>> {
    if list.is_empty() {
        return Some(vec![b""]);
    }
    let values: Vec<&[u8]> = list.split(|byte| *byte == b',').collect();
    values.iter().all(|value| !value.is_empty() && !value.contains(&b'=')).then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(words: &[&str], labels: &[(&str, &str)]) -> bool {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let labels = Labels::of(labels.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())));
        Filter::parse(&words).unwrap().matches(&labels)
    }

    #[test]
    fn a_filter_matches_if_all_conditions_are_met() {
        let labels = [("room", "kitchen"), ("unit", "c"), ("room", "hall")];
        for (words, expected) in [
            (&["room=kitchen"][..], true),
            (&["room=hall"], true),
            (&["room=(attic,hall)"], true),
            (&["room=attic"], false),
            (&["room=kitchen", "unit!=f"], true),
            (&["room=kitchen", "unit!=(f,c)"], false),
            (&["room=kitchen", "room!=hall"], false),
            (&["room=kitchen", "floor="], true),
            (&["room=kitchen", "unit="], false),
            (&["room=kitchen", "unit!="], true),
            (&["room=kitchen", "floor!="], false),
            (&["room=()"], false),
            (&["room=kitchen", "room!=()"], true),
        ] {
            assert_eq!(matches(words, &labels), expected, "{words:?}");
        }
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        for word in ["a", "a<b", "", "=b", "!=b", "a=(b", "a=(b,)", "a=(,b)", "a=(b)z", "a=(q=r,b)"] {
            assert_eq!(Filter::parse(&[word.as_bytes()]), Err(errors::FILTER), "{word}");
        }
        for word in ["a!=b", "a=", "a!="] {
            assert_eq!(Filter::parse(&[word.as_bytes()]), Err(errors::NO_MATCHER), "{word}");
        }
        assert_eq!(Filter::parse(&[]), Err(errors::NO_MATCHER));
    }
}
