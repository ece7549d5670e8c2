//! The first frames of a connection: both ends say who they are, and check the other.
//!
//! ```text
//! hello    magic "TIDEPEER", version u16, cluster 16 B, node u64, directory 16 B, process 16 B, to u64
//! welcome  the same, of the end that was connected to; `to` is who connects
//! confirm  nothing
//! refusal  the reason in words
//! ```
//!
//! A refusal names at most the first digits of an id.

use bytes::Bytes;

use super::identity::Identity;
use super::roster::Roster;
use crate::ids::{NodeId, RandomId};

const MAGIC: [u8; 8] = *b"TIDEPEER";

/// Version of everything between members.
pub(super) const VERSION: u16 = 1;

/// Bytes of a hello.
const HELLO_BYTES: usize = 74;

/// Largest payload of a frame before the handshake is complete.
pub(super) const HANDSHAKE_BYTES_MAX: usize = 1024;

/// Longest reason that is sent or shown.
const REASON_CHARS: usize = 250;

/// What an end says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) cluster: RandomId,
    pub(super) node: NodeId,
    pub(super) directory: RandomId,
    pub(super) process: RandomId,
    /// The member that it wants to talk to.
    pub(super) to: NodeId,
}

impl Hello {
    pub(super) fn new(own: &Identity, to: NodeId) -> Self {
        let Identity { cluster, node, directory, process, .. } = *own;
        Self { cluster, node, directory, process, to }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.cluster.0);
        bytes.extend_from_slice(&self.node.0.to_le_bytes());
        bytes.extend_from_slice(&self.directory.0);
        bytes.extend_from_slice(&self.process.0);
        bytes.extend_from_slice(&self.to.0.to_le_bytes());
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote. The error is the refusal.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        if bytes.first_chunk() != Some(&MAGIC) {
            return Err("the connection does not begin like one between members".to_owned());
        }
        let version = bytes.get(8..10).and_then(|bytes| bytes.first_chunk());
        let version = version.map(|bytes| u16::from_le_bytes(*bytes));
        if let Some(version) = version
            && version != VERSION
        {
            return Err(format!(
                "the peer speaks version {version} of the protocol between members, this member version \
                 {VERSION}; run builds whose versions are the same"
            ));
        }
        let fields = bytes.get(10..HELLO_BYTES).filter(|_| bytes.len() == HELLO_BYTES);
        let fields = fields.ok_or("the hello of the peer is not well formed")?;
        let id = |at: usize| RandomId(*fields[at..].first_chunk().expect("the length was checked"));
        let node = |at: usize| {
            NodeId(u64::from_le_bytes(*fields[at..].first_chunk().expect("the length was checked")))
        };
        Ok(Self { cluster: id(0), node: node(16), directory: id(24), process: id(40), to: node(56) })
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
        Hello { cluster: id(1), node: NodeId(2), directory: id(11), process: id(21), to: NodeId(1) }
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

    #[test]
    fn another_version_is_named() {
        let mut bytes = hello().encode();
        bytes[8..10].copy_from_slice(&7_u16.to_le_bytes());
        bytes.truncate(12);
        let refusal = Hello::decode(&bytes).expect_err("version 7");
        assert!(refusal.contains("speaks version 7"), "{refusal}");
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
        ) {
            let hello = Hello {
                cluster: RandomId(cluster),
                node: NodeId(node),
                directory: RandomId(directory),
                process: RandomId(process),
                to: NodeId(to),
            };
            let bytes = hello.encode();
            prop_assert_eq!(Hello::decode(&bytes), Ok(hello));
            for cut in 0..bytes.len() {
                prop_assert!(Hello::decode(&bytes[..cut]).is_err());
            }
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Hello::decode(&bytes).is_err());
            decode_reason(&Bytes::from(bytes));
        }
    }
}
