//! Zipmaps, in which Redis wrote small hashes before version 2.6. They are only read.
//!
//! ```text
//! number of pairs u8, 254 and above: unknown │ pair* │ 11111111
//!
//! pair       length │ field │ length │ unused u8 │ value │ unused bytes
//! length     u8 below 254, or 254 and u32
//! ```

use super::error::RdbError;

const END: u8 = 0xff;
const LONG: u8 = 254;

const DAMAGED: RdbError = RdbError::Malformed("a zipmap is damaged");

/// Checks a zipmap and passes its pairs on. O(bytes).
pub(super) fn each<'a>(
    bytes: &'a [u8],
    mut visit: impl FnMut(&'a [u8], &'a [u8]) -> Result<(), RdbError>,
) -> Result<(), RdbError> {
    let (&count, mut rest) = bytes.split_first().ok_or(DAMAGED)?;
    let mut found = 0_usize;
    while *rest != [END] {
        let field = take(&mut rest, false).ok_or(DAMAGED)?;
        let value = take(&mut rest, true).ok_or(DAMAGED)?;
        found += 1;
        visit(field, value)?;
    }
    if count < LONG && found != usize::from(count) { Err(DAMAGED) } else { Ok(()) }
}

/// Takes a string; that of a value is followed by unused bytes.
fn take<'a>(rest: &mut &'a [u8], of_value: bool) -> Option<&'a [u8]> {
    let (len, after) = match **rest {
        [LONG, a, b, c, d, ..] => (u32::from_le_bytes([a, b, c, d]) as usize, &rest[5..]),
        [short @ 0..LONG, ..] => (usize::from(short), &rest[1..]),
        _ => return None,
    };
    let (unused, after) = match (of_value, after) {
        (true, [unused, after @ ..]) => (usize::from(*unused), after),
        (true, []) => return None,
        (false, after) => (0, after),
    };
    let (bytes, after) = after.split_at_checked(len)?;
    *rest = after.get(unused..)?;
    Some(bytes)
}
