//! Members of a group, and the list of them as a record of the log has it.

use std::collections::{BTreeMap, BTreeSet};

use crate::codec::{Reader, Writer};
use crate::ids::{NodeId, RandomId};
use crate::level::Level;

/// Limit on the members of a group, learners included.
pub const MEMBERS_MAX: usize = 64;
/// Limit on the bytes of an address.
pub const ADDRESS_BYTES_MAX: usize = 255;
/// First byte of an encoded list of a group at the first level, and of one that states its level.
const WITHOUT_LEVEL: u8 = 1;
const WITH_LEVEL: u8 = 2;

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub id: NodeId,
    /// Where the other members reach it, as `host:port`.
    pub peer_address: String,
    /// Where clients reach it, as `host:port`.
    pub client_address: String,
    /// Its data directory. Another directory is not this member: it may lack what the member has
    /// acknowledged. `None` admits any.
    pub directory: Option<RandomId>,
    /// Whether it votes; a learner only receives the log.
    pub is_voter: bool,
}

/// Where a member is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) peer: String,
    pub(crate) client: String,
    pub(crate) directory: Option<RandomId>,
    /// The group's level: that of all places of a list.
    pub(crate) level: Level,
}

/// The members from one entry on. During a change there are two sets of voters, and an entry is
/// committed by a quorum of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    pub(crate) voters: Vec<BTreeSet<u64>>,
    pub(crate) nodes: BTreeMap<u64, Place>,
}

/// Why a list of members is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMembers {
    /// No member votes.
    #[error("a group needs a member that votes")]
    NoVoter,
    /// The list is too long.
    #[error("{count} members are more than the limit of {MEMBERS_MAX}")]
    TooMany {
        /// Number of members.
        count: usize,
    },
    /// Two members have one name.
    #[error("two members have the name {0}; give each its own")]
    Twice(NodeId),
    /// The name is reserved.
    #[error("0 is no name of a member; names begin at 1")]
    Zero,
    /// An address is too long.
    #[error("an address of member {id} has {bytes} bytes; the limit is {ADDRESS_BYTES_MAX}")]
    Address {
        /// The member.
        id: NodeId,
        /// Length of the address.
        bytes: usize,
    },
}

impl Members {
    /// Checks a list of members.
    ///
    /// # Errors
    /// No member votes, a name is 0 or occurs twice, or a limit is exceeded.
    pub fn new(members: Vec<Member>) -> Result<Self, InvalidMembers> {
        if members.len() > MEMBERS_MAX {
            return Err(InvalidMembers::TooMany { count: members.len() });
        }
        let (mut voters, mut nodes) = (BTreeSet::new(), BTreeMap::new());
        for member in members {
            if member.id == NodeId(0) {
                return Err(InvalidMembers::Zero);
            }
            for address in [&member.peer_address, &member.client_address] {
                if address.len() > ADDRESS_BYTES_MAX {
                    return Err(InvalidMembers::Address { id: member.id, bytes: address.len() });
                }
            }
            if member.is_voter {
                voters.insert(member.id.0);
            }
            let place = Place {
                peer: member.peer_address,
                client: member.client_address,
                directory: member.directory,
                level: Level::FIRST,
            };
            if nodes.insert(member.id.0, place).is_some() {
                return Err(InvalidMembers::Twice(member.id));
            }
        }
        if voters.is_empty() {
            return Err(InvalidMembers::NoVoter);
        }
        Ok(Self { voters: vec![voters], nodes })
    }

    /// Returns the same members as those of a group at a level.
    #[must_use]
    pub fn at_level(mut self, level: Level) -> Self {
        self.nodes.values_mut().for_each(|place| place.level = level);
        self
    }

    /// Returns the level that the group has from this list on.
    pub fn level(&self) -> Level {
        self.nodes.values().map(|place| place.level).max().unwrap_or_default()
    }

    /// Returns the members by name. Who votes in either set of voters is a voter.
    pub fn list(&self) -> Vec<Member> {
        let is_voter = |id: &u64| self.voters.iter().any(|set| set.contains(id));
        let member = |(id, place): (&u64, &Place)| Member {
            id: NodeId(*id),
            peer_address: place.peer.clone(),
            client_address: place.client.clone(),
            directory: place.directory,
            is_voter: is_voter(id),
        };
        self.nodes.iter().map(member).collect()
    }

    /// Appends the list as bytes.
    pub(crate) fn encode(&self, into: &mut Writer) {
        // A build of the first level reads what it has written itself.
        match self.level() {
            Level::FIRST => into.u8(WITHOUT_LEVEL),
            level => into.u8(WITH_LEVEL).u8(level.0),
        };
        into.u8(self.voters.len() as u8);
        for set in &self.voters {
            into.u8(set.len() as u8);
            for id in set {
                into.u64(*id);
            }
        }
        into.u8(self.nodes.len() as u8);
        for (id, place) in &self.nodes {
            into.u64(*id).string(&place.peer).string(&place.client);
            match place.directory {
                None => into.u8(0),
                Some(directory) => into.u8(1).array(&directory.0),
            };
        }
    }

    /// Reads an encoded list; `None` for any other bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let level = match reader.u8()? {
            WITHOUT_LEVEL => Level::FIRST,
            WITH_LEVEL => Level(reader.u8().filter(|level| *level > Level::FIRST.0)?),
            _ => return None,
        };
        let mut voters = Vec::new();
        for _ in 0..reader.u8().filter(|sets| (1..=2).contains(sets))? {
            let mut set = BTreeSet::new();
            for _ in 0..reader.u8()? {
                set.insert(reader.u64()?);
            }
            if set.is_empty() {
                return None;
            }
            voters.push(set);
        }
        let mut nodes = BTreeMap::new();
        for _ in 0..reader.u8().filter(|nodes| usize::from(*nodes) <= MEMBERS_MAX)? {
            let id = reader.u64()?;
            let (peer, client) = (reader.string()?.to_owned(), reader.string()?.to_owned());
            let directory = if reader.flag()? { Some(RandomId(reader.take()?)) } else { None };
            nodes.insert(id, Place { peer, client, directory, level });
        }
        let is_known = voters.iter().flatten().all(|id| nodes.contains_key(id));
        if is_known { reader.end(Self { voters, nodes }) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn member(id: u64) -> Member {
        Member {
            id: NodeId(id),
            peer_address: format!("10.0.0.{id}:7000"),
            client_address: format!("10.0.0.{id}:6379"),
            directory: (id != 2).then_some(RandomId([id as u8; 16])),
            is_voter: id < 4,
        }
    }

    fn encoded(members: &Members) -> Vec<u8> {
        let mut writer = Writer::default();
        members.encode(&mut writer);
        writer.0
    }

    #[test]
    fn members_are_read_back() {
        let list: Vec<_> = (1..6).map(member).collect();
        let members = Members::new(list.clone()).expect("is valid");
        assert_eq!(members.list(), list);
        assert_eq!(Members::decode(&encoded(&members)), Some(members.clone()));
        let joint = Members { voters: vec![BTreeSet::from([1, 2]), BTreeSet::from([2, 3])], ..members };
        assert_eq!(Members::decode(&encoded(&joint)), Some(joint));
    }

    #[test]
    fn a_list_has_the_level_of_its_group() {
        let members = Members::new((1..4).map(member).collect()).expect("is valid");
        assert_eq!(members.level(), Level::FIRST);
        let first = encoded(&members);
        let raised = members.clone().at_level(Level(7));
        assert_eq!(raised.level(), Level(7));
        assert_eq!(Members::decode(&encoded(&raised)), Some(raised.clone()));
        assert_eq!(encoded(&raised.at_level(Level::FIRST)), first, "as builds of the first level write it");
        let impossible = [&[WITH_LEVEL, 1], &first[1..]].concat();
        assert_eq!(Members::decode(&impossible), None);
    }

    #[test]
    fn lists_that_make_no_group_are_refused() {
        let refused = |list: Vec<Member>| Members::new(list).expect_err("is refused");
        assert_eq!(refused(vec![]), InvalidMembers::NoVoter);
        assert_eq!(refused(vec![member(4)]), InvalidMembers::NoVoter);
        assert_eq!(refused(vec![member(0)]), InvalidMembers::Zero);
        assert_eq!(refused(vec![member(1), member(1)]), InvalidMembers::Twice(NodeId(1)));
        assert_eq!(refused((1..=65).map(member).collect()), InvalidMembers::TooMany { count: 65 });
        let long = Member { peer_address: "x".repeat(256), ..member(1) };
        assert_eq!(refused(vec![long]), InvalidMembers::Address { id: NodeId(1), bytes: 256 });
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0_usize..60, value: u8) {
            let _ = Members::decode(&bytes);
            let mut damaged = encoded(&Members::new((1..4).map(member).collect()).expect("is valid"));
            damaged[at] = value;
            if let Some(members) = Members::decode(&damaged) {
                prop_assert_eq!(Members::decode(&encoded(&members)), Some(members));
            }
        }
    }
}
