//! Whoever passes emissions on to subscribers.

use crate::tracking::Broadcast;
use crate::watch::watched_read::SharedQuery;
use std::sync::Arc;

/// Whoever passes emissions on to subscribers.
pub trait Audience: Send + Sync {
    /// Tells a listener that a query has emitted something since the listener last looked. Called with shards locked: it
    /// must neither wait nor use the engine.
    fn tell(&self, listener: usize, query: &SharedQuery);

    /// Tells somebody that keys which begin as some clients have asked for have changed since it was last passed on: it
    /// is to be passed on, once, by [`Broadcast::pass_on`]. Called as [`Audience::tell`] is.
    fn broadcast(&self, broadcast: &Arc<Broadcast>);
}
