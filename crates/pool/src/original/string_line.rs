//! Format `string_line`: comma-separated fields.
//!
//! ```text
//! 1,<request>,<item>,<error>,<true|false>     a draw
//! 2,<item>,<quantity>,<weight>                an update
//! 3,<path>                                    a snapshot
//! 4,<old path>,<new path>                     a rotation, of older versions
//! ```
//!
//! Ids may contain commas: the number of fields around them is fixed. The original writes such ids
//! but cannot read them.

use super::record::{Record, Unreadable, draw};
use std::borrow::Cow;

/// Parses a line, without its end.
pub(super) fn parse(line: &str) -> Result<Record<'_>, Unreadable> {
    let Some((kind, rest)) = line.split_once(',') else {
        return Err(Unreadable::UnknownKind);
    };
    match kind {
        "1" => parse_draw(rest),
        "2" => parse_update(rest),
        "3" => parse_snapshot(rest),
        "4" => Ok(Record::Rotation),
        _ => Err(Unreadable::UnknownKind),
    }
}

fn parse_draw(fields: &str) -> Result<Record<'_>, Unreadable> {
    let (request, rest) = fields.split_once(',').ok_or(Unreadable::Fields)?;
    let (rest, success) = rest.rsplit_once(',').ok_or(Unreadable::Fields)?;
    let (item, error) = rest.rsplit_once(',').ok_or(Unreadable::Fields)?;
    let success = match success {
        "true" => true,
        "false" => false,
        _ => return Err(Unreadable::Fields),
    };
    draw(unsigned(request)?, Cow::Borrowed(item), unsigned(error)?, success)
}

fn parse_update(fields: &str) -> Result<Record<'_>, Unreadable> {
    let (rest, weight) = fields.rsplit_once(',').ok_or(Unreadable::Fields)?;
    let (item, quantity) = rest.rsplit_once(',').ok_or(Unreadable::Fields)?;
    Ok(Record::Update { item: Cow::Borrowed(item), quantity: signed(quantity)?, weight: signed(weight)? })
}

/// A path with a comma must at least end in the original's file name: otherwise one flipped bit in
/// the kind would turn any draw into a snapshot record.
fn parse_snapshot(path: &str) -> Result<Record<'_>, Unreadable> {
    let plain = !path.is_empty() && !path.contains(',');
    if plain || path.ends_with("/snapshot.json") { Ok(Record::Snapshot) } else { Err(Unreadable::Fields) }
}

/// Parses a number as the original writes it: digits only, without leading zeros. There is no
/// checksum, so any other form is damage.
fn unsigned(digits: &str) -> Result<u64, Unreadable> {
    let written =
        digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits.len() == 1 || !digits.starts_with('0'));
    if written { digits.parse().map_err(|_| Unreadable::Number) } else { Err(Unreadable::Number) }
}

fn signed(digits: &str) -> Result<i64, Unreadable> {
    let size = unsigned(digits.strip_prefix('-').unwrap_or(digits))?;
    match (digits.starts_with('-'), size) {
        (true, 0) => Err(Unreadable::Number),
        (true, _) => 0_i64.checked_sub_unsigned(size).ok_or(Unreadable::Number),
        (false, _) => i64::try_from(size).map_err(|_| Unreadable::Number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_read() {
        let gold = Record::Draw { request: 7, item: "gold".into() };
        assert_eq!(parse("1,7,gold,0,true"), Ok(gold));
        assert_eq!(parse("1,8,,1,false"), Ok(Record::FailedDraw { request: 8 }));
        let update = Record::Update { item: "gold".into(), quantity: -1, weight: 20 };
        assert_eq!(parse("2,gold,-1,20"), Ok(update));
        assert_eq!(parse("3,tmp/snapshot.json"), Ok(Record::Snapshot));
        assert_eq!(parse("3,a,b/snapshot.json"), Ok(Record::Snapshot));
        assert_eq!(parse("4,wal,wal.001"), Ok(Record::Rotation));
    }

    #[test]
    fn an_id_may_have_commas() {
        let item = "red, large";
        assert_eq!(parse("1,7,red, large,0,true"), Ok(Record::Draw { request: 7, item: item.into() }));
        let update = Record::Update { item: item.into(), quantity: 3, weight: 4 };
        assert_eq!(parse("2,red, large,3,4"), Ok(update));
    }

    #[test]
    fn what_the_original_would_not_write_is_no_record() {
        for (line, reason) in [
            ("", Unreadable::UnknownKind),
            ("5,x", Unreadable::UnknownKind),
            ("01,7,gold,0,true", Unreadable::UnknownKind),
            ("1,7,gold", Unreadable::Fields),
            ("3,", Unreadable::Fields),
            ("3,7,gold,0,true", Unreadable::Fields),
            ("1,7,gold,0,tru", Unreadable::Fields),
            ("1,07,gold,0,true", Unreadable::Number),
            ("1,+7,gold,0,true", Unreadable::Number),
            ("1,18446744073709551616,gold,0,true", Unreadable::Number),
            ("1,7,gold,1,true", Unreadable::Contradiction),
            ("1,7,,0,true", Unreadable::Contradiction),
            ("1,7,gold,1,false", Unreadable::Contradiction),
            ("1,7,,9,false", Unreadable::Contradiction),
            ("2,gold,9223372036854775808,1", Unreadable::Number),
            ("2,gold,-0,1", Unreadable::Number),
            ("2,gold,,1", Unreadable::Number),
        ] {
            assert_eq!(parse(line), Err(reason), "{line}");
        }
    }

    #[test]
    fn numbers_reach_as_far_as_theirs() {
        assert_eq!(signed("-9223372036854775808"), Ok(i64::MIN));
        assert_eq!(signed("9223372036854775807"), Ok(i64::MAX));
        assert_eq!(unsigned("18446744073709551615"), Ok(u64::MAX));
    }
}
