//! The first frames of a connection: both ends say who they are and what their builds speak, and check
//! the other.
//!
//! ```text
//! hello    magic "TIDEPEER", oldest and newest version of the protocol u16 each, cluster 16 B, node u64,
//!          directory 16 B, process 16 B, to u64, level u8, length u8, version of the build
//! welcome  the same, of the end that was connected to; `to` is who connects
//! confirm  nothing
//! refusal  the reason in words
//! ```
//!
//! These frames keep their form for ever: builds of all ages must be able to refuse each other in words.
//! A later one may append fields, which others skip. A refusal names at most the first digits of an id.

use bytes::Bytes;

use super::build::{Build, Protocols, VERSION_BYTES_MAX};
use super::identity::Identity;
use super::roster::Roster;
use crate::codec::{Reader, Writer};
use crate::ids::{NodeId, RandomId};
use crate::level::Level;

const MAGIC: [u8; 8] = *b"TIDEPEER";

/// Bytes of a hello of version 1 of the protocol, which had one number of a version, and its node.
const FIRST_HELLO_BYTES: usize = 74;
const FIRST_NODE_AT: usize = 26;

/// Largest payload of a frame before the handshake is complete.
pub(super) const HANDSHAKE_BYTES_MAX: usize = 1024;

/// Longest reason that is sent or shown.
const REASON_CHARS: usize = 250;

/// What an end says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) cluster: RandomId,
    pub(super) node: NodeId,
    pub(super) directory: RandomId,
    pub(super) process: RandomId,
    /// The member that it wants to talk to.
    pub(super) to: NodeId,
    pub(super) build: Build,
}

impl Hello {
    pub(super) fn new(own: &Identity, to: NodeId, build: &Build) -> Self {
        let Identity { cluster, node, directory, process, .. } = *own;
        Self { cluster, node, directory, process, to, build: build.clone() }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let Build { protocols, level, version } = &self.build;
        let version = &version.as_bytes()[..version.len().min(VERSION_BYTES_MAX)];
        let mut into = Writer(MAGIC.to_vec());
        into.u16(protocols.oldest).u16(protocols.newest).array(&self.cluster.0).u64(self.node.0);
        into.array(&self.directory.0).array(&self.process.0).u64(self.to.0);
        into.u8(level.0).u8(version.len() as u8);
        into.0.extend_from_slice(version);
        into.0
    }

    /// Reads what [`encode`](Self::encode) wrote. The error is the refusal.
    pub(super) fn decode(bytes: &[u8], own: &Identity) -> Result<Self, String> {
        let Some(rest) = bytes.strip_prefix(&MAGIC) else {
            return Err("the connection does not begin like one between members".to_owned());
        };
        if let Some(node) = node_of_first_version(bytes) {
            return Err(format!(
                "node {node} speaks version 1 of the protocol between members, which node {} does not: upgrade \
                 node {node}",
                own.node
            ));
        }
        Self::read(&mut Reader(rest)).ok_or_else(|| "the hello of the peer is not well formed".to_owned())
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let protocols = Protocols { oldest: from.u16()?, newest: from.u16()? };
        let (cluster, node) = (RandomId(from.take()?), NodeId(from.u64()?));
        let (directory, process) = (RandomId(from.take()?), RandomId(from.take()?));
        let (to, level) = (NodeId(from.u64()?), Level(from.u8()?));
        let length = from.u8().map(usize::from).filter(|length| *length <= VERSION_BYTES_MAX)?;
        // What follows is of later builds.
        let version = String::from_utf8_lossy(from.0.get(..length)?);
        let version = version.chars().filter(|char| !char.is_control()).collect();
        let build = Build { protocols, level, version };
        Some(Self { cluster, node, directory, process, to, build })
    }

    /// Returns the version of the protocol that both ends use. The error is the refusal.
    pub(super) fn agree(&self, own: &Identity, spoken: Protocols) -> Result<u16, String> {
        let (theirs, node, me) = (self.build.protocols, self.node, own.node);
        let older = if theirs.newest < spoken.oldest { node } else { me };
        theirs.common(spoken).ok_or_else(|| {
            format!(
                "node {node} speaks {theirs} of the protocol between members, and node {me} {spoken}: upgrade node \
                 {older}"
            )
        })
    }

    /// Checks that the other end's build knows the records of a group at this level. The error is the
    /// refusal.
    pub(super) fn check_level(&self, level: Level) -> Result<(), String> {
        let Build { level: known, version, .. } = &self.build;
        if *known >= level {
            return Ok(());
        }
        Err(format!(
            "node {} runs {version}, which knows records up to level {known}, and the cluster writes those of level \
             {level}: upgrade node {}",
            self.node, self.node
        ))
    }

    /// Checks that the other end is a member of this cluster and means this member. The error is the
    /// refusal: the reader at the other end sees it too.
    pub(super) fn check(&self, own: &Identity, roster: &Roster) -> Result<(), String> {
        let node = self.node;
        if self.cluster != own.cluster {
            return Err(format!(
                "node {node} belongs to the cluster {}…, node {} to the cluster {}…; check the addresses of \
                 the members",
                self.cluster.prefix(),
                own.node,
                own.cluster.prefix()
            ));
        }
        if self.to != own.node {
            return Err(format!(
                "node {} was looked for at the address of node {}; check the addresses of the members",
                self.to, own.node
            ));
        }
        if node == own.node {
            return Err(format!(
                "two members claim to be node {node}; a new member joins with an id that no member has or had"
            ));
        }
        match roster.peers.get(&node) {
            None if roster.admits_unlisted => Ok(()),
            None => Err(format!("node {node} is not among the members that node {} knows", own.node)),
            Some(peer) => match peer.directory {
                Some(listed) if listed != self.directory => Err(format!(
                    "node {node} joined with the directory {}…, and its process has the directory {}…; a \
                     member with a new or another directory joins as a replacement",
                    listed.prefix(),
                    self.directory.prefix()
                )),
                _ => Ok(()),
            },
        }
    }
}

/// Returns the member that sent a hello of version 1 of the protocol.
fn node_of_first_version(hello: &[u8]) -> Option<NodeId> {
    let version = u16::from_le_bytes(*hello.get(MAGIC.len()..)?.first_chunk()?);
    let node = hello.get(FIRST_NODE_AT..)?.first_chunk()?;
    let is_first = version == 1 && hello.len() == FIRST_HELLO_BYTES;
    is_first.then(|| NodeId(u64::from_le_bytes(*node)))
}

/// Encodes the reason of a refusal.
pub(super) fn encode_reason(reason: &str) -> Vec<u8> {
    clean(reason).into_bytes()
}

/// Reads the reason of a refusal, which may have any bytes.
pub(super) fn decode_reason(bytes: &Bytes) -> String {
    clean(&String::from_utf8_lossy(bytes))
}

/// Returns the text without control characters and not too long.
fn clean(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(REASON_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::GroupId;
    use crate::net::roster::Peer;
    use proptest::prelude::*;

    fn id(number: u8) -> RandomId {
        RandomId([number; 16])
    }

    fn own() -> Identity {
        let (cluster, directory, process) = (id(1), id(10), id(20));
        Identity { cluster, group: GroupId(0), node: NodeId(1), directory, process }
    }

    fn hello() -> Hello {
        let build = Build { version: "0.1.0".to_owned(), ..Build::default() };
        Hello { cluster: id(1), node: NodeId(2), directory: id(11), process: id(21), to: NodeId(1), build }
    }

    fn roster(directory: Option<RandomId>) -> Roster {
        let peer = Peer { address: "localhost:1".to_owned(), directory };
        Roster { peers: [(NodeId(2), peer)].into(), admits_unlisted: false }
    }

    #[test]
    fn a_member_of_the_cluster_is_welcome() {
        assert_eq!(hello().check(&own(), &roster(Some(id(11)))), Ok(()));
        assert_eq!(hello().check(&own(), &roster(None)), Ok(()));
        let open = Roster { admits_unlisted: true, ..Roster::default() };
        assert_eq!(hello().check(&own(), &open), Ok(()));
    }

    #[test]
    fn others_are_refused_in_words() {
        let table = [
            (Hello { cluster: id(9), ..hello() }, "node 2 belongs to the cluster 09090909…, node 1"),
            (Hello { to: NodeId(3), ..hello() }, "node 3 was looked for at the address of node 1"),
            (Hello { node: NodeId(1), ..hello() }, "two members claim to be node 1"),
            (Hello { node: NodeId(7), ..hello() }, "node 7 is not among the members that node 1 knows"),
            (Hello { directory: id(99), ..hello() }, "node 2 joined with the directory 0b0b0b0b…"),
        ];
        for (hello, words) in table {
            let refusal = hello.check(&own(), &roster(Some(id(11)))).expect_err(words);
            assert!(refusal.starts_with(words), "{refusal}");
            assert!(!refusal.contains(&own().cluster.to_string()), "a stranger learns the cluster's id");
        }
    }

    fn speaking(oldest: u16, newest: u16) -> Hello {
        let build = Build { protocols: Protocols { oldest, newest }, ..hello().build };
        Hello { build, ..hello() }
    }

    #[test]
    fn the_highest_version_that_both_speak_is_used() {
        let own_range = Protocols { oldest: 4, newest: 5 };
        for (oldest, newest, common) in [(4, 5, 5), (3, 4, 4), (5, 6, 5), (5, 5, 5)] {
            assert_eq!(speaking(oldest, newest).agree(&own(), own_range), Ok(common));
        }
        let refused = |oldest, newest| speaking(oldest, newest).agree(&own(), own_range).expect_err("none");
        assert_eq!(
            refused(2, 3),
            "node 2 speaks versions 2 to 3 of the protocol between members, and node 1 versions 4 to 5: upgrade \
             node 2"
        );
        assert_eq!(
            refused(6, 6),
            "node 2 speaks version 6 of the protocol between members, and node 1 versions 4 to 5: upgrade node 1"
        );
    }

    #[test]
    fn a_build_from_before_versions_were_negotiated_is_named() {
        let mut bytes = [&MAGIC[..], &1_u16.to_le_bytes(), &[7; 16], &3_u64.to_le_bytes()].concat();
        bytes.resize(FIRST_HELLO_BYTES, 0);
        let refusal = Hello::decode(&bytes, &own()).expect_err("version 1");
        assert!(
            refusal.starts_with("node 3 speaks version 1") && refusal.ends_with("upgrade node 3"),
            "{refusal}"
        );
    }

    #[test]
    fn a_build_that_knows_less_than_the_log_has_is_refused() {
        assert_eq!(hello().check_level(Level::FIRST), Ok(()));
        let refusal = hello().check_level(Level(2)).expect_err("it knows less");
        assert_eq!(
            refusal,
            "node 2 runs 0.1.0, which knows records up to level 1, and the cluster writes those of level 2: upgrade \
             node 2"
        );
    }

    #[test]
    fn a_reason_has_no_control_characters_and_a_limit() {
        let reason = format!("\x1b[2Jbad\n{}", "é".repeat(9_999));
        let read = decode_reason(&Bytes::from(encode_reason(&reason)));
        assert!(read.starts_with("[2Jbadé"), "{read}");
        assert_eq!(read.chars().count(), REASON_CHARS);
        assert!(encode_reason(&reason).len() <= HANDSHAKE_BYTES_MAX);
    }

    proptest! {
        #[test]
        fn a_hello_is_read_as_it_is_written(
            cluster: [u8; 16], node: u64, directory: [u8; 16], process: [u8; 16], to: u64,
            oldest: u16, newest: u16, level: u8, version in "[ -~]{0,32}",
        ) {
            let hello = Hello {
                cluster: RandomId(cluster),
                node: NodeId(node),
                directory: RandomId(directory),
                process: RandomId(process),
                to: NodeId(to),
                build: Build { protocols: Protocols { oldest, newest }, level: Level(level), version },
            };
            let mut bytes = hello.encode();
            for cut in 0..bytes.len() {
                prop_assert!(Hello::decode(&bytes[..cut], &own()).is_err());
            }
            prop_assert_eq!(Hello::decode(&bytes, &own()), Ok(hello.clone()));
            bytes.extend_from_slice(b"what later builds state");
            prop_assert_eq!(Hello::decode(&bytes, &own()), Ok(hello));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Hello::decode(&bytes, &own()).is_err());
            let _ = Hello::decode(&[&MAGIC[..], &bytes].concat(), &own());
            decode_reason(&Bytes::from(bytes));
        }
    }
}
