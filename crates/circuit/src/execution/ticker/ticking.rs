//! Interface between tickers and clocks of either kind.

use std::sync::Arc;

use crate::identity::subject::Id;

/// A component that a clock calls periodically.
pub(super) trait Ticking: Send + Sync {
    /// Identity of the ticker.
    fn id(&self) -> Id;

    /// Returns whether no tick will be sent any more.
    fn is_over(&self) -> bool;

    /// Sends the next tick. Returns false if too many wait already. Called only by the thread that
    /// advances the clock.
    fn send(self: Arc<Self>) -> bool;
}
