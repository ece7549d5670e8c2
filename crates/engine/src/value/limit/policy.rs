//! What a limiter allows: an algorithm and its numbers, as a command was given them.

use std::time::Duration;
use tidemark_counter::limiter::{
    Concurrency, FixedWindow, Gcra, Invalid, LeakyBucket, Rate, SlidingLog, SlidingWindow, TokenBucket,
};

/// How a limiter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// The generic cell rate algorithm: a steady rate, and bursts on top. One word of state.
    Gcra,
    /// A bucket of tokens that is refilled at a steady rate.
    Token,
    /// A bucket that leaks at a steady rate and must not overflow.
    Leaky,
    /// A number in each of the windows that time is cut into.
    Fixed,
    /// A number in the window that ends now, from the counts of two fixed ones.
    Sliding,
    /// A number in any interval as long as the period, whose grants are all remembered.
    Log,
    /// A number that may be under way at once, by leases that end by themselves.
    Concurrency,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Self; 7] =
        [Self::Gcra, Self::Token, Self::Leaky, Self::Fixed, Self::Sliding, Self::Log, Self::Concurrency];

    /// Its name, in lower case.
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

    /// The algorithm of that name, in whatever case.
    pub fn of_name(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| name.eq_ignore_ascii_case(algorithm.name().as_bytes()))
    }

    /// Whether it allows bursts of another size than what it allows in a period.
    pub fn has_burst(self) -> bool {
        matches!(self, Self::Gcra | Self::Token | Self::Leaky)
    }

    /// Whether what it grants is a lease, which is given back by its name.
    pub fn has_leases(self) -> bool {
        self == Self::Concurrency
    }

    /// The byte that stands for it in snapshots.
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

/// The most grants that [`Algorithm::Log`] remembers; who comes then waits for the oldest to leave. Part of what a record of the
/// log means, so it never changes.
pub(super) const LOG_ENTRIES: usize = 1024;

/// What a limiter allows: always such that there is a limiter of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    algorithm: Algorithm,
    limit: u64,
    period_ms: u64,
    burst: u64,
}

impl Policy {
    /// `limit` units in a period of so many milliseconds (of leases: at once, and for so long), and `burst` at one moment if nothing was used for long, which is
    /// the limit itself where [`Algorithm::has_burst`] does not hold.
    ///
    /// # Errors
    /// What of it makes no sense.
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

    /// How it counts.
    pub fn algorithm(self) -> Algorithm {
        self.algorithm
    }

    /// The same with another period, so of leases with another term.
    ///
    /// # Errors
    /// What of it makes no sense.
    pub fn with_period(self, period_ms: u64) -> Result<Self, Invalid> {
        Self::new(self.algorithm, self.limit, period_ms, self.burst)
    }

    /// How many units are allowed in a period, or of leases at once.
    pub fn limit(self) -> u64 {
        self.limit
    }

    /// The period, or how long a lease lasts. Milliseconds.
    pub fn period_ms(self) -> u64 {
        self.period_ms
    }

    /// How many units are allowed at one moment.
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

    /// With no more leases at once than that.
    pub(super) fn concurrency(self, leases_max: usize) -> Concurrency {
        self.try_concurrency().expect(VALID).with_leases(leases_max)
    }
}

const VALID: &str = "a policy was tried when it was made";
