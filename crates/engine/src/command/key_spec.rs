//! Positions of a command's keys among its arguments.

use super::parse::{self, is};
use crate::value::lens;

/// Positions of the keys among the arguments; the name is argument 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySpec {
    /// No keys.
    None,
    /// Every `step`-th argument from `first` to `last`; a negative `last` counts from the end. With a
    /// step above 2, arguments that fill no whole step are options behind the last key's.
    Range {
        /// Position of the first key.
        first: i16,
        /// Position of the last key.
        last: i16,
        /// Distance between keys.
        step: i16,
    },
    /// A number of keys at `at`, followed by the keys.
    Counted {
        /// Position of the number.
        at: u8,
    },
    /// One key at 1, and a number of further keys at `at`, followed by them.
    OneAndCounted {
        /// Position of the number.
        at: u8,
    },
    /// `SORT`: one key at 1, one after `STORE`, and any other keys if an argument has an asterisk.
    OneAndAny,
    /// `GEORADIUS`: one key at 1, and one behind the last `STORE` or `STOREDIST` among the options.
    OneAndStored {
        /// Position of the first option.
        from: u8,
    },
    /// `LENS.CREATE`: keys at 1 and 2, and one before each `ASOF` behind them.
    TwoAndBesides,
    /// `XREAD`: the first half of the arguments behind `STREAMS`.
    Streams,
    /// `MIGRATE`: one key at 3 or, if it is empty, those behind `KEYS`.
    Migrated,
    /// Every key, with all shards locked together.
    All,
    /// Every key, one shard after the other. In a transaction, the same as `All`.
    Each,
}

impl KeySpec {
    /// The first argument is the key.
    pub const ONE: Self = Self::Range { first: 1, last: 1, step: 1 };
    /// The first two arguments are keys.
    pub const TWO: Self = Self::Range { first: 1, last: 2, step: 1 };
    /// Every argument is a key.
    pub const REST: Self = Self::Range { first: 1, last: -1, step: 1 };
    /// Keys and values alternate.
    pub const PAIRS: Self = Self::Range { first: 1, last: -1, step: 2 };

    /// Returns the keys among `args`. An invalid number of keys yields none; the handler reports
    /// it.
    pub fn keys<'a>(self, args: &[&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
        self.positions(args).into_iter().map(|index| args[index]).collect::<Vec<_>>().into_iter()
    }

    /// Returns whether the command may concern keys that `args` do not name.
    pub fn concerns_all(self, args: &[&[u8]]) -> bool {
        match self {
            Self::All | Self::Each => true,
            Self::OneAndAny => args.iter().skip(2).any(|arg| arg.contains(&b'*')),
            _ => false,
        }
    }

    /// Returns the positions of the keys among `args`.
    pub fn positions(self, args: &[&[u8]]) -> Vec<usize> {
        let (extra, first, last, step) = self.bounds(args);
        let besides = match self {
            Self::TwoAndBesides => args.get(3..).map(lens::key_positions),
            _ => None,
        };
        let besides = besides.into_iter().flatten().map(|index| 3 + index);
        let indices = extra.into_iter().chain((first..last).step_by(step)).chain(besides);
        indices.filter(|&index| index < args.len()).collect()
    }

    fn bounds(self, args: &[&[u8]]) -> (Option<usize>, usize, usize, usize) {
        let counted = |at: u8| {
            let first = at as usize + 1;
            let count = args.get(at as usize).and_then(|arg| parse::canonical_integer(arg)).unwrap_or(0);
            let count = usize::try_from(count).unwrap_or(0).min(args.len().saturating_sub(first));
            (first, first + count)
        };
        match self {
            Self::None | Self::All | Self::Each => (None, 0, 0, 1),
            Self::TwoAndBesides => (None, 1, 3, 1),
            Self::Streams => {
                let (first, last) = streams(args).map_or((0, 0), |keys| (keys.start, keys.end));
                (None, first, last, 1)
            }
            Self::Migrated => {
                let (first, last) = migrated(args);
                (None, first, last, 1)
            }
            Self::Range { first, last, step } => {
                let last = if last < 0 { args.len() as i64 + i64::from(last) } else { i64::from(last) };
                let (first, step) = (first as usize, step as usize);
                let last = usize::try_from(last + 1).unwrap_or(0);
                let options = if step > 2 { last.saturating_sub(first) % step } else { 0 };
                (None, first, last - options, step)
            }
            Self::Counted { at } => {
                let (first, last) = counted(at);
                (None, first, last, 1)
            }
            Self::OneAndCounted { at } => {
                let (first, last) = counted(at);
                (Some(1), first, last, 1)
            }
            Self::OneAndAny => {
                let stored = sort_destination(args);
                (Some(1), stored.unwrap_or(0), stored.map_or(0, |at| at + 1), 1)
            }
            Self::OneAndStored { from } => {
                let stored = search_destination(args, usize::from(from));
                (Some(1), stored.unwrap_or(0), stored.map_or(0, |at| at + 1), 1)
            }
        }
    }
}

/// Returns the positions of the keys of `XREAD`, which follow its options; `None` if they and their IDs are
/// not as many.
fn streams(args: &[&[u8]]) -> Option<std::ops::Range<usize>> {
    let mut at = 1;
    loop {
        let option = args.get(at)?;
        at += match option {
            _ if is(option, "BLOCK") || is(option, "COUNT") => 2,
            _ if is(option, "GROUP") => 3,
            _ if is(option, "NOACK") => 1,
            _ if is(option, "STREAMS") => break,
            _ => return None,
        };
    }
    let first = at + 1;
    let rest = args.len() - first;
    (rest > 0 && rest.is_multiple_of(2)).then(|| first..first + rest / 2)
}

/// Returns the position of the first key of `MIGRATE`, and that behind its last one.
fn migrated(args: &[&[u8]]) -> (usize, usize) {
    if args.get(3).is_some_and(|key| !key.is_empty()) {
        return (3, 4);
    }
    let mut at = 6;
    while let Some(option) = args.get(at) {
        at += match option {
            _ if is(option, "KEYS") => return (at + 1, args.len()),
            _ if is(option, "AUTH") => 2,
            _ if is(option, "AUTH2") => 3,
            _ => 1,
        };
    }
    (3, 4)
}

/// Returns the position of the destination of `SORT`, if there is one.
fn sort_destination(args: &[&[u8]]) -> Option<usize> {
    let (mut at, mut found) = (2, None);
    while let Some(option) = args.get(at) {
        at += match option {
            _ if is(option, "LIMIT") => 3,
            _ if is(option, "BY") || is(option, "GET") => 2,
            _ if is(option, "STORE") => {
                found = Some(at + 1).filter(|at| *at < args.len()).or(found);
                2
            }
            _ => 1,
        };
    }
    found
}

/// Returns the position of the destination of `GEORADIUS`, if there is one.
fn search_destination(args: &[&[u8]], mut at: usize) -> Option<usize> {
    let mut found = None;
    while let Some(option) = args.get(at) {
        at += match option {
            _ if is(option, "COUNT") => 2,
            _ if is(option, "STORE") || is(option, "STOREDIST") => {
                found = Some(at + 1).filter(|at| *at < args.len()).or(found);
                2
            }
            _ => 1,
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_where_the_specification_says() {
        let args: Vec<&[u8]> = b"c a 2 b d e".split(|&byte| byte == b' ').collect();
        let keys = |spec: KeySpec| spec.keys(&args).map(|key| key[0] as char).collect::<String>();
        assert_eq!(keys(KeySpec::ONE), "a");
        assert_eq!(keys(KeySpec::REST), "a2bde");
        assert_eq!(keys(KeySpec::PAIRS), "abe");
        assert_eq!(keys(KeySpec::Range { first: 1, last: -1, step: 3 }), "a", "b has no value");
        assert_eq!(keys(KeySpec::Counted { at: 2 }), "bd");
        assert_eq!(keys(KeySpec::OneAndCounted { at: 2 }), "abd");
        assert_eq!(keys(KeySpec::None), "");
        let streams = |line: &str| {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            KeySpec::Streams.keys(&args).map(|key| key[0] as char).collect::<String>()
        };
        assert_eq!(streams("xreadgroup GROUP streams c COUNT 2 NOACK BLOCK 0 STREAMS a b > 5-1"), "ab");
        assert_eq!(streams("xread streams a b 0"), "");
        assert_eq!(streams("xread count"), "");
        assert_eq!(streams("xread a streams b 0"), "");
        let migrated = |line: &str| {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            KeySpec::Migrated
                .keys(&args)
                .map(|key| String::from_utf8_lossy(key))
                .collect::<Vec<_>>()
                .join(",")
        };
        assert_eq!(migrated("migrate h 1 a 0 0 copy"), "a");
        assert_eq!(migrated("migrate h 1  0 0 auth keys keys a b"), "a,b");
        assert_eq!(migrated("migrate h 1  0 0 copy"), "");
        let lens: Vec<&[u8]> = b"c a b / d asof 5 expr y with e ASOF 9".split(|&byte| byte == b' ').collect();
        assert_eq!(KeySpec::TwoAndBesides.keys(&lens).collect::<Vec<_>>(), [b"a", b"b", b"d", b"e"]);
        assert_eq!(KeySpec::TwoAndBesides.keys(&lens[..2]).collect::<Vec<_>>(), [b"a"]);
        let args: Vec<&[u8]> =
            b"sort a by store get store store x limit store 1 STORE y".split(|&byte| byte == b' ').collect();
        assert_eq!(KeySpec::OneAndAny.keys(&args).collect::<Vec<_>>(), [b"a", b"y"]);
        assert_eq!(KeySpec::OneAndAny.positions(&args[..4]), [1]);
        let search: Vec<&[u8]> = b"georadius a 1 2 store km count store store x STOREDIST y storedist"
            .split(|&byte| byte == b' ')
            .collect();
        let stored = KeySpec::OneAndStored { from: 6 };
        assert_eq!(stored.keys(&search).collect::<Vec<_>>(), [b"a", b"y"]);
        assert_eq!(stored.keys(&search[..8]).collect::<Vec<_>>(), [b"a"]);
        assert!(
            !KeySpec::OneAndAny.concerns_all(&args)
                && KeySpec::OneAndAny.concerns_all(&[b"sort", b"a", b"*"])
        );
    }
}
