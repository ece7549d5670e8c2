//! What the consensus core knows of the network. The simulation has its own implementation.

use std::future::Future;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::ids::NodeId;

/// One of the ordered connections between two members. None of them waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// Entries of the log.
    Log,
    /// Heartbeats: small frames that must not wait behind large ones.
    Heartbeat,
    /// Votes, membership and transfers.
    Control,
    /// Files of snapshots.
    Snapshot,
    /// Messages of the server to its like: no part of the consensus, which closes the lane.
    Message,
}

impl Lane {
    /// All lanes.
    pub const ALL: [Self; 5] = [Self::Log, Self::Heartbeat, Self::Control, Self::Snapshot, Self::Message];

    /// Returns the lane's number in frames.
    pub fn code(self) -> u8 {
        match self {
            Self::Log => 1,
            Self::Heartbeat => 2,
            Self::Control => 3,
            Self::Snapshot => 4,
            Self::Message => 5,
        }
    }

    /// Returns the lane of a number in a frame.
    pub fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|lane| lane.code() == code)
    }

    /// Returns the largest request on this lane, in bytes. On the log's lane that is an entry: 64 MiB of
    /// small records, as much as the log's buffer takes, another MiB of each of 64 threads, and 128 MiB of
    /// large ones.
    pub fn request_bytes_max(self) -> usize {
        match self {
            Self::Log => (256 << 20) + (64 << 10),
            Self::Heartbeat => 64 << 10,
            Self::Control => 1 << 20,
            Self::Snapshot => 2 << 20,
            Self::Message => (16 << 20) + (64 << 10),
        }
    }

    /// Returns the largest answer on this lane, in bytes.
    pub fn answer_bytes_max(self) -> usize {
        self.request_bytes_max().min(1 << 20)
    }
}

/// Sends requests to other members.
pub trait Transport: Clone + Send + Sync + 'static {
    /// Sends a frame; answers come in the order of the frames of a lane.
    ///
    /// The receiver fails when the connection does, when no connection can be made, when the frame is
    /// larger than the lane allows, and when too much is queued for the peer. Whether the peer has got
    /// the frame is then unknown, and a frame that is sent later may arrive. Returns at once.
    fn send(&self, to: NodeId, lane: Lane, frame: Vec<u8>) -> oneshot::Receiver<Bytes>;
}

/// Answers the requests of other members.
pub trait Service: Clone + Send + Sync + 'static {
    /// Serves one connection of peer `from` until `requests` ends; `answers` get the frames in order,
    /// one for each request. A service that returns earlier closes the connection.
    fn serve(
        &self,
        from: NodeId,
        lane: Lane,
        requests: mpsc::Receiver<Bytes>,
        answers: mpsc::Sender<Vec<u8>>,
    ) -> impl Future<Output = ()> + Send;
}
