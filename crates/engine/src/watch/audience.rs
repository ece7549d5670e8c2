//! The receiver of emissions, which delivers them to subscribers.

use crate::tracking::Broadcast;
use crate::watch::watched_read::SharedQuery;
use std::sync::Arc;

/// Delivers emissions to subscribers.
pub trait Audience: Send + Sync {
    /// Notifies a listener that a query has emitted since the listener last looked. Called with
    /// shards locked: it must neither wait nor use the engine.
    fn notify(&self, listener: usize, query: &SharedQuery);

    /// Announces that [`crate::Engine::next_tick`] is earlier than before. Called like
    /// [`Audience::notify`].
    fn tick_earlier(&self) {}

    /// Announces that keys with a tracked prefix have changed since the last
    /// [`Broadcast::pass_on`]. The audience must call that once. Called like [`Audience::notify`].
    fn broadcast(&self, broadcast: &Arc<Broadcast>);
}
