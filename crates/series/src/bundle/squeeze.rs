//! Bytes through a general compressor.

use super::bytes::{Bytes, put_varint};
use std::cell::RefCell;
use zstd::bulk::{Compressor, Decompressor};

/// Effort of the compressor. More takes several times as long for 1 to 2 % fewer bytes.
const LEVEL: i32 = 6;

thread_local! {
    // What they work in is as large as what they compress, and is made once.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Appends the bytes, compressed if that is smaller.
pub(super) fn put(bytes: &[u8], into: &mut Vec<u8>) {
    let compressed = COMPRESSOR.with_borrow_mut(|compressor| compress(compressor, bytes));
    let stored = compressed.as_deref().filter(|compressed| compressed.len() < bytes.len()).unwrap_or(bytes);
    put_varint(into, bytes.len() as u64);
    put_varint(into, stored.len() as u64);
    into.extend_from_slice(stored);
}

/// Returns `None` if there is no memory for it.
fn compress(compressor: &mut Option<Compressor<'static>>, bytes: &[u8]) -> Option<Vec<u8>> {
    if compressor.is_none() {
        let mut new = Compressor::new(LEVEL).ok()?;
        new.include_contentsize(false).ok()?;
        *compressor = Some(new);
    }
    compressor.as_mut()?.compress(bytes).ok()
}

/// Takes what [`put`] appended; `None` if it is none, or more than `bytes_max` bytes.
pub(super) fn take(from: &mut Bytes<'_>, bytes_max: usize) -> Option<Vec<u8>> {
    let length = from.length(bytes_max)?;
    let stored = from.length(bytes_max)?;
    let stored = from.take(stored)?;
    if stored.len() == length {
        return Some(stored.to_vec());
    }
    let bytes = DECOMPRESSOR.with_borrow_mut(|decompressor| decompress(decompressor, stored, length))?;
    (bytes.len() == length).then_some(bytes)
}

fn decompress(
    decompressor: &mut Option<Decompressor<'static>>,
    stored: &[u8],
    length: usize,
) -> Option<Vec<u8>> {
    if decompressor.is_none() {
        *decompressor = Some(Decompressor::new().ok()?);
    }
    // It writes into the room that there is, and no further.
    let mut bytes = Vec::with_capacity(length);
    decompressor.as_mut()?.decompress_to_buffer(stored, &mut bytes).ok()?;
    Some(bytes)
}
