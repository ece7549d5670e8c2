//! Names of writers.

use super::Error;

/// The longest name of a writer. Bytes.
pub const WRITER_BYTES_MAX: usize = 256;

/// Checks a writer's name: 1 to [`WRITER_BYTES_MAX`] bytes, and no zero byte, which not every store
/// can keep.
///
/// ```
/// use tidemark_counter::store::check_writer;
///
/// assert!(check_writer("billing-1").is_ok());
/// assert!(check_writer("").is_err());
/// ```
///
/// # Errors
/// [`Error::Refused`].
pub fn check_writer(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.len() > WRITER_BYTES_MAX || name.contains('\0') {
        let text = format!("a writer's name must have 1 to {WRITER_BYTES_MAX} bytes, none of them zero");
        return Err(Error::Refused(text.into()));
    }
    Ok(())
}
