//! Random and damaged bytes for tests of decoders.

use crate::persist::record::Cursor;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::fmt::Debug;

/// Random bytes, mostly so small that they are plausible counts and lengths: many decode.
pub(crate) fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![8 => 0_u8..4, 1 => any::<u8>()], 0..most)
}

/// Asserts that `bytes` are refused, or decode to a value whose encoding is no longer than what was
/// read, decodes to the same value, and is refused if any of its end is missing.
pub(crate) fn check<T, V: PartialEq + Debug>(
    bytes: &[u8],
    decode: impl Fn(&mut Cursor<'_>) -> Option<T>,
    encode: impl Fn(&T) -> Vec<u8>,
    view: impl Fn(&T) -> V,
) -> Result<(), TestCaseError> {
    let mut cursor = Cursor::new(bytes);
    let Some(value) = decode(&mut cursor) else { return Ok(()) };
    let form = encode(&value);
    prop_assert!(form.len() <= cursor.offset(), "{form:?} of {bytes:?}");
    let mut cursor = Cursor::new(&form);
    let again = decode(&mut cursor);
    prop_assert!(cursor.is_empty(), "{} bytes of {form:?} are left", cursor.remaining());
    prop_assert_eq!(again.as_ref().map(&view), Some(view(&value)));
    for cut in 0..form.len() {
        prop_assert!(decode(&mut Cursor::new(&form[..cut])).is_none(), "{:?} of {form:?}", &form[..cut]);
    }
    Ok(())
}
