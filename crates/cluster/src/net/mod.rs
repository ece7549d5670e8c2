//! Connections between members.
//!
//! ```text
//! Transport::send ─► link: queue, one connection of a lane ─► frames ─► listener ─► Service::serve
//! ```
//!
//! Each module uses only modules before it: [`Lane`], [`Transport`], [`Service`], build ─► settings
//! ─► identity, roster ─► presence, handshake, outbox, tls ─► connection ─► endpoint ─► link ─► listener
//! ─► tcp.

mod build;
mod connection;
mod endpoint;
mod handshake;
mod identity;
mod link;
mod listener;
mod outbox;
mod presence;
mod roster;
mod settings;
mod tcp;
mod tls;
mod transport;

pub use build::{Build, Protocols};
pub use endpoint::NetEvents;
pub use identity::Identity;
pub use link::LinkStatus;
pub use roster::{Peer, Roster};
pub use settings::NetSettings;
pub use tcp::TcpTransport;
pub use tls::{Tls, TlsError, TlsFiles};
pub use transport::{Lane, Service, Transport};
