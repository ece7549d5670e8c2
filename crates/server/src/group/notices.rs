//! Lines for the operator that a member writes while the consensus goes on.

use crate::observe::operator_line::{RepeatedLines, say};
use std::io;
use std::sync::mpsc::SyncSender;
use tidemark_cluster::NodeId;
use tidemark_cluster::net::NetEvents;

/// Lines about connections that wait to be written.
const NOTICES_MAX: usize = 16;

/// What the operator is told.
pub(super) enum Notice {
    /// Of what fails again and again, as connections do: rarely.
    Repeated {
        /// What it is about.
        kind: String,
        line: String,
    },
    /// Of the member.
    Member(&'static str),
}

/// Tells the operator what fails, from a thread of its own: standard error may block, and the consensus must
/// not wait for it.
pub(super) struct Events {
    notices: SyncSender<Notice>,
}

impl Events {
    pub(super) fn start(mut lines: RepeatedLines) -> io::Result<Events> {
        let (notices, written) = std::sync::mpsc::sync_channel::<Notice>(NOTICES_MAX);
        std::thread::Builder::new().name("tidemark-notices".to_owned()).spawn(move || {
            // Until the connections are closed.
            written.iter().for_each(|notice| match notice {
                Notice::Repeated { kind, line } => lines.write(&kind, &line),
                Notice::Member(notice) => say(notice),
            });
        })?;
        Ok(Events { notices })
    }

    /// Has a line written. Those beyond the queue are left out.
    pub(super) fn tell(&self, notice: Notice) {
        let _ = self.notices.try_send(notice);
    }
}

impl NetEvents for Events {
    fn heartbeats_closed(&self, _peer: NodeId) {}

    fn connection_failed(&self, peer: Option<NodeId>, error: &str) {
        let line = match peer {
            Some(peer) => format!("warning: the connection with member {peer}: {error}"),
            None => format!("warning: a connection to the port for other members: {error}"),
        };
        self.tell(Notice::Repeated { kind: without_ports(&line), line });
    }
}

/// Returns a line about a connection without the ports in it: each connection of a client has another one.
fn without_ports(line: &str) -> String {
    let mut kind = String::with_capacity(line.len());
    let mut is_port = false;
    for character in line.chars() {
        is_port = character == ':' || (is_port && character.is_ascii_digit());
        if !is_port || character == ':' {
            kind.push(character);
        }
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_about_the_connections_of_one_host_are_of_one_kind() {
        let line = |port: u16, node: u64| {
            without_ports(&format!("warning: a connection from 10.0.0.9:{port}: node {node} is no member"))
        };
        assert_eq!(line(50_000, 4), line(50_002, 4));
        assert_ne!(line(50_000, 4), line(50_000, 5));
        assert_eq!(without_ports("a: 12:34 56"), "a: 12: 56");
    }
}
