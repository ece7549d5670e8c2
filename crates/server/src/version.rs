//! Versions that the server reports.

use tidemark_cluster::Level;
use tidemark_cluster::net::{Build, Protocols};
use tidemark_engine::record::level;

/// The Redis version whose commands and replies are offered. Clients adapt to it.
pub(crate) const REDIS_VERSION: &str = "7.4.0";
/// The program's own version.
pub(crate) const TIDEMARK_VERSION: &str = env!("CARGO_PKG_VERSION");
/// Name and version, as Redis writes them, of the module of Redis whose commands are offered.
pub(crate) const TIME_SERIES_MODULE: (&str, i64) = ("timeseries", 81_000);

/// Environment variable of tests that has a member pose as an older build: its version, and the highest level
/// of records that it knows, as in `0.0.9 1`.
#[cfg(feature = "fuzzing")]
const OLDER_BUILD: &str = "OLDER_BUILD_FOR_TESTS";

/// What a member states of this build to others.
pub(crate) fn build() -> Build {
    #[cfg(feature = "fuzzing")]
    if let Ok(older) = std::env::var(OLDER_BUILD) {
        let (version, level) = older.split_once(' ').expect("a test names a version and a level");
        let level = level.parse().map(Level).expect("a test names a level");
        return Build { protocols: Protocols::OWN, level, version: version.to_owned() };
    }
    Build { protocols: Protocols::OWN, level: Level(level::NEWEST), version: TIDEMARK_VERSION.to_owned() }
}
