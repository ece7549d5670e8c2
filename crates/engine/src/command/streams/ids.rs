//! IDs as clients write them.

use crate::error::CommandError;
use crate::value::stream::{Id, NewId};

pub(super) const INVALID: CommandError =
    CommandError::text("ERR Invalid stream ID specified as stream command argument");

/// Longest ID that is looked at, as in Redis.
const LONGEST: usize = 127;

/// Parses a number as C's `strtoull` does, but not a negative one.
fn number(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    let mut value = (!digits.is_empty()).then_some(0_u64)?;
    for digit in digits {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    Some(value)
}

/// Parses `ms` or `ms-seq`; without `seq`, it is `missing`.
pub(super) fn id(arg: &[u8], missing: u64) -> Result<Id, CommandError> {
    parse(arg, missing).ok_or(INVALID)
}

fn parse(arg: &[u8], missing: u64) -> Option<Id> {
    if arg.len() > LONGEST {
        return None;
    }
    let (ms, seq) = match arg.iter().position(|byte| *byte == b'-') {
        Some(at) => (&arg[..at], number(&arg[at + 1..])?),
        None => (arg, missing),
    };
    Some(Id { ms: number(ms)?, seq })
}

/// As [`id`], or `-` for the smallest and `+` for the greatest.
pub(super) fn id_or_end(arg: &[u8], missing: u64) -> Result<Id, CommandError> {
    match arg {
        b"-" => Ok(Id::MIN),
        b"+" => Ok(Id::MAX),
        arg => id(arg, missing),
    }
}

/// Parses the ID of a new entry.
pub(super) fn new_id(arg: &[u8]) -> Result<NewId, CommandError> {
    if arg == b"*" {
        return Ok(NewId::Clock);
    }
    match arg.strip_suffix(b"-*").filter(|_| arg.len() <= LONGEST) {
        Some(ms) => number(ms).map(|ms| NewId::Next { ms }).ok_or(INVALID),
        None => id(arg, 0).map(NewId::Exact),
    }
}

/// Parses the lower end of a range: an ID, `-`, or an ID that is itself left out, after `(`.
pub(super) fn start(arg: &[u8]) -> Result<Id, CommandError> {
    match arg {
        [b'(', id @ ..] if !id.is_empty() => {
            let invalid = CommandError::text("ERR invalid start ID for the interval");
            self::id(id, 0)?.next().ok_or(invalid)
        }
        arg => id_or_end(arg, 0),
    }
}

/// As [`start`], for the upper end.
pub(super) fn end(arg: &[u8]) -> Result<Id, CommandError> {
    match arg {
        [b'(', id @ ..] if !id.is_empty() => {
            let invalid = CommandError::text("ERR invalid end ID for the interval");
            self::id(id, u64::MAX)?.previous().ok_or(invalid)
        }
        arg => id_or_end(arg, u64::MAX),
    }
}

/// Parses several IDs.
pub(super) fn all(args: &[&[u8]]) -> Result<Vec<Id>, CommandError> {
    args.iter().map(|arg| id(arg, 0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_id_may_lack_its_number() {
        assert_eq!(id(b"5", 7), Ok(Id { ms: 5, seq: 7 }));
        assert_eq!(id(b"5-3", 7), Ok(Id { ms: 5, seq: 3 }));
        assert_eq!(id(b"007-+3", 7), Ok(Id { ms: 7, seq: 3 }));
        for wrong in ["", "-", "+", "5-", "-5", "5-*", "*", "x", "5-3-1", "18446744073709551616", "(5", " 5"]
        {
            assert_eq!(id(wrong.as_bytes(), 0), Err(INVALID), "{wrong}");
        }
    }

    #[test]
    fn a_new_id_may_be_left_to_the_stream() {
        assert_eq!(new_id(b"*"), Ok(NewId::Clock));
        assert_eq!(new_id(b"5-*"), Ok(NewId::Next { ms: 5 }));
        assert_eq!(new_id(b"5"), Ok(NewId::Exact(Id { ms: 5, seq: 0 })));
        for wrong in ["-*", "**", "5-**", "*-5", "x-*"] {
            assert_eq!(new_id(wrong.as_bytes()), Err(INVALID), "{wrong}");
        }
    }

    #[test]
    fn ends_may_be_left_out() {
        assert_eq!((start(b"-"), end(b"+")), (Ok(Id::MIN), Ok(Id::MAX)));
        assert_eq!((start(b"+"), end(b"-")), (Ok(Id::MAX), Ok(Id::MIN)));
        assert_eq!((start(b"5"), end(b"5")), (Ok(Id { ms: 5, seq: 0 }), Ok(Id { ms: 5, seq: u64::MAX })));
        assert_eq!((start(b"(5-1"), end(b"(5-1")), (Ok(Id { ms: 5, seq: 2 }), Ok(Id { ms: 5, seq: 0 })));
        assert!(start(b"(18446744073709551615-18446744073709551615").is_err() && end(b"(0-0").is_err());
        assert!(start(b"(-").is_err() && start(b"(").is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_shown_id_reads_back(ms: u64, seq: u64) {
            let shown = Id { ms, seq };
            prop_assert_eq!(id(shown.text().as_bytes(), 0), Ok(shown));
        }

        #[test]
        fn any_bytes_are_an_id_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (start(&bytes), end(&bytes), new_id(&bytes));
        }
    }
}
