//! Limits password guesses: a bounded number of wrong passwords per address, over all transports.
//!
//! Each address has a token bucket, stored in the manner of GCRA. A wrong password takes one token;
//! tokens refill over time. While the bucket is empty no password from the address is checked, so
//! the answer does not reveal whether one is right.

use crate::observe::operator_line::OperatorLine;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidemark_log::Clock;

/// Burst of wrong passwords per address. Large enough that misconfigured clients do not lock out
/// other clients of the address.
const BURST: u32 = 20;
/// Time to refill one token.
const REFILL: Duration = Duration::from_millis(100);
/// Most addresses stored. Above it the longest idle one is evicted.
const ADDRESSES: usize = 10_000;
/// Minimum time between two lines about wrong passwords, in seconds.
const LINE_PAUSE_S: u64 = 1;

/// Result of a login attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Login {
    Right,
    Wrong,
    /// The password was not checked: too many wrong ones from the address.
    Refused,
}

/// A client's address for counting. IPv6 addresses are reduced to their /64 network, which one
/// client may own as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    /// A Unix socket.
    Local,
    Address(IpAddr),
}

impl Source {
    fn of(address: Option<IpAddr>) -> Source {
        match address.map(|address| address.to_canonical()) {
            None => Source::Local,
            Some(IpAddr::V6(address)) if !address.is_loopback() => {
                let network = u128::from(address) >> 64 << 64;
                Source::Address(Ipv6Addr::from(network).into())
            }
            Some(address) => Source::Address(address),
        }
    }
}

/// Counts wrong passwords by address.
pub(crate) struct LoginGuard {
    clock: Clock,
    /// When each address has all its tokens back.
    full_at: Mutex<HashMap<Source, Instant>>,
    /// Number of addresses stored.
    remembered: AtomicUsize,
    failed: AtomicU64,
    refused: AtomicU64,
    line: OperatorLine,
}

impl LoginGuard {
    pub(crate) fn new(clock: &Clock) -> LoginGuard {
        LoginGuard {
            clock: clock.clone(),
            full_at: Mutex::default(),
            remembered: AtomicUsize::new(0),
            failed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            line: OperatorLine::every(LINE_PAUSE_S, clock),
        }
    }

    /// Decides a login attempt from `address`, which is `host:port` or the path of a Unix socket.
    /// `is_right` says whether the password is right.
    pub(crate) fn judge(&self, address: &str, is_right: bool) -> Login {
        let source = address.parse::<SocketAddr>().ok().map(|address| address.ip());
        let login = self.judge_at(Source::of(source), is_right, self.clock.now());
        let counted = match login {
            Login::Right => return login,
            Login::Wrong => &self.failed,
            Login::Refused => &self.refused,
        };
        let so_far = counted.fetch_add(1, Ordering::Relaxed) + 1;
        self.line.write(|| match login {
            Login::Refused => format!(
                "warning: {address} has given too many wrong passwords and is not listened to for a while; refused so since the start: {so_far}"
            ),
            _ => format!("warning: {address} has given a wrong password; wrong ones since the start: {so_far}"),
        });
        login
    }

    fn judge_at(&self, source: Source, is_right: bool, now: Instant) -> Login {
        if is_right && self.remembered.load(Ordering::Acquire) == 0 {
            return Login::Right;
        }
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let full = full_at.get(&source).copied().filter(|full| *full > now);
        if full.is_some_and(|full| full + REFILL > now + REFILL * BURST) {
            return Login::Refused;
        }
        if is_right {
            return Login::Right;
        }
        if full.is_none() && full_at.len() >= ADDRESSES {
            full_at.retain(|_, full| *full > now);
            if full_at.len() >= ADDRESSES {
                let quiet = full_at.iter().min_by_key(|(_, full)| **full).map(|(source, _)| *source);
                if let Some(source) = quiet {
                    full_at.remove(&source);
                }
            }
        }
        full_at.insert(source, full.unwrap_or(now) + REFILL);
        self.remembered.store(full_at.len(), Ordering::Release);
        Login::Wrong
    }

    /// Wrong passwords since the start.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Passwords not checked, since the start.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_log::ManualClock;

    fn source(text: &str) -> Source {
        Source::of(Some(text.parse().expect("an address")))
    }

    #[test]
    fn an_address_that_guesses_is_slowed_and_others_are_not() {
        let clock = ManualClock::new();
        let guard = LoginGuard::new(&Clock::from(&clock));
        let (guesser, other) = ("192.0.2.1:1", "192.0.2.2:1");
        for _ in 0..BURST {
            assert_eq!(guard.judge(guesser, false), Login::Wrong);
        }
        for is_right in [false, true] {
            assert_eq!(guard.judge(guesser, is_right), Login::Refused, "right or not");
        }
        assert_eq!(guard.judge(other, true), Login::Right);
        assert_eq!(guard.judge(other, false), Login::Wrong);
        clock.advance(REFILL);
        assert_eq!(guard.judge(guesser, false), Login::Wrong, "one has come back");
        assert_eq!(guard.judge(guesser, true), Login::Refused);
        clock.advance(REFILL);
        assert_eq!(guard.judge(guesser, true), Login::Right);
        assert_eq!((guard.failed(), guard.refused()), (u64::from(BURST) + 2, 3));
        // Upper bound of the guesses in one hour.
        let guesser = source("192.0.2.1");
        let pause = Duration::from_micros(99_700);
        let mut looked_at = 0;
        for _ in 0..Duration::from_hours(1).as_micros() / pause.as_micros() {
            clock.advance(pause);
            looked_at += u32::from(guard.judge_at(guesser, false, guard.clock.now()) == Login::Wrong);
        }
        assert!(looked_at <= 36_000 + BURST, "{looked_at}");
    }

    #[test]
    fn a_network_counts_as_one_address() {
        assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:2"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
        assert_eq!(source("::ffff:192.0.2.1"), source("192.0.2.1"));
        assert_ne!(source("::1"), Source::Local);
    }

    #[test]
    fn only_so_many_addresses_are_remembered() {
        let guard = LoginGuard::new(&Clock::from(&ManualClock::new()));
        for number in 0..2 * ADDRESSES as u32 {
            let address = Source::Address(std::net::Ipv4Addr::from(number).into());
            assert_eq!(guard.judge_at(address, false, guard.clock.now()), Login::Wrong);
        }
        assert_eq!(guard.remembered.load(Ordering::Relaxed), ADDRESSES);
    }
}
