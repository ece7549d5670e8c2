//! Why a process cannot be a member.

use super::seat::SeatError;
use std::io;
use std::path::PathBuf;
use tidemark_cluster::NodeId;
use tidemark_cluster::suspicion::Suspicion;

/// Why this process cannot be a member.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The directory's place is unknown, or is another one.
    #[error(transparent)]
    Seat(#[from] SeatError),
    /// The settings name no member.
    #[error(
        "cluster-node is {node}, and cluster-members has {members}: give each member its own number of the list"
    )]
    Unlisted {
        /// The member that the settings name.
        node: NodeId,
        /// The members.
        members: String,
    },
    /// The member cannot join a cluster.
    #[error("this member cannot join a cluster: {0}")]
    Join(String),
    /// A setting does not fit a member.
    #[error("a member of a cluster cannot have {what}")]
    Setting {
        /// What is set.
        what: &'static str,
    },
    /// The directory has data of a server that was alone, and the member gets that of the others.
    #[error(
        "{dir} has data, and a member that is not alone begins without any: give it an empty directory. Data of a \
         single server begins a cluster of its own, which the others join: start it with only itself in \
         cluster-members, and the others with empty directories and cluster-join",
        dir = dir.display()
    )]
    Occupied {
        /// The directory.
        dir: PathBuf,
    },
    /// What the member has voted is lost.
    #[error(
        "{} is that of a member, and lacks the file `vote`: what the member has voted is unknown; restore the file, \
         or let a new member take its place with an empty directory", dir.display()
    )]
    Votes {
        /// The directory.
        dir: PathBuf,
    },
    /// The address for other members cannot be used.
    #[error("cannot listen for other members on {address}: {error}")]
    Listen {
        /// The address.
        address: String,
        /// The system's error.
        error: io::Error,
    },
    /// The member may have forgotten what it has voted.
    #[error(
        "this member does not take part: {0}. If all other members run and have the log, or a loss is acceptable, \
         start it with --cluster-accept-loss yes"
    )]
    Suspect(Suspicion),
    /// The log, or what says where it begins, is damaged.
    #[error("the data of this member is damaged: {0}")]
    Damaged(io::Error),
    /// Damaged data is not replaced.
    #[error("this member does not take part: {0}")]
    NotReplaced(String),
    /// There is no TLS with these settings.
    #[error("{0}")]
    Tls(String),
    /// A file or a thread of the member failed.
    #[error("cannot take part in the cluster: {0}")]
    Start(io::Error),
}

// Not derived: the message has the error, which would be its source and be printed twice.
impl From<io::Error> for NodeError {
    fn from(error: io::Error) -> NodeError {
        NodeError::Start(error)
    }
}
