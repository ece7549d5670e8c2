//! `SENTINEL`: the group as Redis Sentinel watches one. Every member answers as a sentinel, at the port
//! of all clients.
//!
//! Of a sentinel's fields, those that would be made up are left out.
//!
//! redis-rs wants `ROLE` to be that of a sentinel where it asks `SENTINEL`, and that of a master at the address that
//! it gets: so a member may have another port, `cluster-sentinel-port`, at which `ROLE` says so.

use crate::command::cluster_command::{Node, View, host_and_port};
use crate::context::Context;
use crate::events::publication::Kind;
use crate::group::{Group, NodeId, Refusal, wire_name};
use crate::session::Session;
use crate::shared::Shared;
use tidemark_engine::{CommandError, Reply};

/// Channel of the message that another member leads.
const SWITCH: &[u8] = b"+switch-master";

fn group<'a>(cx: &Context<'a>) -> Result<&'a Group, CommandError> {
    cx.shared.group.as_ref().ok_or_else(|| {
        CommandError::text(
            "ERR This server is no member of a cluster, and watches no other: ask it for data directly",
        )
    })
}

/// Returns the group if it has the name that the command names.
fn named<'a>(args: &[&[u8]], cx: &Context<'a>) -> Result<&'a Group, CommandError> {
    let group = group(cx)?;
    let is_known = args.get(2) == Some(&cx.config.cluster_name.as_bytes());
    let unknown = || CommandError::text("ERR No such master with that name");
    is_known.then_some(group).ok_or_else(unknown)
}

/// `SENTINEL MYID`
pub(crate) fn my_id(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    session.outbox.reply.bulk(wire_name(group(cx)?.me()).as_bytes());
    Ok(())
}

/// `SENTINEL GET-MASTER-ADDR-BY-NAME name`: while no leader is known, the last one that was, unless that
/// is this member.
pub(crate) fn leader_address(
    session: &mut Session,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    group(cx)?;
    let group = named(args, cx).ok();
    let address = group.and_then(|group| {
        let leader = group.last_leader().filter(|leader| is_offered(group, *leader))?;
        group.address_of(leader)
    });
    let reply = &mut session.outbox.reply;
    match address {
        None => reply.null_array(),
        Some(address) => {
            let (host, port) = host_and_port(&address);
            reply.array(2);
            reply.bulk(host.as_bytes());
            reply.bulk_integer(port.into());
        }
    }
    Ok(())
}

/// `SENTINEL MASTER name`
pub(crate) fn leader(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let watched = Watched::of(named(args, cx)?);
    let leader = watched.leader().ok_or_else(|| CommandError::text("ERR No leader has been known yet"))?;
    write(&mut session.outbox.reply, &watched.fields_of_leader(leader, cx));
    Ok(())
}

/// `SENTINEL MASTERS`
pub(crate) fn leaders(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    let watched = Watched::of(group(cx)?);
    let reply = &mut session.outbox.reply;
    let leader = watched.leader();
    reply.array(leader.iter().count());
    if let Some(leader) = leader {
        write(reply, &watched.fields_of_leader(leader, cx));
    }
    Ok(())
}

/// `SENTINEL REPLICAS name`
pub(crate) fn followers(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let watched = Watched::of(named(args, cx)?);
    let reply = &mut session.outbox.reply;
    let followers: Vec<&Node> = watched.view.members.iter().filter(|node| !node.is_leader).collect();
    reply.array(followers.len());
    for node in followers {
        let mut fields = about(node, &format!("{}:{}", node.host, node.port), "slave", node.is_reachable);
        fields.push(("role-reported", "slave".to_owned()));
        if let Some(leader) = watched.leader() {
            fields.push(("master-host", leader.host.clone()));
            fields.push(("master-port", leader.port.to_string()));
            let is_linked = watched.is_led && node.is_reachable;
            fields.push(("master-link-status", if is_linked { "ok" } else { "err" }.to_owned()));
        }
        write(reply, &fields);
    }
    Ok(())
}

/// `SENTINEL SENTINELS name`: the other members.
pub(crate) fn sentinels(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let view = View::of(named(args, cx)?);
    let reply = &mut session.outbox.reply;
    let others: Vec<&Node> = view.members.iter().filter(|node| !node.is_me).collect();
    reply.array(others.len());
    for node in others {
        write(reply, &about(node, &node.id, "sentinel", node.is_reachable));
    }
    Ok(())
}

/// `SENTINEL CKQUORUM name`
pub(crate) fn check_quorum(
    session: &mut Session,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let watched = Watched::of(named(args, cx)?);
    let usable = watched.view.members.iter().filter(|node| node.is_reachable).count();
    if usable < watched.quorum() {
        return Err(CommandError::Text(
            format!(
                "NOQUORUM {usable} usable Sentinels. Not enough available Sentinels to reach the majority and \
                 authorize a failover"
            )
            .into(),
        ));
    }
    session
        .outbox
        .reply
        .simple(&format!("OK {usable} usable Sentinels. Quorum and failover authorization can be reached"));
    Ok(())
}

/// Whether a client has connected to the port at which this member is a sentinel; `local_address` is the
/// connection's end here.
pub(crate) fn is_asked_as_sentinel(local_address: &str, cx: &Context<'_>) -> bool {
    let port = cx.config.cluster_sentinel_port;
    let asked = local_address.rsplit_once(':').and_then(|(_, asked)| asked.parse::<u16>().ok());
    port != 0 && asked == Some(port) && cx.shared.group.is_some()
}

/// Publishes that another member leads, if this member has noticed that since the last call.
pub(crate) fn announce_leader(shared: &Shared) {
    let Some(group) = &shared.group else { return };
    let Some((before, leader)) = group.look_for_leader() else { return };
    let Some(new) = group.address_of(leader) else { return };
    // A member that was removed has no address any more; clients look at the new one.
    let old = group.address_of(before).unwrap_or_else(|| new.clone());
    let ((old_host, old_port), (host, port)) = (host_and_port(&old), host_and_port(&new));
    let name = &shared.settings.current().cluster_name;
    let message = format!("{name} {old_host} {old_port} {host} {port}");
    shared.pubsub.publish(Kind::Channel, SWITCH, message.as_bytes(), None, None, &shared.inboxes);
}

/// Whether clients may be sent to `leader`. Not to this member while no quorum answers it: the others may
/// have another leader, and clients ask them then.
fn is_offered(group: &Group, leader: NodeId) -> bool {
    leader != group.me() || group.consensus().admit() != Err(Refusal::NoLeader)
}

/// The group at one moment, with the last leader that was known.
struct Watched {
    view: View,
    /// Whether the leader is one of this moment.
    is_led: bool,
}

impl Watched {
    fn of(group: &Group) -> Watched {
        Watched {
            view: View::with_leader(group, group.last_leader()),
            is_led: group.leader().is_some_and(|leader| is_offered(group, leader)),
        }
    }

    fn leader(&self) -> Option<&Node> {
        self.view.leader.map(|leader| &self.view.members[leader])
    }

    /// Members that make a majority.
    fn quorum(&self) -> usize {
        self.view.members.len() / 2 + 1
    }

    fn fields_of_leader(&self, leader: &Node, cx: &Context<'_>) -> Vec<(&'static str, String)> {
        let mut fields = about(leader, &cx.config.cluster_name, "master", self.is_led);
        let others = (self.view.members.len() - 1).to_string();
        fields.extend([
            ("role-reported", "master".to_owned()),
            ("down-after-milliseconds", cx.config.cluster_timing.election_max.as_millis().to_string()),
            ("config-epoch", self.view.epoch.to_string()),
            ("num-slaves", others.clone()),
            ("num-other-sentinels", others),
            ("quorum", self.quorum().to_string()),
        ]);
        fields
    }
}

/// Fields that all descriptions have.
fn about(node: &Node, name: &str, role: &'static str, is_up: bool) -> Vec<(&'static str, String)> {
    let flags = match (role, is_up) {
        (role, true) => role.to_owned(),
        ("master", false) => "master,s_down,o_down".to_owned(),
        (role, false) => format!("{role},s_down,disconnected"),
    };
    vec![
        ("name", name.to_owned()),
        ("ip", node.host.clone()),
        ("port", node.port.to_string()),
        ("runid", node.id.clone()),
        ("flags", flags),
    ]
}

/// Writes fields as a map, all values as text.
fn write(reply: &mut Reply, fields: &[(&'static str, String)]) {
    reply.map(fields.len());
    for (name, value) in fields {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
}
