//! What all connections of a member share, and what they report.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::handshake::Hello;
use super::identity::Identity;
use super::presence::Presence;
use super::roster::Roster;
use super::settings::NetSettings;
use super::tls::Tls;
use super::transport::Lane;
use crate::ids::NodeId;
use crate::level::Level;
use crate::wire::frame::Channel;

/// Receives what happens to connections. Called on the runtime of the connections: returns at once.
pub trait NetEvents: Send + Sync + 'static {
    /// The connection on which `peer` sends heartbeats was closed by the peer or its kernel: a hint that
    /// its process has ended.
    fn heartbeats_closed(&self, peer: NodeId);

    /// A connection ended, was refused, by this member or the other end, or could not be made. `error`
    /// says why. A peer that stays away is reported once. Strangers cause one call each: limit what is
    /// logged.
    fn connection_failed(&self, peer: Option<NodeId>, error: &str);
}

/// What all connections of a member share.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) identity: Identity,
    pub(super) settings: Arc<NetSettings>,
    tls: Arc<RwLock<Option<Tls>>>,
    pub(super) events: Arc<dyn NetEvents>,
    pub(super) presence: Presence,
    roster: Arc<RwLock<Arc<Roster>>>,
    /// The group's level: members know at least this.
    level: Arc<AtomicU8>,
}

impl Endpoint {
    pub(super) fn new(
        identity: Identity,
        settings: NetSettings,
        tls: Option<Tls>,
        events: Arc<dyn NetEvents>,
    ) -> Self {
        let (settings, presence) = (Arc::new(settings), Presence::default());
        let tls = Arc::new(RwLock::new(tls));
        Self { identity, settings, tls, events, presence, roster: Arc::default(), level: Arc::default() }
    }

    pub(super) fn channel(&self, lane: Lane) -> Channel {
        Channel { group: self.identity.group, lane: lane.code() }
    }

    pub(super) fn tls(&self) -> Option<Tls> {
        self.tls.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces certificates. Returns false without a change if there were none.
    pub(super) fn renew_tls(&self, tls: Tls) -> bool {
        let mut current = self.tls.write().unwrap_or_else(PoisonError::into_inner);
        current.as_mut().map(|current| *current = tls).is_some()
    }

    /// Raises the level that members must know.
    pub(super) fn set_level(&self, level: Level) {
        self.level.fetch_max(level.0, Ordering::Relaxed);
    }

    /// Returns what this end says of itself to `to`.
    pub(super) fn hello(&self, to: NodeId) -> Hello {
        Hello::new(&self.identity, to, &self.settings.build)
    }

    /// Checks what the other end says of itself, and returns it with the version of the protocol that both
    /// use. The error is the refusal.
    pub(super) fn check(&self, hello: &[u8]) -> Result<(Hello, u16), String> {
        let hello = Hello::decode(hello, &self.identity)?;
        let protocol = hello.agree(&self.identity, self.settings.build.protocols)?;
        hello.check(&self.identity, &self.roster())?;
        hello.check_level(Level(self.level.load(Ordering::Relaxed)))?;
        Ok((hello, protocol))
    }

    pub(super) fn roster(&self) -> Arc<Roster> {
        Arc::clone(&self.roster.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_roster(&self, roster: Roster) {
        *self.roster.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(roster);
    }
}
