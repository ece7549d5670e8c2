//! Filters of labels: which series and lenses a command means.

use super::errors;
use super::pattern;
use crate::context::Keys;
use crate::error::CommandError;
use crate::keyspace::label_index::{Condition, LabelIndex, labelled};
use crate::keyspace::{Database, Entry};
use crate::value::{LabelFilter, Labelled, Labels, Matcher, Wanted};

/// Finds the values of the label that are wanted. O(values of the label in the index) for a pattern.
fn resolve<'r>(matcher: &'r Matcher, labels: &'r LabelIndex) -> Resolved<'r> {
    let (mut values, absent): (Vec<&[u8]>, bool) = match &matcher.wanted {
        Wanted::Absence => (Vec::new(), true),
        Wanted::OneOf(values) => (values.iter().map(|value| &**value).collect(), false),
        Wanted::Fitting(pattern) => {
            let values = labels.values(&matcher.name).filter(|value| pattern.fits(value)).collect();
            (values, pattern.fits(b""))
        }
    };
    values.sort_unstable();
    Resolved { matcher, values, absent }
}

/// A matcher with the values that are wanted.
struct Resolved<'r> {
    matcher: &'r Matcher,
    /// Sorted.
    values: Vec<&'r [u8]>,
    /// Whether an absent label is wanted.
    absent: bool,
}

impl Resolved<'_> {
    fn matches(&self, labels: &Labels) -> bool {
        let mut own = labels.values(&self.matcher.name).peekable();
        let is_met = match own.peek() {
            None => self.absent,
            Some(_) => own.any(|value| self.values.binary_search(&value).is_ok()),
        };
        is_met != self.matcher.negated
    }
}

/// Parses filters, at least one of which names a value.
pub(super) fn parse(words: &[&[u8]]) -> Result<LabelFilter, CommandError> {
    let matchers: Vec<Matcher> = words.iter().map(|word| parse_matcher(word)).collect::<Result<_, _>>()?;
    let is_pattern = |matcher: &&Matcher| matches!(matcher.wanted, Wanted::Fitting(_));
    if matchers.iter().filter(is_pattern).count() > pattern::PATTERNS_MAX {
        return Err(errors::TOO_MANY_PATTERNS);
    }
    if matchers.iter().all(Matcher::is_negative) {
        return Err(errors::NO_MATCHER);
    }
    Ok(LabelFilter(matchers))
}

/// Finds the series and lenses of the selected database that a filter means, in the order of their keys.
/// O(keys that have the rarest of the labels + n*log(n) of those found), and O(values of a label) for each
/// pattern; O(keys) for a filter without conditions.
pub(crate) fn find<'k>(filter: &LabelFilter, keys: &'k Keys<'_>) -> Vec<(&'k [u8], Labelled<'k>)> {
    if filter.0.is_empty() {
        return all(keys);
    }
    let mut found = Vec::new();
    for shard in keys.shards() {
        let database = shard.database(usize::from(keys.db()));
        let resolved: Vec<Resolved<'_>> =
            filter.0.iter().map(|matcher| resolve(matcher, database.labels())).collect();
        let matches = |labels: &Labels| resolved.iter().all(|one| one.matches(labels));
        found.extend(
            candidates(&resolved, database)
                .into_iter()
                .filter(|(entry, found)| keys.is_there(entry) && matches(found.labels())),
        );
    }
    in_order(found)
}

/// Returns what meets all positive conditions.
fn candidates<'k>(resolved: &[Resolved<'_>], database: &'k Database) -> Vec<(&'k Entry, Labelled<'k>)> {
    let positive = resolved.iter().filter(|one| !one.matcher.is_negative());
    let conditions: Vec<Condition<'_>> =
        positive.map(|one| Condition { name: &one.matcher.name, values: &one.values }).collect();
    database.labels().find(database.table(), &conditions)
}

/// Returns all series and lenses of the selected database, in the order of their keys. O(keys).
fn all<'k>(keys: &'k Keys<'_>) -> Vec<(&'k [u8], Labelled<'k>)> {
    let mut found = Vec::new();
    for shard in keys.shards() {
        let database = shard.database(usize::from(keys.db()));
        if !database.labels().is_empty() {
            let entries = database.table().iter().filter(|entry| keys.is_there(entry));
            found.extend(entries.filter_map(|entry| Some((entry, labelled(entry)?))));
        }
    }
    in_order(found)
}

/// Sorts what was found by the keys, and leaves each once.
fn in_order<'k>(found: Vec<(&'k Entry, Labelled<'k>)>) -> Vec<(&'k [u8], Labelled<'k>)> {
    let Some((first, _)) = found.first() else { return Vec::new() };
    let shared = found
        .iter()
        .fold(first.key().len(), |shared, (entry, _)| shared_length(&first.key()[..shared], entry.key()));
    // Keys often begin alike. The bytes behind that are compared as a number.
    let mut found: Vec<_> = found
        .into_iter()
        .map(|(entry, found)| (leading_number(&entry.key()[shared..]), entry.key(), found))
        .collect();
    found.sort_unstable_by_key(|(number, key, _)| (*number, *key));
    found.dedup_by_key(|(_, key, _)| *key);
    found.into_iter().map(|(_, key, found)| (key, found)).collect()
}

/// Returns how many bytes two keys have in common from their beginnings.
fn shared_length(one: &[u8], other: &[u8]) -> usize {
    if other.starts_with(one) {
        return one.len();
    }
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// Returns the first bytes of a text as a number whose order is that of the texts, unless they are equal.
fn leading_number(text: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = text.len().min(8);
    bytes[..len].copy_from_slice(&text[..len]);
    u64::from_be_bytes(bytes)
}

/// Parses `label=value`, `label!=value`, a list of values in parentheses, no value, or a pattern:
/// `label=~pattern`, `label!~pattern`.
fn parse_matcher(word: &[u8]) -> Result<Matcher, CommandError> {
    if let Some((name, pattern, negated)) = split_pattern(word) {
        return Ok(Matcher { name: name.into(), wanted: Wanted::Fitting(pattern::parse(pattern)?), negated });
    }
    parse_values(word).ok_or(errors::FILTER)
}

/// Returns the label and the pattern, if the first operator of a filter is `=~` or `!~`; and whether
/// it is the second.
fn split_pattern(word: &[u8]) -> Option<(&[u8], &[u8], bool)> {
    let at = word.windows(2).position(|pair| pair[0] == b'=' || pair == b"!=" || pair == b"!~")?;
    let is_pattern = at > 0 && word[at + 1] == b'~';
    is_pattern.then(|| (&word[..at], &word[at + 2..], word[at] == b'!'))
}

fn parse_values(word: &[u8]) -> Option<Matcher> {
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
        [] => return Some(Matcher { name: name.into(), wanted: Wanted::Absence, negated }),
        [b'(', list @ .., b')'] => parse_list(list)?,
        [b'(', ..] => return None,
        value => vec![value],
    };
    values.sort_unstable();
    values.dedup();
    let values = values.into_iter().map(Box::from).collect();
    Some(Matcher { name: name.into(), wanted: Wanted::OneOf(values), negated })
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
        let mut index = LabelIndex::default();
        index.add_labels(1, &labels);
        let filter = parse(&words).unwrap();
        let found = filter.0.iter().all(|matcher| resolve(matcher, &index).matches(&labels));
        assert_eq!(filter.matches(&labels), found, "the labels alone, and with the index");
        found
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
    fn a_pattern_fits_whole_values_and_absent_labels_if_it_fits_nothing() {
        let labels = [("room", "kitchen"), ("unit", "c"), ("room", "hall")];
        for (words, expected) in [
            (&["room=~k.*"][..], true),
            (&["room=~kitch"], false),
            (&["room=~attic|hall"], true),
            (&["room=~h|hall"], true),
            (&["room=~(?i)HALL"], true),
            (&["unit=c", "room=~"], false),
            (&["unit=c", "floor=~"], true),
            (&["unit=c", "floor=~.*"], true),
            (&["unit=c", "floor=~.+"], false),
            (&["unit=c", "floor!~.+"], true),
            (&["unit=c", "floor!~.*"], false),
            (&["unit=c", "room!~attic|cellar"], true),
            (&["unit=c", "room!~h.*"], false),
            (&["room=~a!=b|hall"], true),
        ] {
            assert_eq!(matches(words, &labels), expected, "{words:?}");
        }
    }

    #[test]
    fn series_are_sorted_by_their_keys_and_each_comes_once() {
        use crate::keyspace::Payload;
        use crate::value::{Definition, TimeSeries, TypedValue};

        for keys in [
            &[][..],
            &["one"],
            &["b", "a", "b", "", "ab", "a"],
            &["sensor:10", "sensor:9", "sensor:1", "sensor:", "sensor:1\0", "sensor:1\0\0"],
            &["s:12345678b", "s:12345678a", "s:12345678", "s:1234567", "s:12345678a"],
        ] {
            let series = || Payload::Object(Box::new(TimeSeries::new(Definition::default()).into_object()));
            let entries: Vec<Entry> =
                keys.iter().map(|key| Entry::new(key.as_bytes(), series(), None)).collect();
            let found = entries.iter().filter_map(|entry| Some((entry, labelled(entry)?))).collect();
            let sorted: Vec<&[u8]> = in_order(found).into_iter().map(|(key, _)| key).collect();
            let expected: std::collections::BTreeSet<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
            assert!(sorted.into_iter().eq(expected), "{keys:?}");
        }
    }

    #[test]
    fn a_tilde_elsewhere_is_part_of_a_value() {
        for (word, label) in [("a=b=~c", ("a", "b=~c")), ("a=(~b)", ("a", "~b")), ("a=b!~c", ("a", "b!~c"))] {
            assert!(matches(&[word], &[label]), "{word}");
        }
        assert!(matches(&["x=y", "a!=~b"], &[("x", "y"), ("a", "b")]));
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        for word in ["a", "a<b", "", "=b", "!=b", "a=(b", "a=(b,)", "a=(,b)", "a=(b)z", "a=(q=r,b)"] {
            assert_eq!(parse(&[word.as_bytes()]), Err(errors::FILTER), "{word}");
        }
        for word in ["=~b", "!~b"] {
            assert_eq!(parse(&[word.as_bytes()]), Err(errors::FILTER), "{word}");
        }
        for word in ["a!=b", "a=", "a!=", "a!~b", "a=~.*", "a=~"] {
            assert_eq!(parse(&[word.as_bytes()]), Err(errors::NO_MATCHER), "{word}");
        }
        assert_eq!(parse(&[]), Err(errors::NO_MATCHER));
        let many = vec![&b"a=~b"[..]; pattern::PATTERNS_MAX + 1];
        assert!(parse(&many[1..]).is_ok());
        assert_eq!(parse(&many), Err(errors::TOO_MANY_PATTERNS));
    }
}
