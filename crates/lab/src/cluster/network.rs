//! A network for the members of a cluster, each in a namespace of its own.
//!
//! ```text
//!              bridge `members` 10.79.0.0/24        a member that is taken off it is cut off from the
//!             ┌──────────┼──────────┐               others: frames vanish, no end sees an error
//!          member 1   member 2   member 3
//!             └──────────┼──────────┘
//!              bridge `clients` 10.79.1.0/24        this program is on it
//! ```

use crate::namespace::{self, Namespace, ip};
use anyhow::Context;
use std::sync::Arc;

/// The networks of members and clients. They end with this value and the program.
#[derive(Debug)]
pub(crate) struct Network {
    namespaces: Vec<Arc<Namespace>>,
}

impl Network {
    /// Moves the calling thread, and what it starts from now on, into a new network with so many
    /// members.
    pub(crate) fn enter_new(members: usize) -> anyhow::Result<Self> {
        namespace::enter_new()?;
        let build = || -> anyhow::Result<Self> {
            for setup in [
                "link set lo up",
                "link add members type bridge",
                "link set members up",
                "link add clients type bridge",
                "addr add 10.79.1.254/24 dev clients",
                "link set clients up",
            ] {
                ip(None, setup)?;
            }
            let namespaces = (1..=members).map(Self::member).collect::<Result<_, _>>()?;
            Ok(Network { namespaces })
        };
        build().context("cannot build a network for the members")
    }

    fn member(number: usize) -> anyhow::Result<Arc<Namespace>> {
        let namespace = Namespace::new()?;
        let thread = namespace.thread();
        ip(Some(&namespace), "link set lo up")?;
        for (bridge, subnet) in [("members", 0), ("clients", 1)] {
            let outside = format!("{bridge}{number}");
            ip(None, &format!("link add {outside} type veth peer name {bridge} netns {thread}"))?;
            ip(None, &format!("link set {outside} master {bridge} up"))?;
            ip(Some(&namespace), &format!("addr add 10.79.{subnet}.{number}/24 dev {bridge}"))?;
            ip(Some(&namespace), &format!("link set {bridge} up"))?;
        }
        Ok(Arc::new(namespace))
    }

    /// Returns the namespace of a member, counted from 0.
    pub(crate) fn namespace(&self, member: usize) -> Arc<Namespace> {
        Arc::clone(&self.namespaces[member])
    }

    /// Returns a member's address for the other members.
    pub(crate) fn peer_host(member: usize) -> String {
        format!("10.79.0.{}", member + 1)
    }

    /// Returns a member's address for clients.
    pub(crate) fn client_host(member: usize) -> String {
        format!("10.79.1.{}", member + 1)
    }

    /// Cuts a member off from the other members. Clients still reach it.
    pub(crate) fn cut(member: usize) -> anyhow::Result<()> {
        ip(None, &format!("link set members{} nomaster", member + 1))
    }

    /// Ends a cut.
    pub(crate) fn mend(member: usize) -> anyhow::Result<()> {
        ip(None, &format!("link set members{} master members", member + 1))
    }
}
