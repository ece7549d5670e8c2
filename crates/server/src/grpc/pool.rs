//! Commands on the requested pool, and their errors as gRPC statuses.

use crate::http::refusal::{LEADER, Refusal};
use crate::http::running::{Words, run};
use crate::resp::Value;
use crate::shared::Shared;
use axum::http::StatusCode;
use tonic::{Code, Status};

/// Returns the key of the requested pool.
pub(super) fn key<'a>(named: &'a str, preset: &'a str) -> Result<&'a [u8], Status> {
    match (named, preset) {
        ("", "") => Err(Status::invalid_argument(
            "name a pool in the request, or one for all requests by the setting grpc-pool",
        )),
        ("", preset) => Ok(preset.as_bytes()),
        (named, _) => Ok(named.as_bytes()),
    }
}

/// Runs a command in database 0.
pub(super) async fn ask(shared: &Shared, words: Words<'_>) -> Result<Value, Refusal> {
    run(shared, 0, &[words]).await
}

/// Converts a refusal to the equivalent gRPC status.
pub(super) fn status(refusal: &Refusal) -> Status {
    let code = match refusal.status {
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::CONFLICT => Code::FailedPrecondition,
        StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        // The outcome: not a code that clients repeat calls for.
        StatusCode::INTERNAL_SERVER_ERROR => Code::Unknown,
        _ => Code::InvalidArgument,
    };
    let mut status = Status::new(code, refusal.reason.as_str());
    if let Some(leader) = refusal.leader().and_then(|leader| leader.parse().ok()) {
        status.metadata_mut().insert(LEADER, leader);
    }
    status
}

/// Returns the error for an answer that no pool command gives.
pub(super) fn misread() -> Status {
    Status::internal(
        "the answer of a command was not understood: this is a defect of Tidemark, please report it",
    )
}
