//! `CLUSTER`, `READONLY`, `READWRITE` and `ASKING`: the group as a Redis Cluster of one shard, which
//! has all slots.

use crate::context::Context;
use crate::group::{Group, Member, NodeId, wire_name};
use crate::session::Session;
use std::fmt::Write as _;
use tidemark_engine::CommandError;
use tidemark_engine::keyspace::{SLOTS, slot};

/// Most ports are followed by this distance in Redis Cluster's lists; nothing of Tidemark listens
/// there, and clients do not use it.
const BUS_PORT_DISTANCE: u16 = 10_000;

/// The error of Redis without `cluster-enabled`.
pub(super) fn disabled() -> CommandError {
    CommandError::text("ERR This instance has cluster support disabled")
}

pub(super) fn group<'a>(cx: &Context<'a>) -> Result<&'a Group, CommandError> {
    cx.shared.group.as_ref().ok_or_else(disabled)
}

/// `READONLY`, `READWRITE`: whether this client reads a follower.
pub(crate) fn read_followers(
    session: &mut Session,
    reads: bool,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    group(cx)?;
    session.reads_followers = reads;
    session.outbox.reply.ok();
    Ok(())
}

/// `ASKING`: no slot moves, so there is nothing to ask for.
pub(crate) fn asking(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    group(cx)?;
    session.outbox.reply.ok();
    Ok(())
}

/// `CLUSTER KEYSLOT key`
pub(crate) fn key_slot(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    let [_, _, key] = args else { return Err(CommandError::Syntax) };
    session.outbox.reply.count(slot(key));
    Ok(())
}

/// `CLUSTER MYID`
pub(crate) fn my_id(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    session.outbox.reply.bulk(wire_name(group(cx)?.me()).as_bytes());
    Ok(())
}

/// `CLUSTER MYSHARDID`: the one shard, which has no other name than that it is the first.
pub(crate) fn my_shard_id(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    group(cx)?;
    session.outbox.reply.bulk(format!("{:040x}", 1).as_bytes());
    Ok(())
}

/// `CLUSTER INFO`
pub(crate) fn info(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    let view = View::of(group(cx)?);
    let is_ok = view.leader.is_some();
    let mut text = String::new();
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{name}:{value}\r\n");
    };
    line("cluster_state", &if is_ok { "ok" } else { "fail" });
    line("cluster_slots_assigned", &SLOTS);
    line("cluster_slots_ok", &if is_ok { SLOTS } else { 0 });
    line("cluster_slots_pfail", &0);
    line("cluster_slots_fail", &if is_ok { 0 } else { SLOTS });
    line("cluster_known_nodes", &view.members.len());
    line("cluster_size", &1);
    line("cluster_current_epoch", &view.epoch);
    line("cluster_my_epoch", &view.epoch);
    line("cluster_stats_messages_sent", &0);
    line("cluster_stats_messages_received", &0);
    line("total_cluster_links_buffer_limit_exceeded", &0);
    session.outbox.reply.verbatim(&text);
    Ok(())
}

/// `CLUSTER NODES`
pub(crate) fn nodes(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    let view = View::of(group(cx)?);
    let mut text = String::new();
    for node in &view.members {
        let myself = if node.is_me { "myself," } else { "" };
        let (role, leader) = match view.leader {
            _ if node.is_leader => ("master", "-"),
            Some(leader) => ("slave", view.members[leader].id.as_str()),
            None => ("slave", "-"),
        };
        let link = if node.is_reachable { "connected" } else { "disconnected" };
        let slots = if node.is_leader { format!(" 0-{}", SLOTS - 1) } else { String::new() };
        let Node { id, host, port, .. } = node;
        let bus = port.saturating_add(BUS_PORT_DISTANCE);
        let epoch = view.epoch;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{id} {host}:{port}@{bus} {myself}{role} {leader} 0 0 {epoch} {link}{slots}");
    }
    session.outbox.reply.verbatim(&text);
    Ok(())
}

/// `CLUSTER SLOTS`: one range, with the leader before the followers that are reachable. While no leader
/// is known, the last one has the slots, as a failed node in Redis Cluster: clients try again. Empty
/// before the first.
pub(crate) fn slots(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    let group = group(cx)?;
    let view = View::with_leader(group, group.last_leader());
    let reply = &mut session.outbox.reply;
    let Some(leader) = view.leader else {
        reply.array(0);
        return Ok(());
    };
    let is_follower = |node: &&Node| !node.is_leader && node.is_reachable;
    let nodes: Vec<&Node> =
        std::iter::once(&view.members[leader]).chain(view.members.iter().filter(is_follower)).collect();
    reply.array(1);
    reply.array(2 + nodes.len());
    reply.count(0);
    reply.count(SLOTS - 1);
    for node in nodes {
        reply.array(4);
        reply.bulk(node.host.as_bytes());
        reply.count(node.port.into());
        reply.bulk(node.id.as_bytes());
        reply.array(0);
    }
    Ok(())
}

/// `CLUSTER SHARDS`
pub(crate) fn shards(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    let view = View::of(group(cx)?);
    let offset = cx.shared.engine.log().committed().0 as usize;
    let reply = &mut session.outbox.reply;
    reply.array(1);
    reply.map(2);
    reply.bulk(b"slots");
    reply.array(2);
    reply.count(0);
    reply.count(SLOTS - 1);
    reply.bulk(b"nodes");
    reply.array(view.members.len());
    for node in &view.members {
        reply.map(7);
        for (name, value) in [("id", &node.id), ("ip", &node.host), ("endpoint", &node.host)] {
            reply.bulk(name.as_bytes());
            reply.bulk(value.as_bytes());
        }
        reply.bulk(b"port");
        reply.count(node.port.into());
        reply.bulk(b"role");
        reply.bulk(if node.is_leader { b"master" } else { b"replica" });
        reply.bulk(b"replication-offset");
        reply.count(offset);
        reply.bulk(b"health");
        reply.bulk(if node.is_reachable { b"online" } else { b"failed" });
    }
    Ok(())
}

/// `CLUSTER LINKS`: connections of Redis's own bus, which Tidemark does not have.
pub(crate) fn links(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    group(cx)?;
    session.outbox.reply.array(0);
    Ok(())
}

/// A member, as Redis Cluster shows nodes.
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) is_me: bool,
    pub(crate) is_leader: bool,
    pub(crate) is_reachable: bool,
}

/// The group at one moment.
pub(crate) struct View {
    pub(crate) members: Vec<Node>,
    /// Index of the leader, if one is known.
    pub(crate) leader: Option<usize>,
    /// The number of the newest known term.
    pub(crate) epoch: u64,
}

impl View {
    pub(crate) fn of(group: &Group) -> View {
        View::with_leader(group, group.leader())
    }

    /// Returns the group with `leader` as its leader.
    pub(crate) fn with_leader(group: &Group, leader: Option<NodeId>) -> View {
        let node = |member: Member| {
            let (host, port) = host_and_port(&member.client_address);
            let is_me = member.id == group.me();
            Node {
                id: wire_name(member.id),
                host,
                port,
                is_me,
                is_leader: leader == Some(member.id),
                is_reachable: is_me || member.is_reachable,
            }
        };
        let members: Vec<Node> = group.consensus().members().into_iter().map(node).collect();
        let leader = members.iter().position(|node| node.is_leader);
        View { members, leader, epoch: group.consensus().status().term.0 }
    }
}

/// Splits an address; an IPv6 host loses its brackets, as in Redis's lists.
pub(crate) fn host_and_port(address: &str) -> (String, u16) {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    (host.to_owned(), port.parse().unwrap_or(0))
}

/// Returns the leader's address for clients, if another member leads.
pub(crate) fn followed(cx: &Context<'_>) -> Option<Followed> {
    let group = cx.shared.group.as_ref().filter(|group| !group.leads())?;
    let address = group.leader().and_then(|leader| group.address_of(leader));
    let (host, port) = address.map(|address| host_and_port(&address)).unwrap_or_default();
    Some(Followed { is_up: port != 0, host, port })
}

/// Returns the followers that this member reaches, if it leads.
pub(crate) fn followers(cx: &Context<'_>) -> Vec<Node> {
    let Some(group) = cx.shared.group.as_ref().filter(|group| group.leads()) else { return Vec::new() };
    View::of(group).members.into_iter().filter(|node| !node.is_me && node.is_reachable).collect()
}

/// What a follower follows.
pub(crate) struct Followed {
    /// Whether a leader is known.
    pub(crate) is_up: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
}
