//! The pool inside of a pool: one that keeps its selector's kind.

use tidemark_pool::selector::AnySelector;

/// A pool whose selector is chosen when it is made.
pub type Inner = tidemark_pool::Pool<AnySelector>;

/// What the chain of a pool begins with: what is published of its secrets, its catalogue, and its rules.
pub(super) fn origin(pool: &Inner) -> Vec<u8> {
    let mut origin = [pool.commitment().0, pool.next_commitment().0].concat();
    pool.write_items(0..pool.urn().len() as u32, &mut origin);
    pool.write_rules(&mut origin);
    origin
}
