//! `CLUSTER STATUS` and `REPORT`, and the subcommands that change the group: `TRANSFER`, `FAILOVER`, `JOIN`,
//! `FORGET` and `RECOVER`.
//!
//! The leader makes changes; another member answers `MOVED` with its address, as to a command with a key. A
//! change goes on behind its answer: `CLUSTER STATUS` says how it ended.

use crate::command::{cluster_command, gate};
use crate::context::Context;
use crate::group::{Change, Group, MemberView, NodeId, Operations, View, wire_name};
use crate::session::Session;
use std::sync::Arc;
use tidemark_cluster::{Member, RandomId};
use tidemark_engine::command::parse;
use tidemark_engine::{CommandError, Reply};
use tidemark_log::Health;

/// Digits of a member's name in the lists of Redis Cluster.
const NAME_DIGITS: usize = 40;

fn operations<'a>(cx: &Context<'a>) -> Result<(&'a Group, &'a Arc<Operations>), CommandError> {
    let group = cluster_command::group(cx)?;
    Ok((group, group.operations().ok_or_else(cluster_command::disabled)?))
}

/// Reads the number of a member, or its name in the lists of Redis Cluster.
fn node_of(text: &[u8]) -> Result<NodeId, CommandError> {
    let node = std::str::from_utf8(text).ok().and_then(|text| {
        if text.len() == NAME_DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return u128::from_str_radix(text, 16).ok().and_then(|number| u64::try_from(number).ok());
        }
        text.parse().ok()
    });
    match node {
        Some(node) if node > 0 => Ok(NodeId(node)),
        _ => {
            let text = String::from_utf8_lossy(text);
            Err(CommandError::Text(
                format!("ERR '{text}' is no member: name one by its number, or by its name in CLUSTER NODES")
                    .into(),
            ))
        }
    }
}

fn begin(session: &mut Session, change: Change, cx: &Context<'_>) -> Result<(), CommandError> {
    let (group, operations) = operations(cx)?;
    if !group.leads() {
        return Err(gate::moved(group, group.leader(), None));
    }
    let begun = operations.begin(change, session.client.address.clone());
    begun.map_err(|error| CommandError::Text(error.into()))?;
    session.outbox.reply.ok();
    Ok(())
}

/// `CLUSTER TRANSFER node`
pub(crate) fn transfer(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let [_, _, node] = args else { return Err(CommandError::Syntax) };
    begin(session, Change::Transfer(node_of(node)?), cx)
}

/// `CLUSTER FORGET node`
pub(crate) fn forget(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let [_, _, node] = args else { return Err(CommandError::Syntax) };
    begin(session, Change::Remove(node_of(node)?), cx)
}

/// `CLUSTER FAILOVER`: asks the leader to give this member the lead. Nothing is forced: most members decide who
/// leads when the leader is gone.
pub(crate) fn failover(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    match args {
        [_, _] => {}
        [_, _, option] if parse::is(option, "FORCE") || parse::is(option, "TAKEOVER") => {
            return Err(CommandError::text(
                "ERR the lead is never forced: without a leader the members elect one by themselves",
            ));
        }
        _ => return Err(CommandError::Syntax),
    }
    let (group, operations) = operations(cx)?;
    if group.leads() {
        return Err(CommandError::text("ERR You should send CLUSTER FAILOVER to a replica"));
    }
    let Some(leader) = group.leader().and_then(|leader| group.address_of(leader)) else {
        return Err(gate::moved(group, None, None));
    };
    let asked = operations.ask_for_lead(leader, cx.config.requirepass.clone());
    asked.map_err(|error| CommandError::Text(error.into()))?;
    session.outbox.reply.ok();
    Ok(())
}

/// `CLUSTER JOIN node peers clients directory cluster`
pub(crate) fn join(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let [_, _, node, peers, clients, directory, cluster] = args else { return Err(CommandError::Syntax) };
    let (_, operations) = operations(cx)?;
    let named = id_of(cluster)?;
    let view = operations.view();
    if named != view.cluster {
        return Err(CommandError::Text(
            format!(
                "ERR the new member means the cluster {}\u{2026}, and this is another one; check the addresses that \
                 it was given",
                named.prefix()
            )
            .into(),
        ));
    }
    let address_of = |text: &[u8]| match std::str::from_utf8(text) {
        Ok(address) if crate::config::is_address(address) => Ok(address.to_owned()),
        _ => Err(CommandError::text("ERR an address is HOST:PORT")),
    };
    let member = Member {
        id: node_of(node)?,
        peer_address: address_of(peers)?,
        client_address: address_of(clients)?,
        directory: Some(id_of(directory)?),
        is_voter: true,
    };
    begin(session, Change::Join(member), cx)
}

/// `CLUSTER RECOVER VOTE | ALONE`
pub(crate) fn recover(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let [_, _, how] = args else { return Err(CommandError::Syntax) };
    let (_, operations) = operations(cx)?;
    let client = session.client.address.clone();
    let recovered = if parse::is(how, "VOTE") {
        operations.accept_loss(&client)
    } else if parse::is(how, "ALONE") {
        operations.begin_alone(client)
    } else {
        return Err(CommandError::Syntax);
    };
    recovered.map_err(|error| CommandError::Text(error.into()))?;
    session.outbox.reply.ok();
    Ok(())
}

/// `CLUSTER REPORT node directory problem`
pub(crate) fn report(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let [_, _, node, directory, problem] = args else { return Err(CommandError::Syntax) };
    let (_, operations) = operations(cx)?;
    let problem = String::from_utf8_lossy(problem);
    let reported = operations.report(node_of(node)?, id_of(directory)?, &problem);
    reported.map_err(|error| CommandError::Text(error.into()))?;
    session.outbox.reply.ok();
    Ok(())
}

/// Reads the id of a cluster or of a directory.
fn id_of(text: &[u8]) -> Result<RandomId, CommandError> {
    let text = std::str::from_utf8(text).map_err(|_| CommandError::Syntax)?;
    text.parse().map_err(|error| CommandError::Text(format!("ERR {error}").into()))
}

/// `CLUSTER STATUS`
pub(crate) fn status(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    let (group, operations) = operations(cx)?;
    let view = operations.view();
    let log = cx.shared.engine.log();
    let problem = match log.health() {
        Health::Ok => None,
        Health::Full(reason) => Some(format!("the log cannot grow: {reason}; {}", reason.remedy())),
        Health::Stalled(stall) => Some(format!("the log waits for the disk: {stall}")),
        Health::Failed(reason) => Some(format!("the log has failed: {reason}")),
    };
    let refused = view.refused_snapshot.as_ref();
    let refused = refused.map(|reason| format!("it does not take the snapshot that it needs: {reason}"));
    let is_loaded = cx.shared.engine.is_loaded();
    let applied = cx.shared.engine.applied();
    let reply = &mut session.outbox.reply;
    reply.map(22);
    text(reply, "cluster", &view.cluster.to_string());
    count(reply, "node", view.me.0);
    text(reply, "version", &view.build.version);
    count(reply, "level", view.build.level.0.into());
    count(reply, "cluster_level", view.level.0.into());
    text(reply, "role", role(&view, is_loaded));
    optional_count(reply, "leader", view.leader.map(|leader| leader.0));
    count(reply, "term", view.term.0);
    count(reply, "last_entry", view.last);
    count(reply, "last_entry_term", view.last_term.0);
    count(reply, "committed_entry", view.committed);
    count(reply, "committed_lsn", log.committed().0);
    count(reply, "applied_lsn", applied.0);
    optional_count(reply, "quorum_age_ms", view.quorum_age.map(|age| age.as_millis() as u64));
    let is_fresh = group.leads() || group.consensus().is_fresh();
    count(reply, "fresh", u64::from(is_fresh));
    count(reply, "suspect", u64::from(view.is_suspect));
    let problem = view.failure.as_deref().or(problem.as_deref()).or(refused.as_deref());
    optional_text(reply, "problem", problem);
    optional_text(reply, "change", view.change.as_deref());
    optional_text(reply, "last_change", view.last_change.as_ref().map(|(change, _)| change.as_str()));
    let error = view.last_change.as_ref().and_then(|(_, error)| error.as_deref());
    optional_text(reply, "last_change_error", error);
    count(reply, "members_committed", u64::from(view.are_members_committed));
    reply.bulk(b"members");
    reply.array(view.members.len());
    view.members.iter().for_each(|member| show_member(reply, member));
    Ok(())
}

/// What a member is, in a word.
fn role(view: &View, is_loaded: bool) -> &'static str {
    if view.leads {
        "leader"
    } else if view.failure.is_some() {
        "failed"
    } else if !is_loaded {
        "loading"
    } else if view.members.iter().all(|member| member.member.id != view.me) {
        "stranger"
    } else if view.members.iter().any(|member| member.member.id == view.me && !member.member.is_voter) {
        "learner"
    } else {
        "follower"
    }
}

fn show_member(reply: &mut Reply, view: &MemberView) {
    let Member { id, peer_address, client_address, directory, is_voter } = &view.member;
    reply.map(14);
    count(reply, "node", id.0);
    text(reply, "name", &wire_name(*id));
    text(reply, "peers", peer_address);
    text(reply, "clients", client_address);
    optional_text(reply, "directory", directory.map(|directory| directory.to_string()).as_deref());
    count(reply, "votes", u64::from(*is_voter));
    count(reply, "reachable", u64::from(view.is_reachable));
    text(reply, "error", &view.error);
    optional_count(reply, "entry", view.has);
    optional_text(reply, "snapshot_error", view.unsent_snapshot.as_deref());
    optional_text(reply, "report", view.report.as_deref());
    let build = view.build.as_ref();
    optional_text(reply, "version", build.map(|(build, _)| build.version.as_str()));
    optional_count(reply, "level", build.map(|(build, _)| build.level.0.into()));
    optional_count(reply, "protocol", build.and_then(|(_, protocol)| protocol.map(u64::from)));
}

fn text(reply: &mut Reply, name: &str, value: &str) {
    reply.bulk(name.as_bytes());
    reply.bulk(value.as_bytes());
}

fn count(reply: &mut Reply, name: &str, value: u64) {
    reply.bulk(name.as_bytes());
    reply.integer(i64::try_from(value).unwrap_or(i64::MAX));
}

fn optional_text(reply: &mut Reply, name: &str, value: Option<&str>) {
    reply.bulk(name.as_bytes());
    match value {
        Some(value) => reply.bulk(value.as_bytes()),
        None => reply.null(),
    }
}

fn optional_count(reply: &mut Reply, name: &str, value: Option<u64>) {
    match value {
        Some(value) => count(reply, name, value),
        None => optional_text(reply, name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_named_by_its_number_or_by_its_name() {
        assert_eq!(node_of(b"12"), Ok(NodeId(12)));
        assert_eq!(node_of(wire_name(NodeId(u64::MAX)).as_bytes()), Ok(NodeId(u64::MAX)));
        for text in ["", "0", "-1", "x", "1.5", &"f".repeat(40), &"0".repeat(40), &"0".repeat(39)] {
            assert!(node_of(text.as_bytes()).is_err(), "{text}");
        }
        assert!(node_of(b"\xff").is_err());
    }
}
