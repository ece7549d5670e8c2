//! Sends messages to the subscribers of channels, here and on other members of a group.

use crate::durability::log_state::CommitLost;
use crate::events::publication::Kind;
use crate::group::{Group, Published, Term};
use crate::net::outbox::Until;
use crate::shared::Shared;
use tidemark_engine::script::Publication;

/// Sends the messages that a script has published. The log that loses the script's record loses them too.
#[inline]
pub(crate) fn send_published(published: &[Publication], shared: &Shared) {
    for Publication { is_shard, channel, message } in published {
        let kind = if *is_shard { Kind::Shard } else { Kind::Channel };
        let _sent = send(shared, kind, channel, message);
    }
}

/// Sends a message to the subscribers of a channel. Returns how many times it was sent here.
///
/// # Errors
/// The log has failed, and has lost what the message may show.
pub(crate) fn send(shared: &Shared, kind: Kind, channel: &[u8], message: &[u8]) -> Result<usize, CommitLost> {
    // Read before the log: a term that has ended since says that what was read may be taken back.
    let term = shared.group.as_ref().map(Group::term);
    // The message may depend on a change that is not committed yet, such as the publisher's last
    // one. A follower's memory has only what is committed.
    let after = if shared.settings.waits_for_commit() && term != Some(Term(0)) {
        shared.not_yet_committed()?
    } else {
        None
    };
    let until = after.map(Until::Committed);
    let sent = shared.pubsub.publish(kind, channel, message, until, None, &shared.inboxes);
    if let Some(group) = &shared.group {
        group.consensus().publish(Published {
            kind,
            channel: channel.into(),
            payload: message.into(),
            after: term.zip(after),
        });
    }
    Ok(sent)
}
