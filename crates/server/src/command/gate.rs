//! Whether a command may run on this member, and where its client should send it otherwise.
//!
//! Whatever changes data or shows it runs where the leader is. Of commands that only read, a
//! follower runs those without keys, as in Redis Cluster, and those of clients that have sent
//! `READONLY`.

use crate::command::durable_command;
use crate::command::once_command::{self, Numbered};
use crate::command::rows::{ConnectionCommand, connection_command_of};
use crate::group::{Group, NodeId, Refusal};
use crate::session::{Session, Transaction};
use tidemark_engine::command::flags;
use tidemark_engine::keyspace::slot;
use tidemark_engine::{Command, CommandError, PAUSE_ERROR, Run};

/// What a command needs of the member that runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Nothing: it concerns the connection or the process.
    Nothing,
    /// The data, to read it. The slot is that of its first key.
    Data(Option<usize>),
    /// The lead, to change data.
    Lead(Option<usize>),
}

impl Need {
    /// What two commands together need.
    fn and(self, other: Need) -> Need {
        match (self, other) {
            (Need::Nothing, other) | (other, Need::Nothing) => other,
            (Need::Lead(slot), other) | (other, Need::Lead(slot)) => Need::Lead(slot.or(other.slot())),
            (Need::Data(slot), Need::Data(other)) => Need::Data(slot.or(other)),
        }
    }

    fn slot(self) -> Option<usize> {
        match self {
            Need::Nothing => None,
            Need::Data(slot) | Need::Lead(slot) => slot,
        }
    }
}

/// Returns the error for a command that may not run here now.
#[cold]
pub(crate) fn objection(
    group: &Group,
    session: &Session,
    command: &Command,
    args: &[&[u8]],
) -> Option<CommandError> {
    let queued = session.transaction.as_ref();
    objection_to(group, need(command, args, queued), session.reads_followers, command.is(flags::WRITE))
}

/// Like [`objection`], for commands of a client without a session.
pub(crate) fn objection_to_all<'a>(
    group: &Group,
    mut commands: impl Iterator<Item = (&'a Command, &'a [&'a [u8]])>,
) -> Option<CommandError> {
    let needs = commands.by_ref().map(|(command, args)| need(command, args, None));
    objection_to(group, needs.fold(Need::Nothing, Need::and), false, false)
}

/// Returns the error for a subscription over HTTP, which only the leader serves.
pub(crate) fn objection_to_watching(group: &Group) -> Option<CommandError> {
    objection_to(group, Need::Lead(None), false, false)
}

fn objection_to(
    group: &Group,
    need: Need,
    reads_followers: bool,
    is_redis_write: bool,
) -> Option<CommandError> {
    if need == Need::Nothing {
        return None;
    }
    let refusal = group.consensus().admit().err()?;
    let is_read_here = match need {
        Need::Data(slot) => slot.is_none() || reads_followers,
        Need::Nothing | Need::Lead(_) => false,
    };
    if is_read_here && !group.leads() {
        // As Redis says it with `replica-serve-stale-data no`.
        return (!group.consensus().is_fresh()).then(|| {
            CommandError::text(
                "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
            )
        });
    }
    Some(match refusal {
        // Cluster clients send a change without a key to every leader. At this error they ask again which
        // nodes lead.
        Refusal::Moved(leader)
            if need.slot().is_none() && is_redis_write && group.address_of(leader).is_some() =>
        {
            CommandError::text("READONLY You can't write against a read only replica.")
        }
        Refusal::Moved(leader) => moved(group, Some(leader), need.slot()),
        Refusal::NoLeader => moved(group, None, need.slot()),
        Refusal::Changing => CommandError::text(PAUSE_ERROR),
    })
}

/// Returns the error that sends a client to the leader, if one is known.
pub(crate) fn moved(group: &Group, leader: Option<NodeId>, slot: Option<usize>) -> CommandError {
    match leader.and_then(|leader| group.address_of(leader)) {
        Some(address) => CommandError::Text(format!("MOVED {} {address}", slot.unwrap_or(0)).into()),
        None => CommandError::text("CLUSTERDOWN The cluster is down: no leader that most members answer"),
    }
}

/// Whether an error of this module says that another member leads.
pub(crate) fn names_another(error: &CommandError) -> bool {
    matches!(error, CommandError::Text(text) if text.starts_with("MOVED ") || text.starts_with("READONLY "))
}

/// Returns the address of the leader that an error of this module names.
pub(crate) fn leader_in(error: &str) -> Option<&str> {
    error.strip_prefix("MOVED ")?.split(' ').nth(1)
}

/// What a command needs; `queued` is the transaction that `EXEC` runs.
fn need(command: &Command, args: &[&[u8]], queued: Option<&Transaction>) -> Need {
    use ConnectionCommand as C;
    let first_slot = || command.keys.keys(args).next().map(slot);
    let Some(which) = connection_command_of(command) else {
        return match command.run {
            Run::Container => Need::Nothing,
            _ if command.is(flags::WRITE) => Need::Lead(first_slot()),
            _ => Need::Data(first_slot()),
        };
    };
    match which {
        C::Durable => match durable_command::unwrap(args) {
            Ok((command, args)) => need(command, args, None),
            // It is refused for another reason.
            Err(_) => Need::Nothing,
        },
        C::Once => match once_command::unwrap(args) {
            Ok((_, Numbered::Command { command, args, .. })) => need(command, args, None),
            Ok((_, Numbered::Transaction)) => Need::Lead(need_of_queued(queued).slot()),
            Err(_) => Need::Nothing,
        },
        C::Exec => need_of_queued(queued),
        // Watched reads, names and positions are records of the log, and a key that has moved is deleted.
        C::WatchRead | C::Watch | C::Migrate => Need::Lead(first_slot()),
        C::EmitAck => Need::Lead(args.get(1).map(|name| slot(name))),
        C::EmitReconnect | C::Changes | C::Watches | C::CounterTop => Need::Lead(None),
        C::Unwatch if args.len() > 1 => Need::Lead(None),
        C::DebugObject => Need::Data(args.get(2).map(|key| slot(key))),
        _ => Need::Nothing,
    }
}

/// What the commands of a transaction together need.
fn need_of_queued(queued: Option<&Transaction>) -> Need {
    let commands = queued.into_iter().flat_map(Transaction::commands);
    let needs = commands
        .map(|(command, args)| need(command, &args.iter().map(|arg| &**arg).collect::<Vec<&[u8]>>(), None));
    needs.fold(Need::Nothing, Need::and)
}
