//! The pool inside of a pool: one that keeps its selector's kind.

use tidemark_pool::selector::AnySelector;

/// A pool whose selector is chosen when it is made.
pub type Inner = tidemark_pool::Pool<AnySelector>;
