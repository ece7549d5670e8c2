//! A member whose data is damaged removes all of it, and gets it from the others.
//!
//! ```text
//! damage is found ─► the member is suspect, the file REPLACE is there ─► the process starts again
//!   ─► others have a leader without this member ─► the data is removed ─► REPLACE is removed
//!   ─► the member starts without data, and without a vote until a leader has caught it up
//! ```
//!
//! Nothing is removed unless a leader that most members follow has everything that was committed. Vote, seat
//! and suspicion stay, so the member is the same one. It is damaged again before it has caught up: then
//! its disk is bad, and an operator decides.

use super::durable_file;
use super::joining::{Told, ask, call};
use super::seat::Seat;
use crate::config::Config;
use crate::observe::operator_line::say;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidemark_cluster::Member;
use tidemark_cluster::suspicion::SuspicionFile;
use tidemark_log::Storage;
use tidemark_log::storage::StorageLock;

/// The file that says that the data is to be removed, and why.
const NAME: &str = "REPLACE";
/// Most of a reason that is read. Bytes.
const REASON_BYTES_MAX: usize = 4096;
/// Pause before the others are asked for a leader, and between two rounds. Longer than the lease of a leader
/// that this member has followed until it stopped.
const ROUND_PAUSE: Duration = Duration::from_secs(1);
/// Rounds without a leader before the start fails.
const ROUNDS_MAX: u32 = 60;
/// Pause between two attempts to lock the directory, and how many there are.
const LOCK_PAUSE: Duration = Duration::from_millis(50);
const LOCK_ROUNDS: u32 = 100;
/// Longest time since most members have acknowledged a leader that is trusted.
const QUORUM_AGE_MAX: Duration = Duration::from_millis(900);

/// Asks for the data of this member to be replaced. Clones share the file of the suspicion.
#[derive(Clone)]
pub(super) struct Replacing {
    directory: PathBuf,
    suspicion: Arc<Mutex<Option<SuspicionFile>>>,
}

impl Replacing {
    pub(super) fn new(directory: &Path, suspicion: &Arc<Mutex<Option<SuspicionFile>>>) -> Replacing {
        Replacing { directory: directory.to_owned(), suspicion: Arc::clone(suspicion) }
    }

    /// Has the next start replace the data, which is damaged. Returns false if it must not: the operator is
    /// told why.
    pub(super) fn request(&self, damage: &str) -> bool {
        let mut suspicion = self.suspicion.lock().unwrap_or_else(PoisonError::into_inner);
        match suspicion.as_mut() {
            // The member is closed: its next start finds the damage.
            None => false,
            Some(file) => report(request(&self.directory, file, damage), damage),
        }
    }
}

/// Returns whether the others elect a leader, and commit, without this member: then its data can be replaced. It
/// asks all of them.
pub(super) fn can_be_missed(seat: &Seat, members: Vec<Member>, password: &str) -> bool {
    let voters = members.into_iter().filter(|member| member.is_voter);
    let (own, others): (Vec<_>, Vec<_>) = voters.partition(|member| member.id == seat.node);
    let is_well = |member: &&Member| {
        let said = ask(&member.client_address, password);
        said.is_ok_and(|said| said.cluster == seat.cluster && (said.is_leader || said.can_lead))
    };
    let well = others.iter().filter(is_well).count();
    well * 2 > own.len() + others.len()
}

/// Tells the operator what follows from damage, and returns whether the next start replaces the data.
pub(super) fn report(requested: io::Result<bool>, damage: &str) -> bool {
    match requested {
        Ok(true) => {
            say(&format!(
                "error: the data of this member is damaged: {damage}; it is to be got from the others"
            ));
            true
        }
        Ok(false) => {
            say(&format!(
                "error: the data of this member is damaged: {damage}. It is not replaced, because that was done \
                 before and this member has not caught up since, or because it may have forgotten its vote: check \
                 its disk, let a new member join, and run `tidemark cluster replace`"
            ));
            false
        }
        Err(error) => {
            say(&format!(
                "error: the data of this member is damaged: {damage}; this cannot be noted: {error}"
            ));
            false
        }
    }
}

/// Has the next start replace the data of a directory whose member does not run. Returns false if it must not.
pub(super) fn request(directory: &Path, suspicion: &mut SuspicionFile, damage: &str) -> io::Result<bool> {
    if !suspicion.may_replace_data() {
        return Ok(false);
    }
    durable_file::replace(directory, NAME, damage)?;
    suspicion.note_damage()?;
    Ok(true)
}

/// Returns why the data is to be replaced; `None` if it is not.
pub(crate) fn requested(directory: &Path) -> io::Result<Option<String>> {
    match fs::read(directory.join(NAME)) {
        Ok(reason) => {
            let reason = &reason[..reason.len().min(REASON_BYTES_MAX)];
            let shown = String::from_utf8_lossy(reason).chars().filter(|char| !char.is_control()).collect();
            Ok(Some(shown))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes the data once the others have a leader.
///
/// # Errors
/// Why nothing, or not everything, was removed, in words. The next start tries it again.
pub(super) fn replace(
    config: &Config,
    seat: &Seat,
    storage: &dyn Storage,
    damage: &str,
) -> Result<(), String> {
    say(&format!(
        "warning: the data of this member is damaged: {damage}. When the other members have a leader, it is removed, \
         and got from them"
    ));
    wait_for_leader(config, seat, damage)?;
    let removed = || {
        let _lock = lock(storage)?;
        tidemark_cluster::remove_data(storage)?;
        fs::remove_file(config.dir.join(NAME))?;
        File::open(&config.dir)?.sync_all()
    };
    removed().map_err(|error: io::Error| format!("the damaged data cannot be removed: {error}"))?;
    say("the damaged data is removed: this member gets everything from the leader");
    Ok(())
}

/// Locks the directory. What this process had opened before may take a moment to end.
fn lock(storage: &dyn Storage) -> io::Result<StorageLock> {
    for _ in 0..LOCK_ROUNDS {
        match storage.lock() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(LOCK_PAUSE),
            locked => return locked,
        }
    }
    storage.lock()
}

fn wait_for_leader(config: &Config, seat: &Seat, damage: &str) -> Result<(), String> {
    let mut why = String::new();
    for _ in 0..ROUNDS_MAX {
        std::thread::sleep(ROUND_PAUSE);
        match find_leader(config, seat, damage) {
            Ok(()) => return Ok(()),
            Err(reason) => why = reason,
        }
    }
    Err(format!(
        "its data is damaged, and the other members have no leader that could replace it: {why}. Nothing is removed. \
         Start the others, and then this one. If too few of them have whole data, copy this directory, and see what \
         `tidemark cluster recover` at one that has says; a single damaged directory: `tidemark log repair`"
    ))
}

/// Looks for a leader of most members, which knows this one, and tells all that answer what this one waits for.
/// The error says why there is none.
fn find_leader(config: &Config, seat: &Seat, damage: &str) -> Result<(), String> {
    let others = seat.founders.iter().filter(|member| member.id != seat.node);
    let mut addresses = config.cluster_join.clone();
    addresses.extend(others.map(|member| member.client_address.clone()));
    let (mut met, mut reasons) = (BTreeSet::new(), Vec::new());
    while let Some(address) = addresses.pop() {
        if !met.insert(address.clone()) || met.len() > tidemark_cluster::MEMBERS_MAX {
            continue;
        }
        let told = match ask(&address, &config.requirepass) {
            Ok(told) => told,
            Err(error) => {
                reasons.push(format!("{address}: {error}"));
                continue;
            }
        };
        if told.cluster != seat.cluster {
            reasons.push(format!("{address}: it is of another cluster"));
        } else if told.is_leader {
            return trust(&told, seat);
        } else {
            let problem =
                format!("its data is damaged: {damage}; it keeps it until the others have a leader");
            let report = ["CLUSTER", "REPORT", &seat.node.to_string(), &seat.directory.to_string(), &problem];
            // It helps people; an older version does not know it.
            let _ = call(&address, &config.requirepass, &report);
            // The members may have changed since this one has joined.
            addresses.extend(told.members.iter().map(|member| member.client_address.clone()));
        }
    }
    if reasons.is_empty() {
        reasons.push("none of them leads".to_owned());
    }
    Err(reasons.join("; "))
}

fn trust(leader: &Told, seat: &Seat) -> Result<(), String> {
    if leader.quorum_age.is_none_or(|age| age > QUORUM_AGE_MAX) {
        return Err("the leader is not followed by most members at the moment".to_owned());
    }
    let listed = leader.members.iter().find(|member| member.id == seat.node);
    match listed {
        Some(member) if member.directory.is_none_or(|directory| directory == seat.directory) => Ok(()),
        _ => {
            Err("this member was removed from the cluster: let a new one join with an empty directory"
                .to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_cluster::suspicion::{Start, Suspicion};
    use tidemark_cluster::{Level, NodeId, RandomId};

    fn begin(directory: &Path, is_new: bool) -> SuspicionFile {
        let start = Start { boot: None, acknowledges_unsynced: false, is_new };
        SuspicionFile::begin(directory, start).expect("the file")
    }

    #[test]
    fn a_replacement_is_asked_for_once_until_the_member_has_caught_up() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        let mut file = begin(path, true);
        file.end_recovery(false).expect("saved");
        assert_eq!(requested(path).expect("readable"), None);
        assert!(request(path, &mut file, "a bit\nis flipped").expect("written"));
        assert_eq!(requested(path).expect("readable").as_deref(), Some("a bitis flipped"));
        assert_eq!(file.suspicion(), Some(Suspicion::DamagedLog));
        drop(file);
        let mut file = begin(path, false);
        assert_eq!(file.suspicion(), Some(Suspicion::DamagedLog), "a start does not forget it");
        assert!(!request(path, &mut file, "damaged again").expect("not written"));
        assert_eq!(requested(path).expect("readable").as_deref(), Some("a bitis flipped"));
        file.heal().expect("saved");
        assert!(request(path, &mut file, "much later").expect("written"));
        assert_eq!(requested(path).expect("readable").as_deref(), Some("much later"));
    }

    #[test]
    fn a_member_that_may_have_forgotten_its_vote_replaces_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut file = begin(directory.path(), false);
        assert_eq!(file.suspicion(), Some(Suspicion::Unknown));
        assert!(!request(directory.path(), &mut file, "damage").expect("not written"));
        assert_eq!(requested(directory.path()).expect("readable"), None);
    }

    #[test]
    fn only_a_leader_that_most_members_follow_and_that_knows_this_member_is_trusted() {
        let member = |directory| Member {
            id: NodeId(2),
            peer_address: String::new(),
            client_address: String::new(),
            directory,
            is_voter: true,
        };
        let own = RandomId([9; 16]);
        let seat = Seat {
            cluster: RandomId([7; 16]),
            node: NodeId(2),
            directory: own,
            founders: vec![],
            joins: false,
            begins_alone: false,
        };
        let told = |quorum_age, members| Told {
            cluster: seat.cluster,
            is_leader: true,
            can_lead: true,
            leader: Some(NodeId(1)),
            quorum_age,
            level: Level::FIRST,
            members,
            are_members_committed: true,
        };
        let fresh = Some(Duration::from_millis(3));
        assert_eq!(trust(&told(fresh, vec![member(Some(own))]), &seat), Ok(()));
        assert_eq!(trust(&told(fresh, vec![member(None)]), &seat), Ok(()));
        let removed = Err(
            "this member was removed from the cluster: let a new one join with an empty directory".into(),
        );
        assert_eq!(trust(&told(fresh, vec![]), &seat), removed);
        assert_eq!(trust(&told(fresh, vec![member(Some(RandomId([8; 16])))]), &seat), removed);
        for age in [None, Some(Duration::from_secs(2))] {
            assert!(trust(&told(age, vec![member(Some(own))]), &seat).is_err());
        }
    }
}
