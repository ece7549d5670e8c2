//! The pool within a value; it stores the kind of its selector.

use tidemark_pool::selector::AnySelector;

/// A pool whose kind of selector is chosen when it is created.
pub type Inner = tidemark_pool::Pool<AnySelector>;
