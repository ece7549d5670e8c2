//! The transport between processes: TCP, optionally with TLS.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::endpoint::{Endpoint, NetEvents};
use super::identity::Identity;
use super::link::{Link, LinkStatus};
use super::listener::Listener;
use super::roster::{Peer, Roster};
use super::settings::NetSettings;
use super::tls::{Tls, TlsError};
use super::transport::{Lane, Service, Transport};
use crate::ids::NodeId;
use crate::level::Level;

/// Links to the other members, and a listener for theirs.
///
/// Clones share both. [`close`](Self::close) ends them.
#[derive(Clone)]
pub struct TcpTransport {
    shared: Arc<Shared>,
}

struct Shared {
    runtime: Handle,
    endpoint: Endpoint,
    connections: Mutex<Connections>,
}

#[derive(Default)]
struct Connections {
    links: HashMap<(NodeId, Lane), Link>,
    listener: Option<Listener>,
    is_closed: bool,
}

impl TcpTransport {
    /// Makes a transport whose tasks run on `runtime`. It is connected with no member until it has a
    /// roster. The error says which setting makes no sense.
    pub fn new(
        runtime: Handle,
        identity: Identity,
        settings: NetSettings,
        tls: Option<Tls>,
        events: Arc<dyn NetEvents>,
    ) -> Result<Self, String> {
        settings.check()?;
        let endpoint = Endpoint::new(identity, settings, tls, events);
        Ok(Self { shared: Arc::new(Shared { runtime, endpoint, connections: Mutex::default() }) })
    }

    /// Serves the peers that connect to `socket`. Replaces an earlier listener.
    pub fn listen(&self, socket: std::net::TcpListener, service: impl Service) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        let runtime = self.shared.runtime.enter();
        let socket = tokio::net::TcpListener::from_std(socket)?;
        drop(runtime);
        let mut connections = self.lock();
        if !connections.is_closed {
            let listener =
                Listener::start(&self.shared.runtime, self.shared.endpoint.clone(), socket, service);
            connections.listener = Some(listener);
        }
        Ok(())
    }

    /// Sets who the members are. Connections with those that are not among them, or at another address
    /// or with another directory, are closed; links to new ones are made at once.
    pub fn set_roster(&self, roster: Roster) {
        let endpoint = &self.shared.endpoint;
        let mut connections = self.lock();
        if connections.is_closed {
            return;
        }
        let before = endpoint.roster();
        endpoint.set_roster(roster.clone());
        let is_unchanged = |node: &NodeId| before.peers.get(node) == roster.peers.get(node);
        connections.links.retain(|(node, _), _| is_unchanged(node));
        if let Some(listener) = &connections.listener {
            listener.retain(endpoint, &roster);
        }
        let own = endpoint.identity.node;
        for (node, Peer { address, .. }) in roster.peers.iter().filter(|(node, _)| **node != own) {
            for lane in Lane::ALL {
                let start = || Link::start(&self.shared.runtime, endpoint, *node, address.clone(), lane);
                connections.links.entry((*node, lane)).or_insert_with(start);
            }
        }
    }

    /// Admits only members whose builds know this level of records, from now on. A level below one that was
    /// set before changes nothing.
    pub fn set_level(&self, level: Level) {
        self.shared.endpoint.set_level(level);
    }

    /// Uses other certificates for connections that are made from now on: for those that expire. Those
    /// that are there stay.
    ///
    /// # Errors
    /// If the transport was made without TLS: members change to it one by one by a restart each.
    pub fn renew_tls(&self, tls: Tls) -> Result<(), TlsError> {
        let has_tls = self.shared.endpoint.renew_tls(tls);
        has_tls.then_some(()).ok_or_else(|| {
            TlsError::Mismatch("the member runs without TLS; restart it to change that".to_owned())
        })
    }

    /// Returns the state of all links, by peer and lane.
    pub fn links(&self) -> Vec<LinkStatus> {
        let mut links: Vec<LinkStatus> = self.lock().links.values().map(Link::status).collect();
        links.sort_unstable_by_key(|link| (link.peer, link.lane));
        links
    }

    /// Closes all connections and the listener. What is sent later fails.
    pub fn close(&self) {
        let mut connections = self.lock();
        *connections = Connections { is_closed: true, ..Connections::default() };
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.shared.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for TcpTransport {
    fn send(&self, to: NodeId, lane: Lane, frame: Vec<u8>) -> oneshot::Receiver<Bytes> {
        match self.lock().links.get(&(to, lane)) {
            Some(link) => link.send(frame),
            // The sender is dropped: the receiver fails.
            None => oneshot::channel().1,
        }
    }
}

impl std::fmt::Debug for TcpTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TcpTransport")
            .field("identity", &self.shared.endpoint.identity)
            .finish_non_exhaustive()
    }
}
