//! How pools' draws and amounts are told.

use crate::value::pool::Inner;
use crate::wire::reply::Reply;
use tidemark_pool::{Draw, Stock};

/// A draw: its number, and the id of what it has given, or null.
pub(super) fn draw(reply: &mut Reply, pool: &Inner, draw: &Draw) {
    reply.array(2);
    reply.integer(signed(draw.number));
    item(reply, pool, draw.item);
}

/// Draws, one behind the other.
pub(super) fn draws(reply: &mut Reply, pool: &Inner, draws: &[Draw]) {
    reply.array(draws.len());
    draws.iter().for_each(|one| draw(reply, pool, one));
}

/// The id of an item, or null.
pub(super) fn item(reply: &mut Reply, pool: &Inner, item: Option<u32>) {
    reply.bulk_or_null(item.map(|item| pool.urn().id(item).as_bytes()));
}

/// What is left of an item, or null if it has no end.
pub(super) fn stock(reply: &mut Reply, stock: Stock) {
    match stock {
        Stock::Limited(left) => reply.integer(signed(left)),
        Stock::Unlimited => reply.null(),
    }
}

/// The name of a field and its text.
pub(super) fn text(reply: &mut Reply, name: &str, text: &str) {
    reply.bulk(name.as_bytes());
    reply.bulk(text.as_bytes());
}

/// The name of a field and its number.
pub(super) fn number(reply: &mut Reply, name: &str, number: u64) {
    reply.bulk(name.as_bytes());
    reply.integer(signed(number));
}

/// No number of a pool is larger than an integer of the protocol.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
