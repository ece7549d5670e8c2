//! What a limiter allows: an algorithm and its parameters, as in commands.

use std::time::Duration;
use tidemark_counter::limiter::{
    Concurrency, FixedWindow, Gcra, Invalid, LeakyBucket, Rate, SlidingLog, SlidingWindow, TokenBucket,
};

/// How a limiter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// The generic cell rate algorithm: a steady rate, and bursts on top. One word of state.
    Gcra,
    /// A token bucket that is refilled at a steady rate.
    Token,
    /// A bucket that leaks at a steady rate and must not overflow.
    Leaky,
    /// A number in each fixed window.
    Fixed,
    /// A number in the window that ends now, estimated from two fixed windows.
    Sliding,
    /// A number in any interval as long as the period; all grants are recorded.
    Log,
    /// A number of concurrent units, by leases that expire.
    Concurrency,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 7] =
        [Self::Gcra, Self::Token, Self::Leaky, Self::Fixed, Self::Sliding, Self::Log, Self::Concurrency];

    /// Returns its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gcra => "gcra",
            Self::Token => "token",
            Self::Leaky => "leaky",
            Self::Fixed => "fixed",
            Self::Sliding => "sliding",
            Self::Log => "log",
            Self::Concurrency => "concurrency",
        }
    }

    /// Finds an algorithm by name, ignoring case.
    pub fn of_name(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| name.eq_ignore_ascii_case(algorithm.name().as_bytes()))
    }

    /// Whether it allows bursts of another size than its limit per period.
    pub fn has_burst(self) -> bool {
        matches!(self, Self::Gcra | Self::Token | Self::Leaky)
    }

    /// Whether it grants leases, which are released by ID.
    pub fn has_leases(self) -> bool {
        self == Self::Concurrency
    }

    /// Returns its byte in snapshots.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Gcra => 1,
            Self::Token => 2,
            Self::Leaky => 3,
            Self::Fixed => 4,
            Self::Sliding => 5,
            Self::Log => 6,
            Self::Concurrency => 7,
        }
    }

    pub(super) fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.code() == code)
    }
}

/// Most grants that [`Algorithm::Log`] records; further requests wait for the oldest to expire.
/// Records of the log depend on it, so it must never change.
pub(super) const LOG_ENTRIES: usize = 1024;

/// A valid definition of a limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    algorithm: Algorithm,
    limit: u64,
    period_ms: u64,
    burst: u64,
}

impl Policy {
    /// Creates a policy of `limit` units per `period_ms` (for leases: concurrent units, and their
    /// term). `burst` units are allowed at one moment after a long pause; it is `limit` unless
    /// [`Algorithm::has_burst`].
    ///
    /// # Errors
    /// If the parameters are invalid.
    pub fn new(algorithm: Algorithm, limit: u64, period_ms: u64, burst: u64) -> Result<Self, Invalid> {
        let burst = if algorithm.has_burst() { burst } else { limit };
        let policy = Self { algorithm, limit, period_ms, burst };
        match algorithm {
            Algorithm::Gcra => policy.try_gcra().map(drop),
            Algorithm::Token => policy.try_token().map(drop),
            Algorithm::Leaky => policy.try_leaky().map(drop),
            Algorithm::Fixed => policy.try_fixed().map(drop),
            Algorithm::Sliding => policy.try_sliding().map(drop),
            Algorithm::Log => policy.try_log().map(drop),
            Algorithm::Concurrency => policy.try_concurrency().map(drop),
        }?;
        Ok(policy)
    }

    /// Returns its algorithm.
    pub fn algorithm(self) -> Algorithm {
        self.algorithm
    }

    /// Returns the policy with another period, or another term for leases.
    ///
    /// # Errors
    /// If the parameters are invalid.
    pub fn with_period(self, period_ms: u64) -> Result<Self, Invalid> {
        Self::new(self.algorithm, self.limit, period_ms, self.burst)
    }

    /// Returns the units allowed per period, or concurrently for leases.
    pub fn limit(self) -> u64 {
        self.limit
    }

    /// Returns the period, or the term of a lease. Milliseconds.
    pub fn period_ms(self) -> u64 {
        self.period_ms
    }

    /// Returns the units allowed at one moment.
    pub fn burst(self) -> u64 {
        self.burst
    }

    fn period(self) -> Duration {
        Duration::from_millis(self.period_ms)
    }

    fn rate(self) -> Result<Rate, Invalid> {
        Rate::new(self.limit, self.period())
    }

    fn try_gcra(self) -> Result<Gcra, Invalid> {
        Gcra::new(self.burst, self.rate()?)
    }

    fn try_token(self) -> Result<TokenBucket, Invalid> {
        TokenBucket::new(self.burst, self.rate()?)
    }

    fn try_leaky(self) -> Result<LeakyBucket, Invalid> {
        LeakyBucket::new(self.burst, self.rate()?)
    }

    fn try_fixed(self) -> Result<FixedWindow, Invalid> {
        FixedWindow::new(self.limit, self.period())
    }

    fn try_sliding(self) -> Result<SlidingWindow, Invalid> {
        SlidingWindow::new(self.limit, self.period())
    }

    fn try_log(self) -> Result<SlidingLog, Invalid> {
        Ok(SlidingLog::new(self.limit, self.period())?.with_entries(LOG_ENTRIES))
    }

    fn try_concurrency(self) -> Result<Concurrency, Invalid> {
        Concurrency::new(self.limit, self.period())
    }

    pub(super) fn gcra(self) -> Gcra {
        self.try_gcra().expect(VALID)
    }

    pub(super) fn token(self) -> TokenBucket {
        self.try_token().expect(VALID)
    }

    pub(super) fn leaky(self) -> LeakyBucket {
        self.try_leaky().expect(VALID)
    }

    pub(super) fn fixed(self) -> FixedWindow {
        self.try_fixed().expect(VALID)
    }

    pub(super) fn sliding(self) -> SlidingWindow {
        self.try_sliding().expect(VALID)
    }

    pub(super) fn log(self) -> SlidingLog {
        self.try_log().expect(VALID)
    }

    /// Returns the rule, with at most `leases_max` leases.
    pub(super) fn concurrency(self, leases_max: usize) -> Concurrency {
        self.try_concurrency().expect(VALID).with_leases(leases_max)
    }
}

const VALID: &str = "a policy was tried when it was made";
