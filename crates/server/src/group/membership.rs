//! A directory as that of a member, before the member takes part.

use super::joining;
use super::node_error::NodeError;
use super::replacing;
use super::seat::Seat;
use crate::config::{ClusterTls, Config, LogStorage};
use crate::observe::operator_line::say;
use crate::version;
use std::io;
use std::net::{TcpListener, ToSocketAddrs as _};
use tidemark_cluster::net::Tls;
use tidemark_cluster::suspicion::{BootId, Start, SuspicionFile};
use tidemark_cluster::vote_file::VoteFile;
use tidemark_cluster::{Member, NodeId, RandomId, VoteStore, found_alone};
use tidemark_log::{Durability, Log, Member as LogMember, Storage};

/// File of the votes, in the data directory.
const VOTE_FILE: &str = "vote";

/// The directory as that of a member, before its log is opened and until it takes part.
pub(crate) struct Membership {
    pub(super) seat: Seat,
    pub(super) suspicion: SuspicionFile,
    /// The data was just removed: only a leader that has caught the member up gives it its vote.
    is_empty: bool,
}

impl Membership {
    /// Finds out which member this directory is, if it is one or the settings make it one. The directory
    /// exists. Nothing is written before all settings of a member are known to fit.
    pub(crate) fn open(config: &Config, storage: &dyn Storage) -> Result<Option<Membership>, NodeError> {
        let found = Seat::read(&config.dir)?;
        let is_first = found.is_none();
        if is_first && config.cluster_node == 0 {
            if config.cluster_join.is_empty() {
                return Ok(None);
            }
            let reason = "set cluster-node to a number that no member has had";
            return Err(NodeError::Join(reason.to_owned()));
        }
        load_tls(&config.cluster_tls).map_err(NodeError::Tls)?;
        if config.log_storage == LogStorage::Memory {
            return Err(NodeError::Setting {
                what: "its log in memory: it must not forget what it acknowledged",
            });
        }
        let seat = match found {
            None => first_seat(config, NodeId(config.cluster_node), storage)?,
            Some(seat) => {
                if config.cluster_node != 0 {
                    seat.check(&config.dir, NodeId(config.cluster_node))?;
                }
                seat
            }
        };
        // What it acknowledged before is known to have survived, or its loss was accepted.
        let is_new = is_first || seat.begins_alone;
        if is_first {
            // Before the directory is a member's: a member without the file has lost its votes.
            VoteFile::open(&config.dir)?;
            if !seat.begins_alone {
                seat.write(&config.dir)?;
            }
        } else if !config.dir.join(VOTE_FILE).try_exists()? {
            return Err(NodeError::Votes { dir: config.dir.clone() });
        }
        let start = Start {
            boot: BootId::current(),
            acknowledges_unsynced: config.durability != Durability::Always,
            is_new,
        };
        let mut suspicion = SuspicionFile::begin(&config.dir, start)?;
        let damage = replacing::requested(&config.dir)?;
        if let Some(damage) = &damage {
            // The request is durable before this is.
            suspicion.note_damage()?;
            if let Some(worse) = suspicion.suspicion().filter(|found| found.may_have_forgotten_votes()) {
                return Err(NodeError::Suspect(worse));
            }
            replacing::replace(config, &seat, storage, damage).map_err(NodeError::NotReplaced)?;
        }
        Ok(Some(Membership { seat, suspicion, is_empty: damage.is_some() }))
    }

    /// Has the next start of a member replace its data, which is damaged. Returns false if the directory is
    /// none of a member, or the data must not be replaced.
    pub(crate) fn request_replacement(config: &Config, damage: &str) -> Result<bool, NodeError> {
        let vote = config.dir.join(VOTE_FILE).try_exists()?;
        if Seat::read(&config.dir)?.is_none() || !vote {
            return Ok(false);
        }
        let start = Start { boot: BootId::current(), acknowledges_unsynced: true, is_new: false };
        let mut suspicion = SuspicionFile::begin(&config.dir, start)?;
        Ok(replacing::report(replacing::request(&config.dir, &mut suspicion, damage), damage))
    }

    /// Makes the directory the only member of its group, if it is to become that, now that its log is open.
    /// If this is interrupted, the next start does it again.
    pub(crate) fn begin_alone(
        &mut self,
        config: &Config,
        log: &Log,
        member: &LogMember,
    ) -> Result<(), NodeError> {
        if !self.seat.begins_alone {
            return Ok(());
        }
        // The log can be opened: from here on the directory is a member's.
        self.seat.write(&config.dir)?;
        let own = self.seat.founders.iter().find(|founder| founder.id == self.seat.node);
        let own = own.ok_or_else(|| io::Error::other("the file `group` does not name the member itself"))?;
        let own = Member { directory: Some(self.seat.directory), ..own.clone() };
        let (votes, ballot) = VoteFile::open(&config.dir)?;
        found_alone(log, member, &mut Votes(votes), ballot.as_deref(), own, version::build().level)?;
        self.suspicion.end_recovery(false)?;
        self.seat.begins_alone = false;
        self.seat.write(&config.dir)?;
        say(&format!(
            "this directory is member {} of a cluster of its own, with all its data; let others join it",
            self.seat.node
        ));
        Ok(())
    }

    /// Returns what the numbers of this directory's block files begin with: snapshots bring those of other
    /// directories.
    pub(crate) fn part_of_numbers(&self) -> u64 {
        let (part, _) = self.seat.directory.0.split_first_chunk().expect("an id has 16 bytes");
        u64::from_le_bytes(*part)
    }

    /// Notes that the log is open. What could be damage is refused there, not cut.
    ///
    /// # Errors
    /// The member may have forgotten what it has voted, and that is not accepted.
    pub(crate) fn end_recovery(&mut self, config: &Config) -> Result<(), NodeError> {
        self.suspicion.end_recovery(false)?;
        let Some(suspicion) = self.suspicion.suspicion() else { return Ok(()) };
        if config.cluster_accept_loss && !self.is_empty {
            say("warning: this member takes part although it may have lost what it acknowledged");
            return Ok(self.suspicion.heal()?);
        }
        if suspicion.may_have_forgotten_votes() {
            return Err(NodeError::Suspect(suspicion));
        }
        say(&format!(
            "warning: this member may have lost what it acknowledged: {suspicion}. It does not vote until a leader \
             that was elected without it has caught it up. If no leader is elected, because most members are in \
             this state, `tidemark cluster recover` says what could be lost, and accepts that; or restart them with \
             --cluster-accept-loss yes: what they lost is gone"
        ));
        Ok(())
    }
}

/// Finds a directory's first place. It must be able to take part there.
fn first_seat(config: &Config, node: NodeId, storage: &dyn Storage) -> Result<Seat, NodeError> {
    let has_data = Log::is_in(storage)?;
    let founders = config.cluster_members.clone();
    let is_alone = config.cluster_join.is_empty() && founders.len() == 1;
    if has_data && !is_alone {
        return Err(NodeError::Occupied { dir: config.dir.clone() });
    }
    let seat = if config.cluster_join.is_empty() {
        if !founders.iter().any(|member| member.id == node) {
            let members = founders.iter().map(|member| member.id.to_string()).collect::<Vec<_>>().join(", ");
            let members =
                if members.is_empty() { "no members".to_owned() } else { format!("the members {members}") };
            return Err(NodeError::Unlisted { node, members });
        }
        // No other member has to know the name yet.
        let cluster = if is_alone { RandomId::draw()? } else { cluster_of(&founders) };
        let directory = RandomId::draw()?;
        Seat { cluster, node, directory, founders, joins: false, begins_alone: has_data }
    } else {
        joining::seat(config, node).map_err(NodeError::Join)?
    };
    let own = own_address(&seat);
    listen(&own).map_err(|error| NodeError::Listen { address: own, error })?;
    Ok(seat)
}

/// Returns the name of the cluster that these members found: the same at each of them.
fn cluster_of(founders: &[Member]) -> RandomId {
    use sha2::{Digest as _, Sha256};
    let mut sorted: Vec<&Member> = founders.iter().collect();
    sorted.sort_by_key(|member| member.id);
    let mut hash = Sha256::new();
    for member in sorted {
        hash.update(format!("{}={}/{}\n", member.id, member.peer_address, member.client_address));
    }
    let hash = hash.finalize();
    let mut id = [0; 16];
    id.copy_from_slice(&hash[..16]);
    RandomId(id)
}

/// Reads the files for TLS between members, if there are any.
pub(super) fn load_tls(tls: &ClusterTls) -> Result<Option<Tls>, String> {
    let Some(files) = tls.files()? else { return Ok(None) };
    Tls::load(&files).map(Some).map_err(|error| error.to_string())
}

/// Returns where other members reach this one.
pub(super) fn own_address(seat: &Seat) -> String {
    let own = seat.founders.iter().find(|member| member.id == seat.node);
    own.map(|member| member.peer_address.clone()).unwrap_or_default()
}

/// Listens for other members.
pub(super) fn listen(address: &str) -> io::Result<TcpListener> {
    let addresses: Vec<_> = address.to_socket_addrs()?.collect();
    TcpListener::bind(&addresses[..])
}

/// The file of the vote, as the consensus sees it.
pub(super) struct Votes(pub(super) VoteFile);

impl VoteStore for Votes {
    fn save(&mut self, ballot: &[u8]) -> io::Result<()> {
        self.0.save(ballot)
    }
}
