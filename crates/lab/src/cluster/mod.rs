//! A cluster of three members of Tidemark on this machine, to be measured and harmed.

mod network;
mod timing;

pub(crate) use network::Network;
pub use timing::{Timing, TimingError};

use crate::client::{Client, ClientError};
use crate::interrupt::Interrupt;
use crate::server_process::{Launch, ServerProcess, free_port, lasting_port};
use crate::target::Target;
use anyhow::Context;
use rustix::process::Signal;
use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Members of a cluster.
pub(crate) const MEMBERS: usize = 3;

/// How a cluster is started.
#[derive(Clone, Debug)]
pub(crate) struct ClusterSettings {
    pub(crate) binary: PathBuf,
    /// Where the members' data goes; it is created.
    pub(crate) directory: PathBuf,
    pub(crate) timing: Timing,
    /// First port for clients and for members, or 0 for free ones.
    pub(crate) base_client_port: u16,
    pub(crate) base_peer_port: u16,
    /// Further flags of each member.
    pub(crate) flags: Vec<String>,
    /// Longest wait for a leader.
    pub(crate) patience: Duration,
}

/// Three members; they end with this value.
pub(crate) struct Cluster {
    members: Vec<ServerProcess>,
    targets: Vec<Target>,
    directory: PathBuf,
    patience: Duration,
    interrupt: Interrupt,
}

/// Between two looks at a group that changes.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);
/// Longest wait for one answer while several members are asked in turns.
const ANSWER_PATIENCE: Duration = Duration::from_millis(250);
/// Longest wait of a read that must succeed.
const READ_PATIENCE: Duration = Duration::from_secs(10);
/// Ports of members that have an address of their own.
const CLIENT_PORT: u16 = 7379;
const PEER_PORT: u16 = 8379;

impl Cluster {
    /// Founds a cluster, and waits until it takes changes. `network`, if given, is one that the
    /// calling thread is in.
    pub(crate) fn found(
        settings: &ClusterSettings,
        network: Option<&Network>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Self> {
        let (peers, clients) = match network {
            Some(_) => (
                (0..MEMBERS).map(|member| (Network::peer_host(member), PEER_PORT)).collect(),
                (0..MEMBERS).map(|member| (Network::client_host(member), CLIENT_PORT)).collect(),
            ),
            None => local_addresses(settings)?,
        };
        let list: Vec<String> = (1..)
            .zip(peers.iter().zip(&clients))
            .map(|(number, ((peer, peer_port), (client, client_port)))| {
                format!("{number}={peer}:{peer_port}/{client}:{client_port}")
            })
            .collect();
        let list = list.join(",");
        let mut members = Vec::new();
        for (member, (host, port)) in clients.iter().enumerate() {
            let directory = settings.directory.join(format!("member{}", member + 1));
            members.push(ServerProcess::launch(Launch {
                binary: settings.binary.clone(),
                arguments: arguments(settings, member, &list, (host, *port), &directory),
                directory,
                target: Target::new(host, *port),
                namespace: network.map(|network| network.namespace(member)),
            })?);
        }
        let mut cluster = Cluster {
            targets: members.iter().map(ServerProcess::target).collect(),
            members,
            directory: settings.directory.clone(),
            patience: settings.patience,
            interrupt: interrupt.clone(),
        };
        for member in &mut cluster.members {
            member.await_answer(settings.patience)?;
        }
        cluster.write("founded", "1")?;
        Ok(cluster)
    }

    /// Returns where clients reach the members.
    pub(crate) fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// Returns the addresses of all members, as a report names them.
    pub(crate) fn address(&self) -> String {
        self.targets.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }

    /// Ends a member by `SIGKILL`.
    pub(crate) fn kill(&mut self, member: usize) -> anyhow::Result<()> {
        self.members[member].kill().context("cannot kill the leader")
    }

    /// Starts a killed member again, without waiting for it.
    pub(crate) fn restart(&mut self, member: usize) -> anyhow::Result<()> {
        self.members[member].relaunch()
    }

    /// Sends a member a signal.
    pub(crate) fn signal(&self, member: usize, signal: Signal) -> anyhow::Result<()> {
        self.members[member].signal(signal).with_context(|| format!("cannot send {signal:?} to a member"))
    }

    /// Writes a key at the leader, which is found by that. Repeats it until it is acknowledged.
    /// Returns the leader.
    pub(crate) fn write(&self, key: &str, value: &str) -> anyhow::Result<usize> {
        let write = |target: &Target| {
            let mut client = Client::connect(target, ANSWER_PATIENCE)?;
            Ok::<_, ClientError>(client.call(&["SET", key, value])?.as_bytes() == Some(b"OK"))
        };
        let is_done = |target: &Target| write(target).unwrap_or(false);
        self.until("no member acknowledged a write", || self.targets.iter().position(is_done))
    }

    /// Waits until a member has a value that was acknowledged.
    pub(crate) fn await_value(&mut self, member: usize, key: &str, value: &str) -> anyhow::Result<()> {
        let target = self.targets[member].clone();
        let has_value = || {
            let mut client = reader(&target, ANSWER_PATIENCE).ok()?;
            let reply = client.call(&["GET", key]).ok()?;
            (reply.as_error().is_none() && reply.as_bytes() == Some(value.as_bytes())).then_some(())
        };
        self.members[member].check()?;
        self.until("a member did not catch up", has_value)?;
        self.members[member].check()
    }

    /// Returns the number of the term that `leader` leads.
    pub(crate) fn term(&self, leader: usize) -> anyhow::Result<u64> {
        let term = || {
            let mut client = Client::connect(&self.targets[leader], READ_PATIENCE).ok()?;
            let reply = client.call(&["CLUSTER", "INFO"]).ok()?;
            term_of(&String::from_utf8_lossy(reply.as_bytes()?))
        };
        self.until("the leader did not name its term", term)
    }

    /// Opens a connection that reads from a member, whether it leads or follows.
    pub(crate) fn reader(&self, member: usize) -> Result<Client, ClientError> {
        reader(&self.targets[member], READ_PATIENCE)
    }

    /// Asks until there is an answer.
    pub(crate) fn until<T>(&self, what: &str, mut ask: impl FnMut() -> Option<T>) -> anyhow::Result<T> {
        let deadline = Instant::now() + self.patience;
        loop {
            if let Some(answer) = ask() {
                return Ok(answer);
            }
            anyhow::ensure!(!self.interrupt.is_asked_for(), "interrupted");
            let (patience, directory) = (self.patience, self.directory.display());
            anyhow::ensure!(
                Instant::now() < deadline,
                "{what} within {patience:?} (--max-leader-wait); see server.log of the members in {directory}"
            );
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

/// Returns addresses of this machine for members and for clients.
#[expect(clippy::type_complexity, reason = "two lists of hosts and ports")]
fn local_addresses(settings: &ClusterSettings) -> anyhow::Result<(Vec<(String, u16)>, Vec<(String, u16)>)> {
    let address = |base: u16, member: usize| {
        let port = if base == 0 { lasting_port()? } else { free_port(base.saturating_add(member as u16))? };
        Ok::<_, anyhow::Error>((Ipv4Addr::LOCALHOST.to_string(), port))
    };
    let addresses = |base| (0..MEMBERS).map(|member| address(base, member)).collect::<Result<_, _>>();
    Ok((addresses(settings.base_peer_port)?, addresses(settings.base_client_port)?))
}

fn arguments(
    settings: &ClusterSettings,
    member: usize,
    list: &str,
    (host, port): (&str, u16),
    directory: &Path,
) -> Vec<OsString> {
    let Timing { heartbeat_ms, election_min_ms, election_max_ms } = settings.timing;
    let mut arguments: Vec<OsString> = ["serve", "--dir"].map(OsString::from).into();
    arguments.push(directory.join("data").into());
    let named = [
        ("--bind", host.to_owned()),
        ("--port", port.to_string()),
        ("--protected-mode", "no".to_owned()),
        ("--cluster-node", (member + 1).to_string()),
        ("--cluster-members", list.to_owned()),
        ("--cluster-heartbeat-ms", heartbeat_ms.to_string()),
        ("--cluster-election-min-ms", election_min_ms.to_string()),
        ("--cluster-election-max-ms", election_max_ms.to_string()),
    ];
    arguments.extend(named.into_iter().flat_map(|(name, value)| [name.into(), value.into()]));
    arguments.extend(settings.flags.iter().map(OsString::from));
    arguments
}

fn reader(target: &Target, patience: Duration) -> Result<Client, ClientError> {
    let mut client = Client::connect(target, patience)?;
    client.call(&["READONLY"])?;
    Ok(client)
}

/// Returns the term in the text of `CLUSTER INFO`; none at a member that does not lead.
fn term_of(info: &str) -> Option<u64> {
    let term = info.lines().find_map(|line| line.strip_prefix("cluster_current_epoch:"))?;
    term.trim().parse().ok().filter(|term| *term > 0)
}

#[cfg(test)]
mod tests {
    use super::term_of;

    #[test]
    fn a_follower_names_no_term() {
        assert_eq!(term_of("cluster_state:ok\r\ncluster_current_epoch:7\r\n"), Some(7));
        assert_eq!(term_of("cluster_state:ok\r\ncluster_current_epoch:0\r\n"), None);
        assert_eq!(term_of("ERR unknown"), None);
    }
}
