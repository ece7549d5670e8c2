//! Libraries of functions: their texts one after the other, as `FUNCTION DUMP` has them.
//!
//! ```text
//! (11110101 │ text string)*
//! ```

use super::reader::Reader;
use super::writer::put_string;
use std::borrow::Cow;

/// Precedes the text of a library.
const LIBRARY: u8 = 245;
/// Precedes a library as release candidates of Redis 7.0 wrote it.
const EARLY_LIBRARY: u8 = 246;

/// Appends the text of a library.
pub(crate) fn put_library(into: &mut Vec<u8>, text: &[u8]) {
    into.push(LIBRARY);
    put_string(into, text);
}

/// Reads the text of the next library.
///
/// # Errors
/// The bytes are none, in Redis's words.
pub(crate) fn next_library<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, [u8]>, &'static str> {
    match reader.u8() {
        Ok(LIBRARY) => reader.string().map_err(|_| "Failed loading library payload"),
        Ok(EARLY_LIBRARY) => Err("Pre-GA function format not supported"),
        Ok(_) => Err("given type is not a function"),
        Err(_) => Err("failed loading data type"),
    }
}
