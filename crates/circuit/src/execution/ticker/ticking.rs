//! What a clock has tick, whichever clock that is.

use std::sync::Arc;

use crate::identity::subject::Id;

/// Somebody whose time comes again and again.
pub(super) trait Ticking: Send + Sync {
    /// Who that is.
    fn id(&self) -> Id;

    /// Whether no tick will come any more.
    fn is_over(&self) -> bool;

    /// Sends the next tick, unless too many wait already: then false. Called by who has the time only.
    fn send(self: Arc<Self>) -> bool;
}
