//! Shared parts of hashes, sets and sorted sets: removing several elements, storing results, random
//! draws.

use super::parse;
use crate::context::Context;
use crate::error::CommandError;
use crate::value::TypedValue;
use crate::watch::touched::Touched;

/// HDEL, SREM: removes the elements named after the key and answers how many existed. `remove`
/// returns whether one did.
pub(super) fn remove<T: TypedValue>(
    ctx: &mut Context<'_, '_>,
    args: &[&[u8]],
    event: &'static str,
    remove: impl Fn(&mut T, &[u8]) -> bool,
) -> Result<(), CommandError> {
    let (key, names) = (args[1], &args[2..]);
    let removed = ctx
        .keys
        .update(key, |elements: &mut T| names.iter().filter(|name| remove(elements, name)).count())?;
    let removed = removed.unwrap_or(0);
    if removed > 0 {
        ctx.keys.changed_in(key, event, || Touched::names(T::TYPE, names));
    }
    ctx.reply.count(removed);
    Ok(())
}

/// SINTERSTORE, ZRANGESTORE and similar: replaces the key's value by a result of `len` elements and
/// answers its size. An empty result removes the key.
pub(super) fn store<T: TypedValue>(
    ctx: &mut Context<'_, '_>,
    key: &[u8],
    (result, len): (T, usize),
    event: &'static str,
) {
    if len > 0 {
        ctx.keys.put(key, result);
        ctx.keys.changed(key, event);
    } else if ctx.keys.remove(key) {
        ctx.keys.changed(key, "del");
    }
    ctx.reply.count(len);
}

/// Most draws with repeats in one command. Their answer is limited to the length of the longest
/// string.
const MAX_DRAWS: usize = 16 << 20;

/// Number of elements that HRANDFIELD, SRANDMEMBER or ZRANDMEMBER returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// This many distinct elements, or all if there are fewer.
    Different(usize),
    /// Exactly this many, with repeats.
    Repeated(usize),
}

impl Wanted {
    /// Parses a count; a negative one allows repeats.
    pub(super) fn parse(arg: &[u8]) -> Result<Self, CommandError> {
        Self::from_count(parse::negatable(arg)?)
    }

    /// Parses a count of pairs. The answer's length is twice as large and must still be a number.
    pub(super) fn parse_pairs(arg: &[u8]) -> Result<Self, CommandError> {
        let count = parse::negatable(arg)?;
        if count.unsigned_abs() > i64::MAX.unsigned_abs() / 2 {
            return Err(CommandError::text("ERR value is out of range"));
        }
        Self::from_count(count)
    }

    fn from_count(count: i64) -> Result<Self, CommandError> {
        let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        match count {
            0.. => Ok(Self::Different(size)),
            _ if size <= MAX_DRAWS => Ok(Self::Repeated(size)),
            _ => Err(CommandError::Text(
                format!("ERR value is out of range: at most {MAX_DRAWS} repeated draws at a time").into(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_count_allows_repeats() {
        assert_eq!(Wanted::parse(b"3"), Ok(Wanted::Different(3)));
        assert_eq!(Wanted::parse(b"-3"), Ok(Wanted::Repeated(3)));
        assert_eq!(Wanted::parse(b"9223372036854775807"), Ok(Wanted::Different(i64::MAX as usize)));
        assert!(Wanted::parse(b"-9223372036854775807").is_err(), "more draws than fit in an answer");
        assert!(Wanted::parse(b"-9223372036854775808").is_err(), "it has no opposite");
        assert!(Wanted::parse(b"three").is_err());
    }

    #[test]
    fn a_count_of_pairs_can_be_doubled() {
        assert_eq!(Wanted::parse_pairs(b"4611686018427387903"), Ok(Wanted::Different(i64::MAX as usize / 2)));
        assert!(Wanted::parse_pairs(b"4611686018427387904").is_err());
    }
}
