//! The cluster as its members describe it, each asked by itself.

use crate::answer::{field, number};
use crate::asking::{ask, connect};
use anyhow::Context as _;
use std::time::Duration;
use tidemark_lab::target::Target;
use tidemark_server::resp::Value;

/// What a member says of itself and of the group.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) cluster: String,
    pub(super) node: u64,
    pub(super) role: String,
    pub(super) leader: Option<u64>,
    pub(super) term: u64,
    pub(super) last_entry: u64,
    pub(super) committed_entry: u64,
    pub(super) quorum_age_ms: Option<u64>,
    /// Whether its data is new enough for readers.
    pub(super) is_fresh: bool,
    /// The version of its build, and the highest level of records that it knows.
    pub(super) version: String,
    pub(super) level: u64,
    /// The level of the cluster's records.
    pub(super) cluster_level: u64,
    pub(super) problem: Option<String>,
    pub(super) change: Option<String>,
    pub(super) last_change: Option<String>,
    pub(super) last_change_error: Option<String>,
    pub(super) members: Vec<Seen>,
}

/// A member as another one sees it.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) node: u64,
    pub(super) peers: String,
    pub(super) clients: String,
    pub(super) votes: bool,
    pub(super) is_reachable: bool,
    pub(super) error: String,
    pub(super) entry: Option<u64>,
}

impl Said {
    fn of(reply: &Value) -> anyhow::Result<Said> {
        let missing = |name: &str| format!("the answer to CLUSTER STATUS lacks '{name}'");
        let text = |map: &Value, name: &str| {
            let value = field(map, name).and_then(Value::as_bytes);
            value.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        let needed = |name: &str| text(reply, name).with_context(|| missing(name));
        let counted = |name: &str| number(reply, name).with_context(|| missing(name));
        let members =
            field(reply, "members").and_then(Value::as_elements).with_context(|| missing("members"))?;
        let seen = |member: &Value| {
            Some(Seen {
                node: number(member, "node")?,
                peers: text(member, "peers")?,
                clients: text(member, "clients")?,
                votes: number(member, "votes")? == 1,
                is_reachable: number(member, "reachable")? == 1,
                error: text(member, "error")?,
                entry: number(member, "entry"),
            })
        };
        Ok(Said {
            cluster: needed("cluster")?,
            node: counted("node")?,
            role: needed("role")?,
            leader: number(reply, "leader"),
            term: counted("term")?,
            last_entry: counted("last_entry")?,
            committed_entry: counted("committed_entry")?,
            quorum_age_ms: number(reply, "quorum_age_ms"),
            is_fresh: counted("fresh")? == 1,
            version: text(reply, "version").unwrap_or_default(),
            level: number(reply, "level").unwrap_or(1),
            cluster_level: number(reply, "cluster_level").unwrap_or(1),
            problem: text(reply, "problem"),
            change: text(reply, "change"),
            last_change: text(reply, "last_change"),
            last_change_error: text(reply, "last_change_error"),
            members: members.iter().map(seen).collect::<Option<_>>().with_context(|| missing("node"))?,
        })
    }

    /// Asks the member at `target`.
    pub(super) fn ask(target: &Target, timeout: Duration) -> anyhow::Result<Said> {
        let mut client = connect(target, timeout)?;
        Said::of(&ask(&mut client, &["CLUSTER", "STATUS"])?)
    }

    /// Returns the member of that number in this one's list.
    pub(super) fn member(&self, node: u64) -> Option<&Seen> {
        self.members.iter().find(|member| member.node == node)
    }
}

/// A member in the picture.
#[derive(Debug)]
pub(super) struct Drawn {
    /// As the leader sees it, or else the member that was asked.
    pub(super) seen: Seen,
    /// What it says itself, or why it could not be asked.
    pub(super) said: Result<Said, String>,
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
        let first = Said::ask(target, timeout)?;
        let ask = |seen: &Seen| {
            if seen.node == first.node {
                return Ok(first.clone());
            }
            let said = at(&seen.clients, target).and_then(|target| Said::ask(&target, timeout));
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
    pub(super) fn leader(&self) -> Option<&Said> {
        let said = self.members.iter().filter_map(|member| member.said.as_ref().ok());
        said.filter(|said| said.role == "leader").max_by_key(|said| said.term)
    }
}
