//! What a member asks the other members' servers, as a client of theirs.

use super::cluster_status::ClusterStatus;
use super::seat::Seat;
use crate::config::Config;
use crate::observe::operator_line::say;
use crate::resp::decode::Limits;
use crate::resp::{Decoder, Value, encode_request};
use crate::version;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;
use tidemark_cluster::{Level, MEMBERS_MAX, Member, NodeId, RandomId};

/// Longest wait for a connection, and for an answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// Largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Pause between two rounds in which a new member looks for one that it can ask, and how many there are.
const ROUND_PAUSE: Duration = Duration::from_secs(1);
const ROUNDS_MAX: u32 = 15;

/// Sends a command to a server, behind the password if there is one.
pub(super) fn call(address: &str, password: &str, command: &[&str]) -> io::Result<Value> {
    let target = address.to_socket_addrs()?.next();
    let target = target.ok_or_else(|| io::Error::other("the name has no address"))?;
    let mut stream = TcpStream::connect_timeout(&target, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    if !password.is_empty() {
        encode_request(&mut request, &["AUTH", password]);
    }
    encode_request(&mut request, command);
    stream.write_all(&request)?;
    let limits = Limits {
        line_bytes: ANSWER_BYTES_MAX,
        bulk_bytes: ANSWER_BYTES_MAX,
        value_bytes: ANSWER_BYTES_MAX,
        elements: ANSWER_BYTES_MAX,
        depth: 8,
    };
    let mut decoder = Decoder::new(limits);
    let mut wanted = if password.is_empty() { 1 } else { 2 };
    let mut buffer = [0; 4096];
    loop {
        while let Some(value) = decoder.next_value().map_err(io::Error::other)? {
            wanted -= 1;
            if wanted == 0 {
                return Ok(value);
            }
            if let Some(error) = value.as_error() {
                return Err(io::Error::other(String::from_utf8_lossy(error).into_owned()));
            }
        }
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => decoder.feed(&buffer[..read]),
        }
    }
}

/// The group as another member describes it.
pub(super) struct Told {
    pub(super) cluster: RandomId,
    pub(super) is_leader: bool,
    /// The member votes, and nothing is wrong with its disk.
    pub(super) can_lead: bool,
    pub(super) leader: Option<NodeId>,
    /// Time since most members have acknowledged it, if it leads.
    pub(super) quorum_age: Option<Duration>,
    /// The level of the group's records.
    pub(super) level: Level,
    pub(super) members: Vec<Member>,
    /// The list of members is committed.
    pub(super) are_members_committed: bool,
}

/// Asks a member about the group.
pub(super) fn ask(address: &str, password: &str) -> io::Result<Told> {
    let answer = call(address, password, &["CLUSTER", "STATUS"])?;
    if let Some(error) = answer.as_error() {
        return Err(io::Error::other(String::from_utf8_lossy(error).into_owned()));
    }
    told(&answer).map_err(io::Error::other)
}

fn told(answer: &Value) -> Result<Told, String> {
    let status = ClusterStatus::of(answer).map_err(|error| error.to_string())?;
    let members = status.members.into_iter().map(|member| Member {
        id: NodeId(member.node),
        peer_address: member.peers,
        client_address: member.clients,
        directory: member.directory.and_then(|directory| directory.parse().ok()),
        is_voter: member.votes,
    });
    Ok(Told {
        cluster: status.cluster.parse().map_err(|error| format!("the cluster's id: {error}"))?,
        is_leader: status.role == "leader",
        can_lead: status.role == "follower" && status.problem.is_none() && !status.is_suspect,
        leader: status.leader.map(NodeId),
        quorum_age: status.quorum_age_ms.map(Duration::from_millis),
        level: u8::try_from(status.cluster_level)
            .map(Level)
            .map_err(|error| format!("the cluster's level: {error}"))?,
        are_members_committed: status.are_members_committed,
        members: members.collect(),
    })
}

/// Gives the directory of a new member its place, as the cluster that it is to join has it. Waits for a member
/// that can be asked: they may be starting too.
///
/// # Errors
/// Why it cannot join, and what to do.
pub(super) fn seat(config: &Config, node: NodeId) -> Result<Seat, String> {
    for round in 0..ROUNDS_MAX {
        match try_seat(config, node) {
            Err(NoSeat::NotYet(reason)) if round + 1 < ROUNDS_MAX => {
                if round == 0 {
                    let left = (ROUND_PAUSE * ROUNDS_MAX).as_secs();
                    say(&format!("warning: {reason}; it is tried again for up to {left} seconds"));
                }
                std::thread::sleep(ROUND_PAUSE);
            }
            Err(NoSeat::NotYet(reason) | NoSeat::Refused(reason)) => return Err(reason),
            Ok(seat) => return Ok(seat),
        }
    }
    Err("no member of cluster-join was asked".to_owned())
}

/// Why there is no place in a cluster.
enum NoSeat {
    /// There is none, whatever comes.
    Refused(String),
    /// No member can be asked.
    NotYet(String),
}

fn try_seat(config: &Config, node: NodeId) -> Result<Seat, NoSeat> {
    let refused = |reason: String| Err(NoSeat::Refused(reason));
    let Some((peers, clients)) = config.cluster_address.clone() else {
        return refused(
            "set cluster-address to PEERS/CLIENTS, where the others and clients reach it".to_owned(),
        );
    };
    let mut reasons = Vec::new();
    for address in &config.cluster_join {
        let told = match ask(address, &config.requirepass) {
            Ok(told) if !told.members.is_empty() => told,
            Ok(_) => {
                reasons.push(format!("{address}: the cluster is not founded yet"));
                continue;
            }
            Err(error) => {
                reasons.push(format!("{address}: {error}"));
                continue;
            }
        };
        let known = version::build().level;
        if told.level > known {
            return refused(format!(
                "the cluster writes records of level {}, and this build knows them up to level {known}: start it with \
                 the build that the members run",
                told.level
            ));
        }
        if told.members.iter().any(|member| member.id == node) {
            return refused(format!(
                "the cluster has a member {node}; a new one takes a number that none has had"
            ));
        }
        if told.members.len() >= MEMBERS_MAX {
            return refused(format!("the cluster has {MEMBERS_MAX} members, which is the limit"));
        }
        if let Some(member) = told
            .members
            .iter()
            .find(|member| member.peer_address == peers || member.client_address == clients)
        {
            return refused(format!("member {} has an address of cluster-address", member.id));
        }
        let directory = RandomId::draw().map_err(|error| NoSeat::Refused(error.to_string()))?;
        let own = Member {
            id: node,
            peer_address: peers,
            client_address: clients,
            directory: Some(directory),
            is_voter: true,
        };
        let founders = told.members.into_iter().chain([own]).collect();
        return Ok(Seat {
            cluster: told.cluster,
            node,
            directory,
            founders,
            joins: true,
            begins_alone: false,
        });
    }
    Err(NoSeat::NotYet(format!("no member of cluster-join can be asked: {}", reasons.join("; "))))
}
