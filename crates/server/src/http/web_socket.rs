//! Handling of the control frames of every `WebSocket`.

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures_util::SinkExt as _;
use std::time::Duration;
use tokio::time::timeout;

/// Time for a client to read the closing frame.
const FAREWELL: Duration = Duration::from_secs(1);
/// Longest reason in a closing frame, in bytes.
const REASON_BYTES: usize = 123;

/// Returns the client's next message, or `None` at the end, when the closing frame has been
/// answered. Cancel-safe.
///
/// Answers pings. Reads nothing more until such an answer is sent, so they do not queue up for a
/// client that does not read.
pub(crate) async fn hear(socket: &mut WebSocket) -> Option<Message> {
    loop {
        // Send the answer to the previous frame.
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
