//! Stub for builds without gRPC.

use crate::shared::Shared;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Cannot be constructed: the setting is refused.
pub(crate) struct Grpc(std::convert::Infallible);

impl Grpc {
    pub(crate) fn start(_: SocketAddr, _: Arc<Shared>) -> io::Result<Grpc> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        match self.0 {}
    }

    pub(crate) fn stop(self) -> std::thread::Result<()> {
        match self.0 {}
    }
}
