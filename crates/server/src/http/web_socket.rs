//! What every WebSocket here does with its client's frames.

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures_util::SinkExt as _;
use std::time::Duration;
use tokio::time::timeout;

/// How long a client may take to read that it has been understood that it goes, or why it has to.
const FAREWELL: Duration = Duration::from_secs(1);
/// The longest reason that a closing frame carries. Bytes.
const REASON_BYTES: usize = 123;

/// The client's next message, or `None` at the end, which has been answered then. Nothing is lost if it is not waited for to
/// the end.
///
/// Pings are answered. While such an answer cannot leave nothing more is read, so none gather for a client that does not read.
pub(crate) async fn hear(socket: &mut WebSocket) -> Option<Message> {
    loop {
        // What the frame before has caused.
        socket.flush().await.ok()?;
        match socket.recv().await? {
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            Ok(Message::Close(_)) => {
                let _ = timeout(FAREWELL, socket.flush()).await;
                return None;
            }
            Ok(message) => return Some(message),
            Err(error) => {
                let mut reason = error.to_string();
                reason.truncate(reason.floor_char_boundary(REASON_BYTES));
                let close = CloseFrame { code: close_code::PROTOCOL, reason: reason.into() };
                let _ = timeout(FAREWELL, socket.send(Message::Close(Some(close)))).await;
                return None;
            }
        }
    }
}
