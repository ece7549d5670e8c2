//! Reads a request body, up to a limit.

use crate::http::refusal::Refusal;
use axum::body::Body;
use axum::http::StatusCode;
use futures_util::StreamExt as _;

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read(body: Body, limit: usize) -> Result<Vec<u8>, Refusal> {
    let mut stream = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(part) = stream.next().await {
        let part = part.map_err(|_| Refusal::wrong("ERR the body has not come as a whole".to_owned()))?;
        if part.len() > limit - bytes.len() {
            let reason = format!("ERR the body is longer than {limit} bytes, which http-max-body allows");
            return Err(Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, reason });
        }
        bytes.extend_from_slice(&part);
        assert!(bytes.len() <= limit, "{} bytes were taken, and the limit is {limit}", bytes.len());
    }
    Ok(bytes)
}
