//! Configuration: what may be set, where it comes from, and how it is shown.
//!
//! Every option is declared once, in [`SETTINGS`]. Flags, `TIDEMARK_*` variables, the TOML file, `--print-config`,
//! `CONFIG GET` and `CONFIG SET` are all derived from that table. A flag wins over a variable, a variable over the
//! file, the file over the default.

mod event_selection;
mod file;
mod flags;
mod setting;
mod short_help;
mod suggestion;
mod value;

pub use event_selection::EventSelection;
pub use file::{FileError, print};
pub(crate) use flags::unknown_variables;
pub use flags::{ConfigError, ServeArgs};
pub use setting::{SETTINGS, Setting, find};
pub use short_help::short_help;
pub(crate) use suggestion::nearest;
pub use value::{BindAddress, DebugAccess, LogStorage, MemoryLimit, OutputLimit, OutputLimits};

use crate::net::file_descriptors::{Connections, OWN_HTTP_CONNECTIONS};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tidemark_engine::keyspace::{CounterDefaults, LEASES};
use tidemark_engine::tracking::TrackingLimits;
use tidemark_log::{Durability, Format};

/// The effective configuration, typed. [`Config::default`] is what a newcomer gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The file that settings were read from. For `INFO`; not a setting itself.
    pub config_file: Option<PathBuf>,
    /// Addresses to listen on.
    pub bind: Vec<BindAddress>,
    /// TCP port; 0 means none.
    pub port: u16,
    /// Unix socket to listen on.
    pub unixsocket: Option<PathBuf>,
    /// Permission bits of the Unix socket; 0 leaves them to the umask.
    pub unixsocketperm: u32,
    /// Connections that the kernel may hold until they are accepted.
    pub tcp_backlog: u16,
    /// Idle time after which the kernel probes a peer; zero means never.
    pub tcp_keepalive: Duration,
    /// Worker threads; 0 means half of the cores.
    pub threads: usize,
    /// Whether the process does without transparent huge pages.
    pub disable_thp: bool,
    /// Where metrics and health are served.
    pub http: Option<SocketAddr>,
    /// Where draws are served over gRPC.
    pub grpc: Option<SocketAddr>,
    /// The pool of requests over gRPC that name none; empty means that they must.
    pub grpc_pool: String,

    /// Refuse other hosts while there is no password.
    pub protected_mode: bool,
    /// Refuse a data directory that other users of the machine can open.
    pub private_dir: bool,
    /// The password of the default user; empty means none.
    pub requirepass: String,
    /// How long a client may stay connected without giving the password; zero means for ever.
    pub authentication_timeout: Duration,
    /// Origins of web pages, beside the server's own, that may watch reads over HTTP; `*` stands for all.
    pub http_allow_origin: Vec<String>,
    /// Who may use `DEBUG`.
    pub enable_debug_command: DebugAccess,

    /// The most clients at once.
    pub maxclients: usize,
    /// Places beyond `maxclients` for those on this machine who administer.
    pub reserved_clients: usize,
    /// What the buffers of all clients may use together.
    pub maxmemory_clients: MemoryLimit,
    /// Idle time after which a client is disconnected; zero means never.
    pub timeout: Duration,
    /// How long the rest of a request may be waited for without a byte of it arriving; zero means for ever.
    pub request_timeout: Duration,
    /// The most bytes that a client may have sent without completing a command.
    pub query_buffer_limit: usize,
    /// The longest argument, in bytes.
    pub max_bulk_bytes: usize,
    /// The most arguments in one command.
    pub max_arguments: usize,
    /// How much may wait for a slow reader, by class of client.
    pub output_limits: OutputLimits,

    /// How many connections over HTTP there may be at once beside those that watch.
    pub http_connections: usize,
    /// The longest body of a request over HTTP, in bytes.
    pub http_max_body: usize,

    /// The limit of a quota that `/check?api_key=` creates; 0 creates none.
    pub http_check_limit: u64,
    /// How long such a quota stays when nobody checks or releases it.
    pub http_check_idle: Duration,
    /// How many counters that leave when they are idle there may be before no such quota is created.
    pub http_check_max_keys: usize,
    /// What stands before an API's key in the quota's key.
    pub http_check_prefix: String,
    /// How counters are committed that say nothing themselves.
    pub counters: CounterDefaults,
    /// Of how many moves of counters one is looked at, on average, for who moves most; 0: none.
    pub counter_churn_sample: u32,
    /// How many of the counters that move most are among the metrics.
    pub counter_churn_series: usize,
    /// Whether the metrics name them; otherwise a number stands for each.
    pub counter_churn_names: bool,
    /// How many leases a concurrency limit may have at once.
    pub leases_max: usize,

    /// Where the data lives.
    pub dir: PathBuf,
    /// When a change is durable.
    pub durability: Durability,
    /// How records are spelled.
    pub log_format: Format,
    /// Where the log and its snapshots are kept.
    pub log_storage: LogStorage,
    /// Size of a log segment, in bytes.
    pub log_segment_bytes: u64,
    /// Age of its first record at which a log segment is closed; zero means never.
    pub log_segment_age: Duration,
    /// Bytes of the log that are kept although a snapshot covers them.
    pub log_retention_bytes: u64,
    /// How long records are kept although a snapshot covers them.
    pub log_retention_age: Duration,
    /// Snapshots that are kept.
    pub snapshot_keep: usize,
    /// Changes after which a snapshot is taken by itself; 0 means never.
    pub snapshot_after: u64,
    /// How many bytes of the log make a snapshot due; 0 is never.
    pub snapshot_after_bytes: u64,
    /// Bytes of emissions of watched reads that are kept for subscribers who are slow or come back.
    pub watch_retention_bytes: usize,
    /// How long an emission, and a watched read that nobody subscribes to, is kept.
    pub watch_retention_age: Duration,
    /// How many subscriptions at a time get emissions that are not retained any more, made again from the log; 0 means none.
    pub watch_backlogs: usize,
    /// What the keys may take from which the emissions of one of them are made again.
    pub watch_backlog_bytes: usize,
    /// What one change may spend on answers of watched reads, in microseconds.
    pub watch_write_budget_us: u64,
    /// What watched reads with subscribers may spend of each second of each thread, in microseconds.
    pub watch_subscribed_budget_us: u64,
    /// What watched reads without subscribers may spend of each second, in microseconds.
    pub watch_unsubscribed_budget_us: u64,
    /// How many different reads may be watched.
    pub watch_max_queries: usize,
    /// How many named subscriptions there may be.
    pub watch_max_names: usize,
    /// How many watched reads may be published on channels.
    pub watch_max_channels: usize,
    /// What they and their latest answers may take when a further one begins, in bytes.
    pub watch_max_bytes: usize,
    /// How many keys are remembered for clients that keep what they read; 0 is no limit.
    pub tracking_table_max_keys: usize,
    /// What these keys and their readers may take, in bytes.
    pub tracking_table_max_bytes: usize,
    /// How many connections may watch reads over HTTP.
    pub http_watch_connections: usize,
    /// Which events of keys are published.
    pub notify_keyspace_events: EventSelection,
    /// How many connections may follow the log.
    pub changes_followers: usize,
    /// Where the log's changes are passed on.
    pub sinks: Vec<String>,
    /// How long a graceful stop waits for clients to read their replies.
    pub shutdown_timeout: Duration,

    /// Settings of Redis that a flag or the file has given values that have no effect here.
    pub without_effect: Vec<&'static str>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            config_file: None,
            bind: vec![BindAddress::required("127.0.0.1"), BindAddress::optional("::1")],
            port: 7379,
            unixsocket: None,
            unixsocketperm: 0,
            tcp_backlog: 511,
            tcp_keepalive: Duration::from_mins(5),
            threads: 0,
            disable_thp: true,
            http: None,
            grpc: None,
            grpc_pool: String::new(),
            protected_mode: true,
            private_dir: true,
            requirepass: String::new(),
            authentication_timeout: Duration::from_mins(1),
            http_allow_origin: Vec::new(),
            enable_debug_command: DebugAccess::No,
            maxclients: 10_000,
            reserved_clients: 4,
            maxmemory_clients: MemoryLimit::Percent(25),
            timeout: Duration::ZERO,
            request_timeout: Duration::from_mins(1),
            query_buffer_limit: 1024 * 1024 * 1024,
            max_bulk_bytes: 512 * 1024 * 1024,
            max_arguments: 1024 * 1024,
            output_limits: OutputLimits::default(),
            http_connections: 256,
            http_max_body: 64 * 1024,
            http_check_limit: 1000,
            http_check_idle: Duration::from_hours(24),
            http_check_max_keys: 100_000,
            http_check_prefix: "check:".to_owned(),
            counters: CounterDefaults::default(),
            counter_churn_sample: 16,
            counter_churn_series: 10,
            counter_churn_names: false,
            leases_max: LEASES,
            dir: PathBuf::from("./tidemark-data"),
            durability: Durability::default(),
            log_format: Format::default(),
            log_storage: LogStorage::default(),
            log_segment_bytes: 64 * 1024 * 1024,
            log_segment_age: Duration::ZERO,
            log_retention_bytes: 0,
            log_retention_age: Duration::ZERO,
            snapshot_keep: 2,
            snapshot_after: 5_000_000,
            snapshot_after_bytes: 256 << 20,
            watch_retention_bytes: 256 << 20,
            watch_retention_age: Duration::from_hours(1),
            watch_backlogs: 2,
            watch_backlog_bytes: 256 << 20,
            watch_write_budget_us: 500,
            watch_subscribed_budget_us: 1_000_000,
            watch_unsubscribed_budget_us: 50_000,
            watch_max_queries: 1_000_000,
            watch_max_names: 10_000,
            watch_max_channels: 10_000,
            watch_max_bytes: 1 << 30,
            tracking_table_max_keys: 1_000_000,
            tracking_table_max_bytes: 256 << 20,
            http_watch_connections: 1_000,
            notify_keyspace_events: EventSelection::default(),
            changes_followers: 64,
            sinks: Vec::new(),
            shutdown_timeout: Duration::from_secs(10),
            without_effect: Vec::new(),
        }
    }
}

impl Config {
    /// The connections that need descriptors.
    pub(crate) fn connections(&self) -> Connections {
        Connections {
            clients: self.maxclients,
            reserved: self.reserved_clients,
            http: if self.http.is_some() {
                self.http_watch_connections + self.more_http_connections()
            } else {
                0
            },
        }
    }

    /// Connections over HTTP beside those that watch, and beside those for which there are always descriptors.
    fn more_http_connections(&self) -> usize {
        self.http_connections.saturating_sub(OWN_HTTP_CONNECTIONS)
    }

    /// Lets no more connections over HTTP be there than `places` allow beside those for which there are always descriptors; half of
    /// them are for requests at most.
    pub(crate) fn fit_http(&mut self, places: usize) {
        let more = self.more_http_connections().min(places / 2);
        self.http_connections = self.http_connections.min(OWN_HTTP_CONNECTIONS + more);
        self.http_watch_connections = self.http_watch_connections.min(places - more);
    }

    /// How much is remembered for clients that keep what they read.
    pub(crate) fn tracking_limits(&self) -> TrackingLimits {
        let keys = Some(self.tracking_table_max_keys).filter(|keys| *keys > 0);
        TrackingLimits { keys, bytes: self.tracking_table_max_bytes }
    }

    /// The number of worker threads in effect.
    pub fn worker_count(&self) -> usize {
        if self.threads > 0 {
            return self.threads;
        }
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // The other half is for the log's threads, for clients on this machine and for the kernel's share of the network.
        (cores / 2).max(1)
    }
}

#[cfg(test)]
mod tests;
