//! The system's limit on open files: each of our processes has a connection for every subscriber.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that a process has open beside those of its subscribers: its own connections, pipes, the poll.
const OWN_FILES: u64 = 32;

/// The system allows too few open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{subscribers} subscribers need {wanted} open files in a process, and the system allows {allowed}: raise its limit \
     (ulimit -Hn), or take at most {} (--subscribers)",
    allowed.saturating_sub(OWN_FILES)
)]
pub(super) struct TooFew {
    subscribers: u32,
    wanted: u64,
    allowed: u64,
}

/// Raises what this process, and those that it starts, may open as far as that is needed and anybody may raise it.
pub(super) fn provide_for(subscribers: u32) -> Result<(), TooFew> {
    let wanted = u64::from(subscribers) + OWN_FILES;
    let limit = getrlimit(Resource::Nofile);
    let allows = |limit: Option<u64>| limit.is_none_or(|files| files >= wanted);
    if allows(limit.current) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(wanted), ..limit };
    if allows(limit.maximum) && setrlimit(Resource::Nofile, raised).is_ok() {
        return Ok(());
    }
    Err(TooFew { subscribers, wanted, allowed: limit.maximum.or(limit.current).unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::TooFew;

    #[test]
    fn what_is_missing_is_said_and_what_would_do() {
        let error = TooFew { subscribers: 10_000, wanted: 10_032, allowed: 4_096 }.to_string();
        assert!(error.starts_with("10000 subscribers need 10032 open files"), "{error}");
        assert!(error.ends_with("or take at most 4064 (--subscribers)"), "{error}");
    }
}
