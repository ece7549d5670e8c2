//! Commands on the pool that a request means, and their errors as those of gRPC.

use crate::http::refusal::Refusal;
use crate::http::running::{Words, run};
use crate::resp::Value;
use crate::shared::Shared;
use axum::http::StatusCode;
use tonic::{Code, Status};

/// The key of the pool that a request means.
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

/// The error of gRPC that says what the refusal says.
pub(super) fn status(refusal: &Refusal) -> Status {
    let code = match refusal.status {
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::CONFLICT => Code::FailedPrecondition,
        StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        _ => Code::InvalidArgument,
    };
    Status::new(code, refusal.reason.as_str())
}

/// No command of pools answers like that.
pub(super) fn misread() -> Status {
    Status::internal(
        "the answer of a command was not understood: this is a defect of Tidemark, please report it",
    )
}
