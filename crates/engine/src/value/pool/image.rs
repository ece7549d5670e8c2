//! Encoding of a pool, in the record that creates it and in snapshots.
//!
//! ```text
//! pool    head (length varint │ bytes) │ items (length varint │ bytes)
//! head    selector and durability u8 │ chain 32 │ last draws │ the pool without its items
//! ```

use super::recent::Recent;
use super::{Pool, PoolDurability};
use crate::persist::record::{Cursor, put_bytes};
use crate::value::{InParts, Value};
use tidemark_pool::selector::{AnySelector, SelectorKind};
use tidemark_pool::{Chain, ChainedPool, PoolImage};
use xxhash_rust::xxh3::xxh3_64;

const CHAIN_BYTES: usize = 32;
/// Flag in the selector's byte: replies follow the server's durability mode.
const FOLLOWS_SERVER: u8 = 0x80;

impl Pool {
    /// Appends everything except the items.
    pub(super) fn encode_head(&self, into: &mut Vec<u8>) {
        let follows = match self.durability() {
            PoolDurability::Always => 0,
            PoolDurability::Server => FOLLOWS_SERVER,
        };
        into.push(code(self.inner().urn().selector().kind()) | follows);
        into.extend_from_slice(self.chain().bytes());
        self.0.recent.encode(into);
        self.inner().write_head(into);
    }

    /// Assembles a pool from its head and the pieces of its items, in order; `None` if invalid.
    pub(crate) fn assemble<'a>(head: &[u8], pieces: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let mut cursor = Cursor::new(head);
        let first = cursor.u8()?;
        let kind = kind_of(first & !FOLLOWS_SERVER)?;
        let durability = match first & FOLLOWS_SERVER {
            0 => PoolDurability::Always,
            _ => PoolDurability::Server,
        };
        let chain = Chain::from(<[u8; CHAIN_BYTES]>::try_from(cursor.take(CHAIN_BYTES)?).ok()?);
        // Their limits follow later in the head.
        let mut last_draws = cursor.clone();
        Recent::decode(&mut cursor, u64::MAX, usize::MAX)?;
        let mut image = PoolImage::read(cursor.take(cursor.remaining())?).ok()?;
        for piece in pieces {
            image.read_items(piece).ok()?;
        }
        let pool = image.finish_with(|weights| AnySelector::with(kind, weights)).ok()?;
        let recent = Recent::decode(&mut last_draws, pool.next_draw(), pool.urn().len())?;
        Some(Self::of(ChainedPool { pool, chain }, recent, durability))
    }
}

fn code(kind: SelectorKind) -> u8 {
    match kind {
        SelectorKind::Tree => 0,
        SelectorKind::Alias => 1,
        SelectorKind::Fenwick => 2,
        SelectorKind::PrefixSum => 3,
    }
}

fn kind_of(byte: u8) -> Option<SelectorKind> {
    SelectorKind::ALL.into_iter().find(|&kind| code(kind) == byte)
}

impl Value for Pool {
    fn is_empty(&self) -> bool {
        false
    }

    fn elements(&self) -> usize {
        self.len()
    }

    fn encoding(&self) -> &'static str {
        self.encoding()
    }

    fn in_parts(&self) -> Option<&dyn InParts> {
        Some(self)
    }

    fn in_parts_mut(&mut self) -> Option<&mut dyn InParts> {
        Some(self)
    }

    fn encode(&self, into: &mut Vec<u8>) {
        let mut piece = Vec::new();
        self.encode_head(&mut piece);
        put_bytes(into, &piece);
        piece.clear();
        self.inner().write_items(0..self.len() as u32, &mut piece);
        put_bytes(into, &piece);
    }

    fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let (head, items) = (bytes.bytes()?, bytes.bytes()?);
        Self::assemble(head, std::iter::once(items))
    }

    fn digest(&self) -> u64 {
        let mut form = Vec::new();
        self.encode(&mut form);
        xxh3_64(&form)
    }
}
