//! How frames travel between members. The simulation has its own transport.

use std::future::Future;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::ids::NodeId;

/// One ordered connection between two members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Entries.
    Log,
    /// Heartbeats: they must not wait behind entries.
    Heartbeat,
    /// Votes and transfers.
    Control,
    /// Snapshots.
    Snapshot,
}

/// Sends frames to other members.
pub trait Transport: Clone + Send + Sync + 'static {
    /// Sends a frame. Answers come in the order of the frames of a lane. The receiver fails when
    /// the connection does.
    fn send(&self, to: NodeId, lane: Lane, frame: Vec<u8>) -> oneshot::Receiver<Bytes>;
}

/// Answers the frames that a listener receives.
pub trait Service: Clone + Send + Sync + 'static {
    /// Serves one connection of member `from` until `requests` ends. `answers` gets the answers in
    /// the order of the requests.
    fn serve(
        &self,
        from: NodeId,
        lane: Lane,
        requests: mpsc::Receiver<Bytes>,
        answers: mpsc::Sender<Vec<u8>>,
    ) -> impl Future<Output = ()> + Send;
}
