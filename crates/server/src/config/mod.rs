//! Configuration: settings, their sources and their output.
//!
//! Every setting is declared once, in [`SETTINGS`]. Flags, `TIDEMARK_*` variables, the TOML file,
//! `--print-config`, `CONFIG GET` and `CONFIG SET` are derived from that table. A flag overrides a
//! variable, a variable the file, the file the default.

mod event_selection;
mod file;
mod flags;
mod members;
mod setting;
mod short_help;
mod suggestion;
mod value;

pub use event_selection::EventSelection;
pub use file::{FileError, print};
pub(crate) use flags::unknown_variables;
pub use flags::{ConfigError, ServeArgs};
pub(crate) use members::is_address;
pub use setting::{SETTINGS, Setting, find};
pub use short_help::short_help;
pub(crate) use suggestion::nearest;
pub use value::{BindAddress, DebugAccess, LogStorage, MemoryLimit, OutputLimit, OutputLimits};

use crate::net::file_descriptors::{Connections, OWN_HTTP_CONNECTIONS};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tidemark_cluster::net::TlsFiles;
use tidemark_cluster::{Member, Settings as GroupSettings};
use tidemark_engine::keyspace::{CounterDefaults, LEASES, SESSIONS_MAX};
use tidemark_engine::tracking::TrackingLimits;
use tidemark_engine::value::stream::NodeLimits;
use tidemark_log::{Durability, Format};

/// Times of a cluster: see [`tidemark_cluster::Settings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterTiming {
    /// Time between two heartbeats.
    pub heartbeat: Duration,
    /// Least time without a leader before an election.
    pub election_min: Duration,
    /// Most time without a leader before an election; also the lease.
    pub election_max: Duration,
}

impl ClusterTiming {
    const LAN: ClusterTiming = ClusterTiming {
        heartbeat: GroupSettings::LAN.heartbeat,
        election_min: GroupSettings::LAN.election_min,
        election_max: GroupSettings::LAN.election_max,
    };
}

/// Files for TLS between the members of a cluster, in PEM; empty paths for none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterTls {
    /// The member's certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Certificates of the authority that signs those of members.
    pub authority: PathBuf,
}

impl ClusterTls {
    /// Returns the files, or `None` if none is set.
    ///
    /// # Errors
    /// Some are set, and others are not.
    pub(crate) fn files(&self) -> Result<Option<TlsFiles>, String> {
        let ClusterTls { certificate, key, authority } = self.clone();
        match [&certificate, &key, &authority].iter().filter(|path| !path.as_os_str().is_empty()).count() {
            0 => Ok(None),
            3 => Ok(Some(TlsFiles { authority, certificate, key })),
            _ => Err("TLS between members needs all of cluster-tls-cert-file, cluster-tls-key-file and \
                      cluster-tls-ca-cert-file"
                .to_owned()),
        }
    }
}

/// How a leader of a cluster knows that what it reads is not stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterReads {
    /// Most members have promised to follow no other for a while.
    Lease,
    /// It asks the members before the answers leave.
    Index,
}

impl ClusterReads {
    /// Returns its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Index => "index",
        }
    }

    /// Parses a name.
    fn parse(text: &str) -> Result<Self, String> {
        [Self::Lease, Self::Index]
            .into_iter()
            .find(|reads| reads.name().eq_ignore_ascii_case(text.trim()))
            .ok_or_else(|| "must be lease or index".to_owned())
    }
}

/// The effective configuration; [`Config::default`] has the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// File that settings were read from, for `INFO`; not a setting itself.
    pub config_file: Option<PathBuf>,
    /// Addresses to listen on.
    pub bind: Vec<BindAddress>,
    /// TCP port; 0 means none.
    pub port: u16,
    /// Unix socket to listen on.
    pub unixsocket: Option<PathBuf>,
    /// Permission bits of the Unix socket; 0 leaves them to the umask.
    pub unixsocketperm: u32,
    /// Connections that the kernel queues until they are accepted.
    pub tcp_backlog: u16,
    /// Idle time after which the kernel probes a peer; zero means never.
    pub tcp_keepalive: Duration,
    /// Worker threads; 0 means half of the cores.
    pub threads: usize,
    /// Whether the process disables transparent huge pages.
    pub disable_thp: bool,
    /// Address for metrics and health.
    pub http: Option<SocketAddr>,
    /// Address for draws over gRPC.
    pub grpc: Option<SocketAddr>,
    /// Default pool for gRPC requests that name none; empty means that they must.
    pub grpc_pool: String,

    /// Whether other hosts are refused while there is no password.
    pub protected_mode: bool,
    /// Whether a data directory that other users can open is refused.
    pub private_dir: bool,
    /// Password of the default user; empty means none.
    pub requirepass: String,
    /// How long a client may stay connected without authenticating; zero means for ever.
    pub authentication_timeout: Duration,
    /// Origins of other web pages that may use HTTP; `*` stands for all.
    pub http_allow_origin: Vec<String>,
    /// Clients that may use `DEBUG`.
    pub enable_debug_command: DebugAccess,

    /// Most concurrent clients.
    pub maxclients: usize,
    /// Connections beyond `maxclients` reserved for administrators on this machine.
    pub reserved_clients: usize,
    /// Limit on the buffers of all clients together.
    pub maxmemory_clients: MemoryLimit,
    /// Idle time after which a client is disconnected; zero means never.
    pub timeout: Duration,
    /// Longest pause within a request; zero means no limit.
    pub request_timeout: Duration,
    /// Most bytes of an incomplete command.
    pub query_buffer_limit: usize,
    /// Longest argument, in bytes.
    pub max_bulk_bytes: usize,
    /// Most arguments in one command.
    pub max_arguments: usize,
    /// Limits on buffered output, by class of client.
    pub output_limits: OutputLimits,

    /// Most concurrent HTTP connections, without those that watch.
    pub http_connections: usize,
    /// Longest body of an HTTP request, in bytes.
    pub http_max_body: usize,

    /// Limit of a quota that `/check?api_key=` creates; 0 creates none.
    pub http_check_limit: u64,
    /// Idle time after which such a quota is deleted.
    pub http_check_idle: Duration,
    /// Most counters with an idle time; at this number no such quota is created.
    pub http_check_max_keys: usize,
    /// Prefix of the quota's key, before the API key.
    pub http_check_prefix: String,
    /// Default terms of commit for counters.
    pub counters: CounterDefaults,
    /// One in how many moves of counters is sampled, on average, to find the busiest; 0 means none.
    pub counter_churn_sample: u32,
    /// Number of the busiest counters in the metrics.
    pub counter_churn_series: usize,
    /// Whether the metrics show their names; otherwise numbers.
    pub counter_churn_names: bool,
    /// Most concurrent leases of a limiter.
    pub leases_max: usize,
    /// Most sessions of `ONCE`.
    pub once_max_sessions: usize,
    /// When a block of a stream is full.
    pub stream_blocks: NodeLimits,
    /// How long commands wait for the locks of a script, in milliseconds.
    pub busy_reply_threshold_ms: u64,

    /// Data directory.
    pub dir: PathBuf,
    /// When a change is durable.
    pub durability: Durability,
    /// Encoding of records.
    pub log_format: Format,
    /// Where the log and its snapshots are stored.
    pub log_storage: LogStorage,
    /// Size of a log segment, in bytes.
    pub log_segment_bytes: u64,
    /// Age of its first record at which a log segment is closed; zero means never.
    pub log_segment_age: Duration,
    /// Bytes of the log that are retained although a snapshot covers them.
    pub log_retention_bytes: u64,
    /// How long records are retained although a snapshot covers them.
    pub log_retention_age: Duration,
    /// Snapshots that are retained.
    pub snapshot_keep: usize,
    /// Bytes that are read in a second to find damage; 0 for none.
    pub scrub_rate: u64,
    /// Changes after which a snapshot is taken automatically; 0 means never.
    pub snapshot_after: u64,
    /// Bytes of the log after which a snapshot is taken automatically; 0 means never.
    pub snapshot_after_bytes: u64,
    /// Memory for the points of sealed blocks of series, in bytes; 0 means no limit.
    pub series_memory: u64,
    /// Bytes of emissions that are retained for slow or reconnecting subscribers.
    pub watch_retention_bytes: usize,
    /// How long an emission, or a watched read without subscribers, is retained.
    pub watch_retention_age: Duration,
    /// Most concurrent replays of emissions from the log; 0 means none.
    pub watch_backlogs: usize,
    /// Most bytes of the keys that one replay holds.
    pub watch_backlog_bytes: usize,
    /// Time that one change may spend on evaluating watched reads, in microseconds.
    pub watch_write_budget_us: u64,
    /// Microseconds per second and thread that watched reads with subscribers may take.
    pub watch_subscribed_budget_us: u64,
    /// Time that watched reads without subscribers may take of each second, in microseconds.
    pub watch_unsubscribed_budget_us: u64,
    /// Most watched reads.
    pub watch_max_queries: usize,
    /// Most named subscriptions.
    pub watch_max_names: usize,
    /// Most watched reads published on channels.
    pub watch_max_channels: usize,
    /// Most bytes of watched reads and their latest answers for a new one to start.
    pub watch_max_bytes: usize,
    /// Most keys tracked for client-side caching; 0 means no limit.
    pub tracking_table_max_keys: usize,
    /// Most bytes of these keys and their readers.
    pub tracking_table_max_bytes: usize,
    /// Most HTTP connections that watch reads.
    pub http_watch_connections: usize,
    /// Keyspace events that are published.
    pub notify_keyspace_events: EventSelection,
    /// Most connections that follow the log.
    pub changes_followers: usize,
    /// Sinks that receive the log's changes.
    pub sinks: Vec<String>,
    /// Which member of a cluster this server is; 0 if its settings name none.
    pub cluster_node: u64,
    /// The members that found the cluster.
    pub cluster_members: Vec<Member>,
    /// Name of the cluster for clients of Redis Sentinel.
    pub cluster_name: String,
    /// TCP port at which this member is a sentinel for clients; 0 for none but that of all clients.
    pub cluster_sentinel_port: u16,
    /// What a leader does before it answers reads.
    pub cluster_reads: ClusterReads,
    /// Where the others and clients reach a member that joins, as `HOST:PORT` each.
    pub cluster_address: Option<(String, String)>,
    /// Servers of members that a new member asks to take it in.
    pub cluster_join: Vec<String>,
    /// Heartbeats and elections.
    pub cluster_timing: ClusterTiming,
    /// TLS between members.
    pub cluster_tls: ClusterTls,
    /// Whether a member takes part that may have lost what it acknowledged.
    pub cluster_accept_loss: bool,
    /// How long a graceful stop waits for clients to read their replies.
    pub shutdown_timeout: Duration,

    /// Settings of Redis that a flag or the file set to values without effect.
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
            once_max_sessions: SESSIONS_MAX,
            stream_blocks: NodeLimits::DEFAULT,
            busy_reply_threshold_ms: 5_000,
            dir: PathBuf::from("./tidemark-data"),
            durability: Durability::default(),
            log_format: Format::default(),
            log_storage: LogStorage::default(),
            log_segment_bytes: 64 * 1024 * 1024,
            log_segment_age: Duration::ZERO,
            log_retention_bytes: 0,
            log_retention_age: Duration::ZERO,
            snapshot_keep: 2,
            scrub_rate: 8 << 20,
            snapshot_after: 5_000_000,
            snapshot_after_bytes: 256 << 20,
            series_memory: 0,
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
            cluster_node: 0,
            cluster_members: Vec::new(),
            cluster_name: "tidemark".to_owned(),
            cluster_sentinel_port: 0,
            cluster_reads: ClusterReads::Lease,
            cluster_address: None,
            cluster_join: Vec::new(),
            cluster_timing: ClusterTiming::LAN,
            cluster_tls: ClusterTls::default(),
            cluster_accept_loss: false,
            shutdown_timeout: Duration::from_secs(10),
            without_effect: Vec::new(),
        }
    }
}

impl Config {
    /// Returns the connections that need file descriptors.
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

    /// Returns the HTTP connections beyond watching ones and those with guaranteed descriptors.
    fn more_http_connections(&self) -> usize {
        self.http_connections.saturating_sub(OWN_HTTP_CONNECTIONS)
    }

    /// Limits HTTP connections to `places` beyond those with guaranteed descriptors; at most half
    /// are for ordinary requests.
    pub(crate) fn fit_http(&mut self, places: usize) {
        let more = self.more_http_connections().min(places / 2);
        self.http_connections = self.http_connections.min(OWN_HTTP_CONNECTIONS + more);
        self.http_watch_connections = self.http_watch_connections.min(places - more);
    }

    /// Returns the memory that the points of sealed blocks may take, in bytes.
    pub(crate) fn series_memory_limit(&self) -> usize {
        match self.series_memory {
            0 => usize::MAX,
            bytes => usize::try_from(bytes).unwrap_or(usize::MAX),
        }
    }

    /// Returns the limits of the table for client-side caching.
    pub(crate) fn tracking_limits(&self) -> TrackingLimits {
        let keys = Some(self.tracking_table_max_keys).filter(|keys| *keys > 0);
        TrackingLimits { keys, bytes: self.tracking_table_max_bytes }
    }

    /// Returns the effective number of worker threads.
    pub fn worker_count(&self) -> usize {
        if self.threads > 0 {
            return self.threads;
        }
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // The other half is for the log's threads, local clients and the kernel's networking.
        (cores / 2).max(1)
    }
}

#[cfg(test)]
mod tests;
