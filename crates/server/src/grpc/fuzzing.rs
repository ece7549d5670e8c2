//! Requests without a connection, for fuzz targets.

use super::messages::{DrawRequest, GetStateRequest};
use super::{drawing, state};
use crate::shared::Shared;
use prost::Message as _;

/// Runs one request in Protocol Buffers. Returns 200 if it succeeds, `None` for an unknown method.
pub(crate) async fn request(shared: &Shared, method: &str, message: &[u8]) -> Option<u16> {
    let is_answered = match method {
        "Draw" => match DrawRequest::decode(message) {
            Ok(request) => drawing::draw(shared, &request).await.is_ok(),
            Err(_) => false,
        },
        "GetState" => match GetStateRequest::decode(message) {
            Ok(request) => state::state(shared, &request).await.is_ok(),
            Err(_) => false,
        },
        _ => return None,
    };
    Some(if is_answered { 200 } else { 400 })
}
