//! The cluster as its members describe it, each asked by itself.

use crate::asking::{ask, connect};
use anyhow::Context as _;
use std::time::Duration;
use tidemark_lab::target::Target;
use tidemark_server::{ClusterStatus, MemberStatus};

/// Asks the member at `target`.
pub(super) fn ask_member(target: &Target, timeout: Duration) -> anyhow::Result<ClusterStatus> {
    let mut client = connect(target, timeout)?;
    Ok(ClusterStatus::of(&ask(&mut client, &["CLUSTER", "STATUS"])?)?)
}

/// A member in the picture.
#[derive(Debug)]
pub(super) struct Drawn {
    /// As the leader sees it, or else the member that was asked.
    pub(super) seen: MemberStatus,
    /// What it says itself, or why it could not be asked.
    pub(super) said: Result<ClusterStatus, String>,
}

/// The cluster.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) cluster: String,
    pub(super) members: Vec<Drawn>,
}

/// Returns a member's address with the user and the password of another one.
pub(super) fn at(address: &str, like: &Target) -> anyhow::Result<Target> {
    let member: Target = address.parse().with_context(|| format!("the members list has '{address}'"))?;
    Ok(Target { host: member.host, port: member.port, database: 0, ..like.clone() })
}

impl Picture {
    /// Asks a member, and then all others.
    ///
    /// # Errors
    /// The first member cannot be asked.
    pub(super) fn draw(target: &Target, timeout: Duration) -> anyhow::Result<Picture> {
        let first = ask_member(target, timeout)?;
        let ask = |seen: &MemberStatus| {
            if seen.node == first.node {
                return Ok(first.clone());
            }
            let said = at(&seen.clients, target).and_then(|target| ask_member(&target, timeout));
            let said = said.and_then(|said| {
                anyhow::ensure!(
                    said.cluster == first.cluster,
                    "it belongs to another cluster now: recovered from the loss of its members, or founded there"
                );
                Ok(said)
            });
            said.map_err(|error| format!("{error:#}"))
        };
        let said: Vec<_> = first.members.iter().map(|seen| (seen.clone(), ask(seen))).collect();
        let leader =
            said.iter().filter_map(|(_, said)| said.as_ref().ok()).find(|said| said.role == "leader");
        let leader = leader.cloned();
        let members = said.into_iter().map(|(seen, said)| {
            let by_leader = leader.as_ref().and_then(|leader| leader.member(seen.node).cloned());
            Drawn { seen: by_leader.unwrap_or(seen), said }
        });
        Ok(Picture { cluster: first.cluster.clone(), members: members.collect() })
    }

    /// Returns what the leader says, if a member leads and can be asked.
    pub(super) fn leader(&self) -> Option<&ClusterStatus> {
        let said = self.members.iter().filter_map(|member| member.said.as_ref().ok());
        said.filter(|said| said.role == "leader").max_by_key(|said| said.term)
    }
}
