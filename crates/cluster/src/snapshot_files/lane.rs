//! The receiving end of the snapshot lane.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::receiver::SnapshotReceiver;
use super::waiting::{OnTokio, Waiting};

/// Answers the requests of a connection of the snapshot lane until they end. Files are written on
/// threads that may wait for the disk, one request at a time.
pub async fn serve_snapshot_lane(
    receiver: &Arc<Mutex<SnapshotReceiver>>,
    mut requests: mpsc::Receiver<Bytes>,
    answers: mpsc::Sender<Vec<u8>>,
) {
    while let Some(request) = requests.recv().await {
        let receiver = Arc::clone(receiver);
        let answer = move || receiver.lock().unwrap_or_else(PoisonError::into_inner).answer(&request);
        let Some(answer) = OnTokio::run_blocking(answer).await else { return };
        if answers.send(answer).await.is_err() {
            return;
        }
    }
}
