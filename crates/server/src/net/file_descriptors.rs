//! The system's limit on open files, which bounds the number of clients.

use crate::http::SPARE_PLACES;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that the server needs besides its clients': listeners, event loops, the log, HTTP,
/// gRPC.
const OWN_DESCRIPTORS: u64 = 128 + OWN_GRPC_CONNECTIONS as u64 + SPARE_PLACES as u64;

/// HTTP connections included in these.
pub(crate) const OWN_HTTP_CONNECTIONS: usize = 32;

/// gRPC connections included in these. Each carries many calls.
pub(crate) const OWN_GRPC_CONNECTIONS: usize = 64;

/// Numbers of connections that take a descriptor each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Connections {
    /// Ordinary clients.
    pub(crate) clients: usize,
    /// Reserved places besides them.
    pub(crate) reserved: usize,
    /// HTTP connections besides [`OWN_HTTP_CONNECTIONS`].
    pub(crate) http: usize,
}

/// The system allows too few open files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooFew {
    /// Open files that it allows.
    pub(crate) files: u64,
    /// Clients that fit besides the reserved places, at least 1.
    pub(crate) clients: usize,
    /// HTTP connections that fit besides them and [`OWN_HTTP_CONNECTIONS`].
    pub(crate) http: usize,
}

/// Raises the limit to the descriptors needed, or as far as the system allows.
///
/// # Errors
/// If that is not enough, with the numbers that fit.
pub(crate) fn provide_for(connections: &Connections) -> Result<(), TooFew> {
    let own = OWN_DESCRIPTORS + connections.reserved as u64;
    let wanted = connections.clients as u64 + connections.http as u64 + own;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum.map(|maximum| maximum.max(wanted)) };
    let within =
        Rlimit { current: limit.maximum.map_or(Some(wanted), |maximum| Some(maximum.min(wanted))), ..limit };
    if setrlimit(Resource::Nofile, raised).is_ok() {
        return Ok(());
    }
    // Raising the maximum takes privileges; raising the current limit up to it does not.
    let available = match setrlimit(Resource::Nofile, within) {
        Ok(()) => within.current,
        Err(_) => limit.current,
    };
    let files = available.unwrap_or(wanted);
    if files >= wanted {
        return Ok(());
    }
    let (clients, http) = share_out(files.saturating_sub(own) as usize, connections);
    Err(TooFew { files, clients, http })
}

/// Divides scarce places: at most a quarter goes to HTTP before the clients have theirs.
fn share_out(places: usize, wanted: &Connections) -> (usize, usize) {
    let for_http = wanted.http.min(places / 4);
    let clients = wanted.clients.min(places - for_http).max(1);
    (clients, wanted.http.min(places.saturating_sub(clients)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_come_first_where_places_are_few() {
        let shared_out =
            |places, clients, http| share_out(places, &Connections { clients, reserved: 4, http });
        assert_eq!(shared_out(900, 10_000, 0), (900, 0));
        assert_eq!(shared_out(900, 10_000, 1_000), (675, 225));
        assert_eq!(shared_out(900, 10_000, 10), (890, 10));
        assert_eq!(shared_out(124, 64, 1_000), (64, 60));
        assert_eq!(shared_out(0, 64, 1_000), (1, 0));
    }
}
