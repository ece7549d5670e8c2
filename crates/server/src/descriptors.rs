//! The system's limit on open files, which bounds the number of clients.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that the server needs beside those of its clients: listeners, event loops, the log, HTTP.
const OWN_DESCRIPTORS: u64 = 128;

/// The system allows too few open files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooFew {
    /// Open files that it allows.
    pub(crate) files: u64,
    /// Clients for which they suffice beside the reserved places, at least 1.
    pub(crate) clients: usize,
}

/// Asks the system for as many descriptors as so many clients need, and those for whom places are kept beside them. If
/// it gives fewer, what it gives is taken.
pub(crate) fn provide_for(clients: usize, reserved: usize) -> Result<(), TooFew> {
    let own = OWN_DESCRIPTORS + reserved as u64;
    let wanted = clients as u64 + own;
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
    // Raising the maximum takes privileges; below it everybody may go.
    let available = match setrlimit(Resource::Nofile, within) {
        Ok(()) => within.current,
        Err(_) => limit.current,
    };
    let files = available.unwrap_or(wanted);
    if files >= wanted {
        return Ok(());
    }
    Err(TooFew { files, clients: files.saturating_sub(own).max(1) as usize })
}
