//! Blocks of a series as bytes: whole, or as references to a block file.
//!
//! ```text
//! piece  0 u8 │ bytes of the part, as the series writes it
//!        1 u8 │ number of the block file varint │ offset varint │ words varint, of a block that is stored as it is
//!        2 u8 │ number of the block file varint │ number of the bundle times 8, and index in it, varint
//! ```

use super::Points;
use crate::persist::blocks::{Address, Blocks, Where};
use crate::persist::record::{Cursor, put_bytes, put_varint};
use std::ops::Range;
use tidemark_series::{Block, Part};

const WHOLE: u8 = 0;
const ALONE: u8 = 1;
const BUNDLED: u8 = 2;

/// Builds without block files wrote the length of a part first, which is never below 3.
const OTHER_FORM: &str = "it is written in the form of a build without block files, which this build does not \
    read: start the build that wrote it, copy the points with TS.RANGE, and add them here";

/// Appends some of the parts of a series, by reference where the snapshot does that. A small block that
/// is soon part of a larger one is not worth a place in a file.
pub(super) fn encode_parts(points: &Points, parts: Range<usize>, blocks: &Blocks, into: &mut Vec<u8>) {
    let mut part = Vec::new();
    let lasting = points.lasting_parts();
    let mut bundler = blocks.bundler();
    for index in parts {
        let is_lasting = |block: &&Block| index < lasting || block.with_place(|_| ()).is_some();
        let block = points.block(index).filter(is_lasting);
        if let (Some(block), Some(bundler)) = (block, &mut bundler) {
            let Address { file, at } = bundler.refer(block);
            into.push(if matches!(at, Where::Alone(_)) { ALONE } else { BUNDLED });
            put_varint(into, file);
            put_varint(into, at.in_bundles());
            if matches!(at, Where::Alone(_)) {
                put_varint(into, block.stored_words() as u64);
            }
        } else {
            part.clear();
            points.encode_part(index, &mut part);
            into.push(WHOLE);
            put_bytes(into, &part);
        }
    }
}

/// Reads up to `count` parts, fewer if the bytes end before; `None` if one is none, or cannot be read.
pub(super) fn decode_parts(count: usize, bytes: &mut Cursor<'_>) -> Option<Vec<Part<f64>>> {
    let mut parts = Vec::new();
    while parts.len() < count && !bytes.is_empty() {
        parts.push(decode_part(parts.len(), bytes)?);
    }
    Some(parts)
}

/// Reads the next part, which is the one of this number; `None` if it is none, or cannot be read.
fn decode_part(number: usize, bytes: &mut Cursor<'_>) -> Option<Part<f64>> {
    match bytes.u8()? {
        WHOLE => Part::decode(number, bytes.bytes()?).ok(),
        ALONE => {
            let address = Address { file: bytes.varint()?, at: Where::Alone(bytes.varint()?) };
            let words = bytes.varint()?;
            bytes.blocks()?.find(address, words)
        }
        BUNDLED => {
            let address = Address { file: bytes.varint()?, at: Where::of_bundles(bytes.varint()?)? };
            bytes.blocks()?.find(address, 0)
        }
        _ => {
            if let Some(blocks) = bytes.blocks() {
                blocks.refuse(OTHER_FORM);
            }
            None
        }
    }
}
