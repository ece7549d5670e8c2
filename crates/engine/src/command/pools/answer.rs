//! Encoding of draws, items and amounts in answers.

use crate::value::pool::Inner;
use crate::wire::reply::Reply;
use tidemark_pool::{Draw, Stock};

/// Writes a draw: its number, and the id of its item, or null.
pub(super) fn draw(reply: &mut Reply, pool: &Inner, draw: &Draw) {
    reply.array(2);
    reply.integer(signed(draw.number));
    item(reply, pool, draw.item);
}

pub(super) fn draws(reply: &mut Reply, pool: &Inner, draws: &[Draw]) {
    reply.array(draws.len());
    draws.iter().for_each(|one| draw(reply, pool, one));
}

/// Writes the id of an item, or null.
pub(super) fn item(reply: &mut Reply, pool: &Inner, item: Option<u32>) {
    reply.bulk_or_null(item.map(|item| pool.urn().id(item).as_bytes()));
}

/// Writes the stock of an item, or null if it is unlimited.
pub(super) fn stock(reply: &mut Reply, stock: Stock) {
    match stock {
        Stock::Limited(left) => reply.integer(signed(left)),
        Stock::Unlimited => reply.null(),
    }
}

pub(super) fn text(reply: &mut Reply, name: &str, text: &str) {
    reply.bulk(name.as_bytes());
    reply.bulk(text.as_bytes());
}

pub(super) fn number(reply: &mut Reply, name: &str, number: u64) {
    reply.bulk(name.as_bytes());
    reply.integer(signed(number));
}

/// Returns a number of a pool as a protocol integer; all of them fit.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
