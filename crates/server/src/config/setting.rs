//! The table of settings: the source of flags, environment, file, `CONFIG GET` and `CONFIG SET`.

use super::members::{addresses, cluster_name, members, servers, show_members};
use super::value::{
    DebugAccess, LogStorage, address_or_off, bind_addresses, bytes, memory_limit, number, origins,
    output_limits, permissions, seconds, show_bind_addresses, show_memory_limit, show_output_limits,
    show_yes_no, sinks, sinks_without_secrets, yes_no,
};
use super::{ClusterReads, Config, EventSelection};
use crate::grpc;
use std::path::PathBuf;
use std::time::Duration;
use tidemark_engine::keyspace::MAX_BYTES;
use tidemark_log::Durability;

/// A setting. It has Redis's name if Redis has the same setting.
pub struct Setting {
    /// Name in the file and in `CONFIG GET`; with `--` in front, the flag.
    pub name: &'static str,
    /// Another name, accepted everywhere.
    pub alias: Option<&'static str>,
    /// Heading in the output.
    pub group: &'static str,
    /// Placeholder for the value in `--help`.
    pub placeholder: &'static str,
    /// Meaning, unit and caveats.
    pub help: &'static str,
    /// TOML form of the value.
    pub literal: Literal,
    /// Whether `CONFIG SET` may change it while the server runs.
    pub changeable: bool,
    /// Value of a setting without a field of its own until it is set.
    fallback: &'static str,
    get: fn(&Setting, &Config) -> String,
    set: fn(&Setting, &mut Config, &str) -> Result<(), String>,
}

impl Setting {
    /// Returns the value as text.
    pub fn get(&self, config: &Config) -> String {
        (self.get)(self, config)
    }

    /// Sets the value; the error completes the sentence "the value …".
    pub fn set(&self, config: &mut Config, text: &str) -> Result<(), String> {
        (self.set)(self, config, text)
    }

    /// Returns its name and its alias.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        [Some(self.name), self.alias].into_iter().flatten()
    }

    /// Returns what the value sets: two settings with the same subject must not both be given.
    pub(crate) fn subject(&self) -> &'static str {
        if self.name == "appendfsync" { "durability" } else { self.name }
    }

    /// Whether the value or a part of it must not appear in messages.
    pub(super) fn is_secret(&self) -> bool {
        matches!(self.name, "requirepass" | "sink")
    }

    /// Whether a value contains a secret.
    pub(super) fn holds_secret(&self, value: &str) -> bool {
        match self.name {
            // A login precedes an `@`.
            "sink" => value.contains('@'),
            _ => self.is_secret() && !value.is_empty(),
        }
    }

    /// Returns the part of a value, valid or not, that messages may show.
    pub(super) fn without_secrets(&self, value: &str) -> String {
        match self.name {
            "sink" => sinks_without_secrets(value),
            _ if self.is_secret() => String::new(),
            _ => value.to_owned(),
        }
    }

    /// Returns the value as clients may see it.
    pub(crate) fn shown_to_clients(&self, config: &Config) -> String {
        match self.get(config) {
            empty if empty.is_empty() => empty,
            _ if self.name == "requirepass" => HIDDEN.to_owned(),
            value => self.without_secrets(&value),
        }
    }

    /// Whether `text` is the only possible value of a fixed setting.
    fn describes(&self, text: &str) -> bool {
        text.eq_ignore_ascii_case(self.fallback)
    }

    fn cannot_be_other(&self) -> String {
        let value = if self.fallback.is_empty() { "empty" } else { self.fallback };
        format!("must be {value}: {}", self.help)
    }

    /// Like [`Setting::set`] on a running server: a value without effect is refused.
    pub fn set_running(&self, config: &mut Config, text: &str) -> Result<(), String> {
        self.set(config, text)?;
        if config.without_effect.contains(&self.name) { Err(self.cannot_be_other()) } else { Ok(()) }
    }

    /// Whether it exists only to accept configurations written for Redis.
    pub fn is_compatibility(&self) -> bool {
        self.group == COMPATIBILITY
    }
}

impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setting").field("name", &self.name).finish_non_exhaustive()
    }
}

/// TOML form of a value. Each also accepts a quoted string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Literal {
    /// `"text"`
    Text,
    /// `123`
    Number,
    /// `true`
    Switch,
}

/// Returns the environment variable for a name or an alias.
pub(super) fn variable(name: &str) -> String {
    format!("TIDEMARK_{}", name.replace('-', "_").to_ascii_uppercase())
}

/// Finds a setting by name or alias, ignoring case.
pub fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| {
        setting.name.eq_ignore_ascii_case(name)
            || setting.alias.is_some_and(|alias| alias.eq_ignore_ascii_case(name))
    })
}

/// Shown to clients in place of a password.
const HIDDEN: &str = "(hidden)";

const NETWORK: &str = "Network";
const ACCESS: &str = "Access";
const LIMITS: &str = "Limits";
const STORAGE: &str = "Storage";
const COUNTERS: &str = "Counters";
const LIMITERS: &str = "Limiters";
const WATCHING: &str = "Watching";
const CHANGES: &str = "Changes";
const CLUSTER: &str = "Cluster";
const COMPATIBILITY: &str = "Compatibility with Redis";

/// Longest default age of uncommitted changes of a counter: a day, in milliseconds.
const COUNTER_AGE_MAX_MS: u64 = 86_400_000;

/// Largest default limit of a quota, in units.
const HTTP_CHECK_LIMIT_MAX: u64 = 1_000_000_000_000_000;

/// Longest idle time of a quota that a check created: ten years, in seconds.
const HTTP_CHECK_IDLE_MAX_S: u64 = 315_360_000;

/// Most leases of a limiter: a snapshot writes them in one piece.
const LEASES_MAX: u64 = 100_000;

/// Largest size of the log in a setting: a tebibyte.
const LOG_BYTES_MAX: u64 = 1 << 40;
/// Largest rate at which damage is looked for.
const SCRUB_RATE_MAX: u64 = 1 << 40;

/// Largest time of the cluster: a minute, in milliseconds.
const CLUSTER_MS_MAX: u64 = 60_000;

/// All settings, in order of output.
pub static SETTINGS: &[Setting] = &[
    Setting {
        name: "bind",
        alias: None,
        group: NETWORK,
        placeholder: "ADDRESSES",
        help: "Addresses to listen on, separated by spaces or commas. `-` before one says that it may be missing, \
               `*` means all. Beyond loopback, set a password too.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| show_bind_addresses(&config.bind),
        set: |_, config, text| bind_addresses(text).map(|bind| config.bind = bind),
    },
    Setting {
        name: "port",
        alias: None,
        group: NETWORK,
        placeholder: "PORT",
        help: "TCP port to listen on; 0 listens on no TCP port.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.port.to_string(),
        set: |_, config, text| number(text, 0, 65_535).map(|port| config.port = port as u16),
    },
    Setting {
        name: "unixsocket",
        alias: None,
        group: NETWORK,
        placeholder: "PATH",
        help: "Unix socket to listen on as well; empty for none.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| {
            config.unixsocket.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
        },
        set: |_, config, text| {
            config.unixsocket = (!text.is_empty()).then(|| PathBuf::from(text));
            Ok(())
        },
    },
    Setting {
        name: "unixsocketperm",
        alias: None,
        group: NETWORK,
        placeholder: "OCTAL",
        help: "Permission bits of the Unix socket, such as 700; 0 leaves them to the umask.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| format!("{:o}", config.unixsocketperm),
        set: |_, config, text| permissions(text).map(|bits| config.unixsocketperm = bits),
    },
    Setting {
        name: "tcp-backlog",
        alias: None,
        group: NETWORK,
        placeholder: "CONNECTIONS",
        help: "Connections that the kernel holds until they are accepted.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.tcp_backlog.to_string(),
        set: |_, config, text| number(text, 1, 65_535).map(|backlog| config.tcp_backlog = backlog as u16),
    },
    Setting {
        name: "tcp-keepalive",
        alias: None,
        group: NETWORK,
        placeholder: "SECONDS",
        help: "Seconds of silence after which the kernel probes whether a client is still there; 0 never.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.tcp_keepalive.as_secs().to_string(),
        set: |_, config, text| {
            number(text, 0, 32_767).map(|value| config.tcp_keepalive = Duration::from_secs(value))
        },
    },
    Setting {
        name: "threads",
        alias: Some("io-threads"),
        group: NETWORK,
        placeholder: "NUMBER",
        help: "Threads that serve clients; 0 uses half of the cores.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.threads.to_string(),
        set: |_, config, text| number(text, 0, 256).map(|threads| config.threads = threads as usize),
    },
    Setting {
        name: "disable-thp",
        alias: None,
        group: NETWORK,
        placeholder: "yes|no",
        help: "Do without huge pages of memory: clearing 2 MiB when one is first touched keeps clients waiting.",
        literal: Literal::Switch,
        changeable: false,
        fallback: "",
        get: |_, config| show_yes_no(config.disable_thp),
        set: |_, config, text| yes_no(text).map(|value| config.disable_thp = value),
    },
    Setting {
        name: "http",
        alias: None,
        group: NETWORK,
        placeholder: "ADDRESS:PORT",
        help: "Where HTTP is served, such as 127.0.0.1:7380: /metrics, /health/live, /health/ready, /v1/watch, \
               /v1/changes, /v1/check and /v1/release; off or empty for nowhere. All but the first three ask for the password.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| config.http.map(|address| address.to_string()).unwrap_or_default(),
        set: |_, config, text| address_or_off(text, "127.0.0.1:7380").map(|address| config.http = address),
    },
    Setting {
        name: "grpc",
        alias: None,
        group: NETWORK,
        placeholder: "ADDRESS:PORT",
        help: "Where draws from pools are served over gRPC, as rewardpool.RewardPoolService, such as 127.0.0.1:50051; off or empty \
               for nowhere. It asks for the password.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| config.grpc.map(|address| address.to_string()).unwrap_or_default(),
        set: |_, config, text| {
            config.grpc = address_or_off(text, "127.0.0.1:50051")?;
            match grpc::objection() {
                Some(objection) if config.grpc.is_some() => Err(objection),
                _ => Ok(()),
            }
        },
    },
    Setting {
        name: "grpc-pool",
        alias: None,
        group: NETWORK,
        placeholder: "KEY",
        help: "Default pool for gRPC requests that name none; empty for none.",
        literal: Literal::Text,
        changeable: true,
        fallback: "",
        get: |_, config| config.grpc_pool.clone(),
        set: |_, config, text| {
            text.clone_into(&mut config.grpc_pool);
            Ok(())
        },
    },
    Setting {
        name: "http-connections",
        alias: None,
        group: NETWORK,
        placeholder: "NUMBER",
        help: "Most HTTP connections, besides those that watch; the oldest one without a complete request is \
               closed for a new one. While all are being served, health and metrics are answered and other \
               requests are refused.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.http_connections.to_string(),
        set: |_, config, text| {
            number(text, 1, 1_000_000).map(|value| config.http_connections = value as usize)
        },
    },
    Setting {
        name: "protected-mode",
        alias: None,
        group: ACCESS,
        placeholder: "yes|no",
        help: "Refuse clients from other hosts while there is no password.",
        literal: Literal::Switch,
        changeable: true,
        fallback: "",
        get: |_, config| show_yes_no(config.protected_mode),
        set: |_, config, text| yes_no(text).map(|value| config.protected_mode = value),
    },
    Setting {
        name: "private-dir",
        alias: None,
        group: ACCESS,
        placeholder: "yes|no",
        help: "Refuse a data directory that other users of the machine can open: they could read every value, and the secrets \
               of draws to come.",
        literal: Literal::Switch,
        changeable: false,
        fallback: "",
        get: |_, config| show_yes_no(config.private_dir),
        set: |_, config, text| yes_no(text).map(|value| config.private_dir = value),
    },
    Setting {
        name: "requirepass",
        alias: Some("password"),
        group: ACCESS,
        placeholder: "PASSWORD",
        help: "Password that clients must give with AUTH; empty for none. A flag is visible to every user of the \
               machine: prefer the environment variable or the file.",
        literal: Literal::Text,
        changeable: true,
        fallback: "",
        get: |_, config| config.requirepass.clone(),
        set: |_, config, text| {
            if text.len() > 16 * 1024 {
                return Err("must be at most 16 KiB long, or no client could send it".to_owned());
            }
            if text == HIDDEN {
                return Err(format!("must not be {HIDDEN}, which CONFIG GET shows in place of a password"));
            }
            text.clone_into(&mut config.requirepass);
            Ok(())
        },
    },
    Setting {
        name: "authentication-timeout",
        alias: None,
        group: ACCESS,
        placeholder: "SECONDS",
        help: "Seconds that a client may stay connected without giving the password; 0 for ever.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.authentication_timeout.as_secs().to_string(),
        set: |_, config, text| seconds(text).map(|value| config.authentication_timeout = value),
    },
    Setting {
        name: "http-allow-origin",
        alias: None,
        group: ACCESS,
        placeholder: "ORIGINS",
        help: "Origins of web pages that may watch reads over HTTP, beside those of this server, such as \
               https://app.example, separated by spaces or commas; * for all.",
        literal: Literal::Text,
        changeable: true,
        fallback: "",
        get: |_, config| config.http_allow_origin.join(" "),
        set: |_, config, text| origins(text).map(|origins| config.http_allow_origin = origins),
    },
    Setting {
        name: "enable-debug-command",
        alias: None,
        group: ACCESS,
        placeholder: "no|local|yes",
        help: "Clients that may use DEBUG: none, those on this machine, or all.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| {
            match config.enable_debug_command {
                DebugAccess::No => "no",
                DebugAccess::Local => "local",
                DebugAccess::Yes => "yes",
            }
            .to_owned()
        },
        set: |_, config, text| {
            config.enable_debug_command = match text.to_ascii_lowercase().as_str() {
                "local" => DebugAccess::Local,
                other if yes_no(other) == Ok(true) => DebugAccess::Yes,
                other if yes_no(other) == Ok(false) => DebugAccess::No,
                _ => return Err("must be 'no', 'local' or 'yes'".to_owned()),
            };
            Ok(())
        },
    },
    Setting {
        name: "maxclients",
        alias: None,
        group: LIMITS,
        placeholder: "NUMBER",
        help: "Most clients; further ones get an error and are disconnected.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.maxclients.to_string(),
        set: |_, config, text| number(text, 1, 1_000_000).map(|value| config.maxclients = value as usize),
    },
    Setting {
        name: "reserved-clients",
        alias: None,
        group: LIMITS,
        placeholder: "NUMBER",
        help: "Places beyond maxclients for administration from this machine: AUTH, CLIENT, CONFIG, INFO, \
               SAVE, SHUTDOWN. A client that sends any other command, or is silent for 10 seconds, gets the \
               error of maxclients.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.reserved_clients.to_string(),
        set: |_, config, text| number(text, 0, 1_000).map(|value| config.reserved_clients = value as usize),
    },
    Setting {
        name: "maxmemory-clients",
        alias: None,
        group: LIMITS,
        placeholder: "BYTES|PERCENT",
        help: "Memory for the buffers of all clients together, in bytes or in per cent of the memory of the \
               machine or its control group, such as 25%; 0 is no limit. Beyond it the clients that use most \
               are disconnected, and a reply of more than 64kb that does not fit is an error. CLIENT NO-EVICT \
               exempts a client.",
        literal: Literal::Text,
        changeable: true,
        fallback: "",
        get: |_, config| show_memory_limit(config.maxmemory_clients),
        set: |_, config, text| memory_limit(text).map(|limit| config.maxmemory_clients = limit),
    },
    Setting {
        name: "timeout",
        alias: None,
        group: LIMITS,
        placeholder: "SECONDS",
        help: "Seconds of silence after which a client is disconnected; 0 never. Subscribed and blocked clients stay.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.timeout.as_secs().to_string(),
        set: |_, config, text| seconds(text).map(|value| config.timeout = value),
    },
    Setting {
        name: "request-timeout",
        alias: None,
        group: LIMITS,
        placeholder: "SECONDS",
        help: "Seconds of silence in the middle of a request after which a client is disconnected; 0 never. A \
               client that keeps sending, however slowly, stays.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.request_timeout.as_secs().to_string(),
        set: |_, config, text| seconds(text).map(|value| config.request_timeout = value),
    },
    Setting {
        name: "client-query-buffer-limit",
        alias: None,
        group: LIMITS,
        placeholder: "BYTES",
        help: "The most bytes that a client may have sent without completing a command; more disconnects it.",
        literal: Literal::Text,
        changeable: true,
        fallback: "",
        get: |_, config| config.query_buffer_limit.to_string(),
        set: |_, config, text| {
            bytes(text, 1 << 20, 4 << 30).map(|value| config.query_buffer_limit = value as usize)
        },
    },
    Setting {
        name: "proto-max-bulk-len",
        alias: None,
        group: LIMITS,
        placeholder: "BYTES",
        help: "The longest argument of a command; 512mb is the most that a key or value can hold.",
        literal: Literal::Text,
        changeable: true,
        fallback: "",
        get: |_, config| config.max_bulk_bytes.to_string(),
        set: |_, config, text| {
            bytes(text, 1 << 20, MAX_BYTES as u64).map(|value| config.max_bulk_bytes = value as usize)
        },
    },
    Setting {
        name: "max-arguments",
        alias: None,
        group: LIMITS,
        placeholder: "NUMBER",
        help: "The most arguments of a command, its name included.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.max_arguments.to_string(),
        set: |_, config, text| number(text, 16, 1 << 24).map(|value| config.max_arguments = value as usize),
    },
    Setting {
        name: "http-max-body",
        alias: None,
        group: LIMITS,
        placeholder: "BYTES",
        help: "The longest body of a request over HTTP; longer ones are answered 413.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.http_max_body.to_string(),
        set: |_, config, text| bytes(text, 1024, 1 << 30).map(|value| config.http_max_body = value as usize),
    },
    Setting {
        name: "client-output-buffer-limit",
        alias: None,
        group: LIMITS,
        placeholder: "LIMITS",
        help: "How much output may wait for a client before it is disconnected, as 'class hard soft seconds' once or \
               more: at once above hard bytes, by a single reply too, or above soft bytes for that many seconds; 0 \
               means no limit but 2gb. Classes: normal, pubsub.",
        literal: Literal::Text,
        changeable: true,
        fallback: "",
        get: |_, config| show_output_limits(config.output_limits),
        set: |_, config, text| {
            output_limits(text, config.output_limits).map(|limits| config.output_limits = limits)
        },
    },
    Setting {
        name: "once-max-sessions",
        alias: None,
        group: LIMITS,
        placeholder: "COUNT",
        help: "How many sessions of ONCE there may be; a new one beyond it is refused. A session ends 24 hours after its last new \
               number, and takes up to 80 KB.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.once_max_sessions.to_string(),
        set: |_, config, text| {
            number(text, 0, 1 << 24).map(|value| config.once_max_sessions = value as usize)
        },
    },
    Setting {
        name: "stream-node-max-entries",
        alias: None,
        group: LIMITS,
        placeholder: "COUNT",
        help: "At how many entries a block of a stream is full; 0 means no limit. XADD and XTRIM with MAXLEN ~ remove whole \
               blocks. Full blocks stay as they are.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.stream_blocks.entries.to_string(),
        set: |_, config, text| {
            number(text, 0, 1 << 30).map(|value| config.stream_blocks.entries = value as usize)
        },
    },
    Setting {
        name: "stream-node-max-bytes",
        alias: None,
        group: LIMITS,
        placeholder: "BYTES",
        help: "At how many bytes a block of a stream is full; 0 means no limit but 1 GiB.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.stream_blocks.bytes.to_string(),
        set: |_, config, text| {
            number(text, 0, 1 << 30).map(|value| config.stream_blocks.bytes = value as usize)
        },
    },
    Setting {
        name: "busy-reply-threshold",
        alias: Some("lua-time-limit"),
        group: LIMITS,
        placeholder: "MILLISECONDS",
        help: "How long commands wait for the locks of a script, in milliseconds. From then on they are answered BUSY, and SCRIPT KILL \
               ends the script.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.busy_reply_threshold_ms.to_string(),
        set: |_, config, text| {
            number(text, 1, 24 * 3600 * 1000).map(|value| config.busy_reply_threshold_ms = value)
        },
    },
    Setting {
        name: "dir",
        alias: None,
        group: STORAGE,
        placeholder: "PATH",
        help: "Directory of the log and its snapshots; created if it does not exist.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| config.dir.display().to_string(),
        set: |_, config, text| {
            if text.is_empty() {
                return Err("must name a directory".to_owned());
            }
            config.dir = PathBuf::from(text);
            Ok(())
        },
    },
    Setting {
        name: "durability",
        alias: None,
        group: STORAGE,
        placeholder: "always|interval[:TIME]|off",
        help: "When a change is safe from power failure: before it is answered (always), at most TIME later (interval, \
               50ms unless given), or when the operating system gets to it (off). A command may ask for more: DURABLE.",
        literal: Literal::Text,
        changeable: true,
        fallback: "",
        get: |_, config| config.durability.to_string(),
        set: |_, config, text| {
            config.durability =
                text.parse().map_err(|_| "must be always, interval, interval:50ms or off".to_owned())?;
            Ok(())
        },
    },
    Setting {
        name: "log-format",
        alias: None,
        group: STORAGE,
        placeholder: "binary|jsonl|text",
        help: "How new segments of the log are spelled; old ones are read in their own format.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| config.log_format.to_string(),
        set: |_, config, text| {
            config.log_format = text.parse().map_err(|_| "must be binary, jsonl or text".to_owned())?;
            Ok(())
        },
    },
    Setting {
        name: "log-storage",
        alias: None,
        group: STORAGE,
        placeholder: "file|mmap|memory",
        help: "How the log is kept: in files; in files mapped into memory, which saves system calls; or in memory \
               only, so that everything is gone when the server stops.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| config.log_storage.name().to_owned(),
        set: |_, config, text| LogStorage::parse(text).map(|value| config.log_storage = value),
    },
    Setting {
        name: "log-segment-age",
        alias: None,
        group: STORAGE,
        placeholder: "SECONDS",
        help: "Maximum age of the log's current file; 0 for none.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.log_segment_age.as_secs().to_string(),
        set: |_, config, text| seconds(text).map(|value| config.log_segment_age = value),
    },
    Setting {
        name: "log-retention-bytes",
        alias: None,
        group: STORAGE,
        placeholder: "BYTES",
        help: "Minimum size of log to keep although a snapshot covers it.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| config.log_retention_bytes.to_string(),
        set: |_, config, text| bytes(text, 0, LOG_BYTES_MAX).map(|value| config.log_retention_bytes = value),
    },
    Setting {
        name: "log-retention-age",
        alias: None,
        group: STORAGE,
        placeholder: "SECONDS",
        help: "Minimum time to keep records although a snapshot covers them.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.log_retention_age.as_secs().to_string(),
        set: |_, config, text| seconds(text).map(|value| config.log_retention_age = value),
    },
    Setting {
        name: "snapshot-keep",
        alias: None,
        group: STORAGE,
        placeholder: "COUNT",
        help: "Snapshots to keep. The log reaches back to the oldest, so a damaged one costs time and nothing else.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.snapshot_keep.to_string(),
        set: |_, config, text| number(text, 1, 1000).map(|value| config.snapshot_keep = value as usize),
    },
    Setting {
        name: "scrub-rate",
        alias: None,
        group: STORAGE,
        placeholder: "BYTES",
        help: "Bytes of the log and of snapshots to read in a second, without end, to find what the disk has damaged; 0 \
               for none. A member of a cluster gets damaged data from the others.",
        literal: Literal::Text,
        changeable: true,
        fallback: "",
        get: |_, config| config.scrub_rate.to_string(),
        set: |_, config, text| bytes(text, 0, SCRUB_RATE_MAX).map(|value| config.scrub_rate = value),
    },
    Setting {
        name: "log-segment-bytes",
        alias: None,
        group: STORAGE,
        placeholder: "BYTES",
        help: "Size of one file of the log.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| config.log_segment_bytes.to_string(),
        set: |_, config, text| {
            bytes(text, 64 << 10, LOG_BYTES_MAX).map(|value| config.log_segment_bytes = value)
        },
    },
    Setting {
        name: "snapshot-after",
        alias: None,
        group: STORAGE,
        placeholder: "CHANGES",
        help: "Take a snapshot after this many changes since the latest, which limits what a start replays; 0 \
               disables this trigger.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.snapshot_after.to_string(),
        set: |_, config, text| number(text, 0, i64::MAX as u64).map(|value| config.snapshot_after = value),
    },
    Setting {
        name: "snapshot-after-bytes",
        alias: None,
        group: STORAGE,
        placeholder: "BYTES",
        help: "Take a snapshot also when the log has grown by this much since the latest, and by at least the \
               latest's own size; 0 disables this trigger. A disk that gets full triggers one in any case.",
        literal: Literal::Text,
        changeable: true,
        fallback: "",
        get: |_, config| config.snapshot_after_bytes.to_string(),
        set: |_, config, text| bytes(text, 0, LOG_BYTES_MAX).map(|value| config.snapshot_after_bytes = value),
    },
    Setting {
        name: "series-memory",
        alias: None,
        group: STORAGE,
        placeholder: "BYTES",
        help: "Memory for the compressed points of time series; 0 is no limit. Beyond it, after each snapshot, the \
               oldest points of each series are left in the block files that the snapshot has written, and reads \
               fetch them from there.",
        literal: Literal::Text,
        changeable: true,
        fallback: "",
        get: |_, config| config.series_memory.to_string(),
        set: |_, config, text| bytes(text, 0, LOG_BYTES_MAX).map(|value| config.series_memory = value),
    },
    Setting {
        name: "shutdown-timeout",
        alias: None,
        group: STORAGE,
        placeholder: "SECONDS",
        help: "Seconds that a graceful stop waits for clients to read their last replies.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.shutdown_timeout.as_secs().to_string(),
        set: |_, config, text| seconds(text).map(|value| config.shutdown_timeout = value),
    },
    Setting {
        name: "counter-cap",
        alias: None,
        group: COUNTERS,
        placeholder: "UNITS",
        help: "Units of a counter that may be uncommitted, which a crash may lose, unless COUNTER.CREATE says \
               otherwise. Existing counters keep what they were created with.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.counters.cap.to_string(),
        set: |_, config, text| number(text, 1, 1_000_000_000_000).map(|value| config.counters.cap = value),
    },
    Setting {
        name: "counter-max-age",
        alias: None,
        group: COUNTERS,
        placeholder: "MILLISECONDS",
        help: "How long a change of a counter that is too small to be committed earlier may stay uncommitted, \
               unless COUNTER.CREATE says otherwise.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.counters.max_age_ms.to_string(),
        set: |_, config, text| {
            number(text, 1, COUNTER_AGE_MAX_MS).map(|value| config.counters.max_age_ms = value)
        },
    },
    Setting {
        name: "counter-lease-age",
        alias: None,
        group: COUNTERS,
        placeholder: "MILLISECONDS",
        help: "How long reserved units of an exact counter may stay unused before they are returned, unless \
               COUNTER.CREATE says otherwise.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.counters.idle_ms.to_string(),
        set: |_, config, text| {
            number(text, 1, COUNTER_AGE_MAX_MS).map(|value| config.counters.idle_ms = value)
        },
    },
    Setting {
        name: "counter-commit-interval",
        alias: None,
        group: COUNTERS,
        placeholder: "MILLISECONDS",
        help: "How long a counter that has moved by its low threshold gathers further moves before it is \
               committed; applies to all counters.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.counters.interval_ms.to_string(),
        set: |_, config, text| number(text, 0, 60_000).map(|value| config.counters.interval_ms = value),
    },
    Setting {
        name: "counter-churn-sample",
        alias: None,
        group: COUNTERS,
        placeholder: "NUMBER",
        help: "Sample one of this many moves of counters, at random, for COUNTER.TOP; 1 samples every move, 0 \
               none.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.counter_churn_sample.to_string(),
        set: |_, config, text| {
            number(text, 0, 1_000_000).map(|value| config.counter_churn_sample = value as u32)
        },
    },
    Setting {
        name: "counter-churn-series",
        alias: None,
        group: COUNTERS,
        placeholder: "NUMBER",
        help: "How many of the counters that move most have series of their own in /metrics; 0: none.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.counter_churn_series.to_string(),
        set: |_, config, text| number(text, 0, 100).map(|value| config.counter_churn_series = value as usize),
    },
    Setting {
        name: "counter-churn-names",
        alias: None,
        group: COUNTERS,
        placeholder: "yes|no",
        help: "Name these counters in /metrics, which asks for no password; otherwise each is called by the \
               number that COUNTER.TOP gives it, which changes with every restart.",
        literal: Literal::Switch,
        changeable: true,
        fallback: "",
        get: |_, config| show_yes_no(config.counter_churn_names),
        set: |_, config, text| yes_no(text).map(|value| config.counter_churn_names = value),
    },
    Setting {
        name: "http-check-limit",
        alias: None,
        group: COUNTERS,
        placeholder: "UNITS",
        help: "The limit of the quota that /check?api_key=KEY creates for a key which has none; 0 creates none, and such keys are \
               answered 404. Quotas that exist keep theirs.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.http_check_limit.to_string(),
        set: |_, config, text| {
            number(text, 0, HTTP_CHECK_LIMIT_MAX).map(|value| config.http_check_limit = value)
        },
    },
    Setting {
        name: "http-check-idle",
        alias: None,
        group: COUNTERS,
        placeholder: "SECONDS",
        help: "Idle time after which a quota that /check created is removed; a later check creates a full one. \
               Existing quotas keep theirs.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.http_check_idle.as_secs().to_string(),
        set: |_, config, text| {
            number(text, 1, HTTP_CHECK_IDLE_MAX_S)
                .map(|value| config.http_check_idle = Duration::from_secs(value))
        },
    },
    Setting {
        name: "http-check-max-keys",
        alias: None,
        group: COUNTERS,
        placeholder: "NUMBER",
        help: "Most quotas with an idle time; beyond it /check creates no more, and answers further unknown \
               keys 503.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.http_check_max_keys.to_string(),
        set: |_, config, text| {
            number(text, 1, 1_000_000_000).map(|value| config.http_check_max_keys = value as usize)
        },
    },
    Setting {
        name: "http-check-prefix",
        alias: None,
        group: COUNTERS,
        placeholder: "TEXT",
        help: "Prefix of KEY in the name of the quota of /check?api_key=KEY and /release?api_key=KEY.",
        literal: Literal::Text,
        changeable: true,
        fallback: "",
        get: |_, config| config.http_check_prefix.clone(),
        set: |_, config, text| {
            if text.len() > 1024 {
                return Err("must be at most 1 KiB long".to_owned());
            }
            text.clone_into(&mut config.http_check_prefix);
            Ok(())
        },
    },
    Setting {
        name: "limit-max-leases",
        alias: None,
        group: LIMITERS,
        placeholder: "LEASES",
        help: "How many leases a concurrency limit may have at once, whatever it allows; each takes 24 bytes. Limits that have \
               more keep them.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.leases_max.to_string(),
        set: |_, config, text| number(text, 1, LEASES_MAX).map(|value| config.leases_max = value as usize),
    },
    Setting {
        name: "watch-retention-bytes",
        alias: None,
        group: WATCHING,
        placeholder: "BYTES",
        help: "Memory for emissions of watched reads that subscribers have not received yet, or may resume \
               from; the oldest are evicted first.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| config.watch_retention_bytes.to_string(),
        set: |_, config, text| {
            bytes(text, 1 << 20, LOG_BYTES_MAX).map(|value| config.watch_retention_bytes = value as usize)
        },
    },
    Setting {
        name: "watch-retention-age",
        alias: None,
        group: WATCHING,
        placeholder: "SECONDS",
        help: "Maximum age of retained emissions, and of a watched read without subscribers.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.watch_retention_age.as_secs().to_string(),
        set: |_, config, text| {
            let age = seconds(text)?;
            if age.is_zero() {
                return Err("must be at least 1".to_owned());
            }
            config.watch_retention_age = age;
            Ok(())
        },
    },
    Setting {
        name: "watch-backlogs",
        alias: None,
        group: WATCHING,
        placeholder: "NUMBER",
        help: "How many subscribers at a time get emissions that are no longer retained, replayed from the \
               log; other subscribers wait. 0 disables replay: subscribers resume from retained emissions \
               only.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.watch_backlogs.to_string(),
        set: |_, config, text| number(text, 0, 256).map(|value| config.watch_backlogs = value as usize),
    },
    Setting {
        name: "watch-backlog-bytes",
        alias: None,
        group: WATCHING,
        placeholder: "BYTES",
        help: "Memory for the keys from which the emissions of one subscriber are replayed from the log. A \
               read that depends on more is answered STALE_SEQUENCE below what is retained.",
        literal: Literal::Text,
        changeable: true,
        fallback: "",
        get: |_, config| config.watch_backlog_bytes.to_string(),
        set: |_, config, text| {
            bytes(text, 1 << 20, LOG_BYTES_MAX).map(|value| config.watch_backlog_bytes = value as usize)
        },
    },
    Setting {
        name: "watch-write-budget-us",
        alias: None,
        group: WATCHING,
        placeholder: "MICROSECONDS",
        help: "Time that one change may spend on answering watched reads. Reads beyond it become dormant: \
               their emissions are replayed from the log, beside the writers, and are late. With 0 no change \
               answers any.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.watch_write_budget_us.to_string(),
        set: |_, config, text| number(text, 0, 10_000_000).map(|value| config.watch_write_budget_us = value),
    },
    Setting {
        name: "watch-subscribed-budget-us",
        alias: None,
        group: WATCHING,
        placeholder: "MICROSECONDS",
        help: "Time of each second of each thread that changes may spend on watched reads with subscribers. \
               Reads beyond it become dormant: their emissions are late.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.watch_subscribed_budget_us.to_string(),
        set: |_, config, text| {
            number(text, 0, 1_000_000).map(|value| config.watch_subscribed_budget_us = value)
        },
    },
    Setting {
        name: "watch-unsubscribed-budget-us",
        alias: None,
        group: WATCHING,
        placeholder: "MICROSECONDS",
        help: "Time of each second that all changes may spend on watched reads without subscribers. Reads \
               beyond it become dormant: when a subscriber resumes, their emissions are replayed from the log.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.watch_unsubscribed_budget_us.to_string(),
        set: |_, config, text| {
            number(text, 0, 1_000_000).map(|value| config.watch_unsubscribed_budget_us = value)
        },
    },
    Setting {
        name: "watch-max-queries",
        alias: None,
        group: WATCHING,
        placeholder: "COUNT",
        help: "How many different reads may be watched. Any number of clients may share one.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.watch_max_queries.to_string(),
        set: |_, config, text| {
            number(text, 0, 1 << 30).map(|value| config.watch_max_queries = value as usize)
        },
    },
    Setting {
        name: "watch-max-names",
        alias: None,
        group: WATCHING,
        placeholder: "COUNT",
        help: "How many named subscriptions there may be.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.watch_max_names.to_string(),
        set: |_, config, text| number(text, 0, 1 << 24).map(|value| config.watch_max_names = value as usize),
    },
    Setting {
        name: "watch-max-channels",
        alias: None,
        group: WATCHING,
        placeholder: "COUNT",
        help: "How many watched reads may be published on channels.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.watch_max_channels.to_string(),
        set: |_, config, text| {
            number(text, 0, 1 << 24).map(|value| config.watch_max_channels = value as usize)
        },
    },
    Setting {
        name: "watch-max-bytes",
        alias: None,
        group: WATCHING,
        placeholder: "BYTES",
        help: "Memory limit of watched reads with their latest answers; beyond it further reads are refused.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| config.watch_max_bytes.to_string(),
        set: |_, config, text| {
            bytes(text, 1 << 20, LOG_BYTES_MAX).map(|value| config.watch_max_bytes = value as usize)
        },
    },
    Setting {
        name: "tracking-table-max-keys",
        alias: None,
        group: WATCHING,
        placeholder: "NUMBER",
        help: "Keys remembered for clients with CLIENT TRACKING; beyond it a random one is evicted, and its \
               readers get an invalidation as if it had changed. 0 is no limit but that of bytes.",
        literal: Literal::Number,
        changeable: true,
        fallback: "",
        get: |_, config| config.tracking_table_max_keys.to_string(),
        set: |_, config, text| {
            number(text, 0, u64::from(u32::MAX)).map(|value| config.tracking_table_max_keys = value as usize)
        },
    },
    Setting {
        name: "tracking-table-max-bytes",
        alias: None,
        group: WATCHING,
        placeholder: "BYTES",
        help: "Memory limit of these keys, with their names and readers.",
        literal: Literal::Text,
        changeable: true,
        fallback: "",
        get: |_, config| config.tracking_table_max_bytes.to_string(),
        set: |_, config, text| {
            bytes(text, 1 << 20, LOG_BYTES_MAX).map(|value| config.tracking_table_max_bytes = value as usize)
        },
    },
    Setting {
        name: "http-watch-connections",
        alias: None,
        group: WATCHING,
        placeholder: "NUMBER",
        help: "Most connections that watch reads over HTTP; further ones are answered 503.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.http_watch_connections.to_string(),
        set: |_, config, text| {
            number(text, 0, 1_000_000).map(|value| config.http_watch_connections = value as usize)
        },
    },
    Setting {
        name: "notify-keyspace-events",
        alias: None,
        group: WATCHING,
        placeholder: "LETTERS",
        help: "Which events of keys are published: K on channels named after keys, E on channels named after events, and the \
               classes g$lshzxetdnm, or A for all of them but n and m; empty for none.",
        literal: Literal::Text,
        changeable: true,
        fallback: "",
        get: |_, config| config.notify_keyspace_events.to_string(),
        set: |_, config, text| {
            EventSelection::parse(text).map(|selection| config.notify_keyspace_events = selection)
        },
    },
    Setting {
        name: "changes-followers",
        alias: None,
        group: CHANGES,
        placeholder: "NUMBER",
        help: "Most connections that follow the log by CHANGES; further ones are refused. Each reads the log \
               on its own, and buffers a mebibyte or two.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.changes_followers.to_string(),
        set: |_, config, text| number(text, 0, 10_000).map(|value| config.changes_followers = value as usize),
    },
    Setting {
        name: "sink",
        alias: None,
        group: CHANGES,
        placeholder: "URLS",
        help: "Target of every durable change, such as nats://127.0.0.1:4222/STREAM?subject=changes or \
               kafka://127.0.0.1:9092/topic?prefix=user:; several are separated by spaces. A flag is visible \
               to every user of the machine: where a login is needed, use the environment variable or the \
               file, or name a private file that holds it by ?login-file=PATH.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| config.sinks.join(" "),
        set: |_, config, text| sinks(text).map(|sinks| config.sinks = sinks),
    },
    Setting {
        name: "cluster-node",
        alias: None,
        group: CLUSTER,
        placeholder: "NUMBER",
        help: "Which member of the cluster this server is: one of the numbers in cluster-members. 0 for a server \
               without others; a directory that has been a member stays one.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.cluster_node.to_string(),
        set: |_, config, text| number(text, 0, i64::MAX as u64).map(|node| config.cluster_node = node),
    },
    Setting {
        name: "cluster-members",
        alias: None,
        group: CLUSTER,
        placeholder: "MEMBERS",
        help: "The members that found the cluster, the same for each: 3 or 5, each as NUMBER=PEERS/CLIENTS with the \
               addresses at which it listens for other members and for clients, such as \
               1=10.0.0.1:8379/10.0.0.1:7379, separated by commas; or 1 that others join, whose directory may have \
               the data of a single server. Read at the first start of a directory.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| show_members(&config.cluster_members),
        set: |_, config, text| members(text).map(|members| config.cluster_members = members),
    },
    Setting {
        name: "cluster-name",
        alias: None,
        group: CLUSTER,
        placeholder: "NAME",
        help: "Name by which clients of Redis Sentinel ask for the leader; the same at all members.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| config.cluster_name.clone(),
        set: |_, config, text| cluster_name(text).map(|name| config.cluster_name = name),
    },
    Setting {
        name: "cluster-sentinel-port",
        alias: None,
        group: CLUSTER,
        placeholder: "PORT",
        help: "TCP port at which this member says that it is a sentinel, for clients of Redis Sentinel that look at \
               ROLE; 0 for none. All others can use the port of all clients.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.cluster_sentinel_port.to_string(),
        set: |_, config, text| number(text, 0, 65_535).map(|port| config.cluster_sentinel_port = port as u16),
    },
    Setting {
        name: "cluster-reads",
        alias: None,
        group: CLUSTER,
        placeholder: "lease|index",
        help: "What keeps a leader from answering reads when another one may lead: lease, the promise of most members \
               to follow no other for a while, which needs clocks of about the same speed; or index, a question to \
               the members before the answers leave.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| config.cluster_reads.name().to_owned(),
        set: |_, config, text| ClusterReads::parse(text).map(|reads| config.cluster_reads = reads),
    },
    Setting {
        name: "cluster-address",
        alias: None,
        group: CLUSTER,
        placeholder: "PEERS/CLIENTS",
        help: "Where a new member listens for other members, and where clients reach it, such as \
               10.0.0.4:8379/10.0.0.4:7379. Read with cluster-join at the first start of a directory.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| {
            let both = config.cluster_address.as_ref();
            both.map_or(String::new(), |(peers, clients)| format!("{peers}/{clients}"))
        },
        set: |_, config, text| addresses(text).map(|both| config.cluster_address = both),
    },
    Setting {
        name: "cluster-join",
        alias: None,
        group: CLUSTER,
        placeholder: "SERVERS",
        help: "Members of a running cluster that this server asks to take it in as a new member, as HOST:PORT for \
               clients, separated by commas. The password is requirepass. Needs cluster-node, with a number that no \
               member has had, cluster-address and an empty directory.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| config.cluster_join.join(","),
        set: |_, config, text| servers(text).map(|servers| config.cluster_join = servers),
    },
    Setting {
        name: "cluster-heartbeat-ms",
        alias: None,
        group: CLUSTER,
        placeholder: "MS",
        help: "Milliseconds between two heartbeats of the leader; the same at all members.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.cluster_timing.heartbeat.as_millis().to_string(),
        set: |_, config, text| {
            number(text, 1, CLUSTER_MS_MAX)
                .map(|ms| config.cluster_timing.heartbeat = Duration::from_millis(ms))
        },
    },
    Setting {
        name: "cluster-election-min-ms",
        alias: None,
        group: CLUSTER,
        placeholder: "MS",
        help: "Least milliseconds without a leader before a member stands for election: at least two heartbeats.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.cluster_timing.election_min.as_millis().to_string(),
        set: |_, config, text| {
            number(text, 2, CLUSTER_MS_MAX)
                .map(|ms| config.cluster_timing.election_min = Duration::from_millis(ms))
        },
    },
    Setting {
        name: "cluster-election-max-ms",
        alias: None,
        group: CLUSTER,
        placeholder: "MS",
        help: "Most milliseconds of that wait, and the lease: how long a leader that a majority has answered is the \
               only one. A busy machine that pauses longer causes an election.",
        literal: Literal::Number,
        changeable: false,
        fallback: "",
        get: |_, config| config.cluster_timing.election_max.as_millis().to_string(),
        set: |_, config, text| {
            number(text, 3, CLUSTER_MS_MAX)
                .map(|ms| config.cluster_timing.election_max = Duration::from_millis(ms))
        },
    },
    Setting {
        name: "cluster-tls-cert-file",
        alias: None,
        group: CLUSTER,
        placeholder: "PATH",
        help: "PEM file with this member's certificate, for TLS 1.3 between members, and those between it and the \
               authority. It is for the host in the member's address, and for servers and clients. CONFIG SET with \
               the same path has the three files read again.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| config.cluster_tls.certificate.display().to_string(),
        set: |_, config, text| {
            config.cluster_tls.certificate = PathBuf::from(text);
            Ok(())
        },
    },
    Setting {
        name: "cluster-tls-key-file",
        alias: None,
        group: CLUSTER,
        placeholder: "PATH",
        help: "PEM file with the private key of this member's certificate.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| config.cluster_tls.key.display().to_string(),
        set: |_, config, text| {
            config.cluster_tls.key = PathBuf::from(text);
            Ok(())
        },
    },
    Setting {
        name: "cluster-tls-ca-cert-file",
        alias: None,
        group: CLUSTER,
        placeholder: "PATH",
        help: "PEM file with the certificates of the authority. It must sign those of members only: who has one is let in.",
        literal: Literal::Text,
        changeable: false,
        fallback: "",
        get: |_, config| config.cluster_tls.authority.display().to_string(),
        set: |_, config, text| {
            config.cluster_tls.authority = PathBuf::from(text);
            Ok(())
        },
    },
    Setting {
        name: "cluster-accept-loss",
        alias: None,
        group: CLUSTER,
        placeholder: "yes|no",
        help: "Take part although this member may have lost what it acknowledged, after a power failure for example. \
               For one start: if others have lost it too, it is lost for good.",
        literal: Literal::Switch,
        changeable: false,
        fallback: "",
        get: |_, config| show_yes_no(config.cluster_accept_loss),
        set: |_, config, text| yes_no(text).map(|value| config.cluster_accept_loss = value),
    },
    Setting {
        name: "appendfsync",
        alias: None,
        group: COMPATIBILITY,
        placeholder: "always|everysec|no",
        help: "Redis's name for durability: always, interval:1s, off.",
        literal: Literal::Text,
        changeable: true,
        fallback: "",
        get: |_, config| {
            match config.durability {
                Durability::Always => "always",
                Durability::Interval(_) => "everysec",
                Durability::Off => "no",
            }
            .to_owned()
        },
        set: |_, config, text| {
            config.durability = match text.to_ascii_lowercase().as_str() {
                "always" => Durability::Always,
                "everysec" => Durability::Interval(Duration::from_secs(1)),
                "no" => Durability::Off,
                _ => return Err("must be always, everysec or no".to_owned()),
            };
            Ok(())
        },
    },
    immutable("databases", "16", "The number of databases."),
    fixed("maxmemory", "0", "There is no limit on memory."),
    fixed("maxmemory-policy", "noeviction", "Keys are never evicted."),
    fixed("hll-sparse-max-bytes", "3000", COMPACT),
    renamed("hash-max-listpack-entries", "hash-max-ziplist-entries", "512"),
    renamed("hash-max-listpack-value", "hash-max-ziplist-value", "64"),
    renamed("list-max-listpack-size", "list-max-ziplist-size", "-2"),
    fixed("list-compress-depth", "0", COMPACT),
    fixed("set-max-intset-entries", "512", COMPACT),
    renamed("zset-max-listpack-entries", "zset-max-ziplist-entries", "128"),
    renamed("zset-max-listpack-value", "zset-max-ziplist-value", "64"),
    immutable(
        "daemonize",
        "no",
        "The server stays in the foreground: use a service manager to run it in the background.",
    ),
    fixed("tls-port", "0", "TLS is not offered."),
    immutable("cluster-enabled", "no", "Redis Cluster is not offered."),
    immutable("replicaof", "", "Replication is not offered."),
    fixed("repl-backlog-size", "0", "Replication is not offered."),
    tolerated("save", "", "Snapshots are taken as the log grows, and by BGSAVE and SAVE."),
    tolerated("appendonly", "yes", "The log is always on; durability says when it reaches the disk."),
    tolerated("dbfilename", "", "Snapshots have names of their own in dir."),
    Setting {
        changeable: false,
        ..tolerated("logfile", "", "Messages go to standard error: redirect that.")
    },
    tolerated("loglevel", "notice", "All messages go to standard error."),
    tolerated("lazyfree-lazy-user-del", "yes", "Large values are freed by a thread of their own."),
    tolerated("slowlog-log-slower-than", "-1", "There is no slow log."),
    tolerated("slowlog-max-len", "0", "There is no slow log."),
    tolerated("latency-monitor-threshold", "0", "There is no latency monitor."),
];

/// Help text for the size limits of compact values in `OBJECT ENCODING`.
const COMPACT: &str = "The shapes of values do not depend on settings.";

/// Declares a setting of Redis with a fixed value.
const fn fixed(name: &'static str, value: &'static str, help: &'static str) -> Setting {
    Setting {
        name,
        alias: None,
        group: COMPATIBILITY,
        placeholder: "VALUE",
        help,
        literal: Literal::Text,
        changeable: true,
        fallback: value,
        get: |setting, _| setting.fallback.to_owned(),
        set: |setting, _, text| {
            if setting.describes(text) {
                return Ok(());
            }
            Err(setting.cannot_be_other())
        },
    }
}

/// Declares a [`fixed`] setting that Redis does not allow to change at run time.
const fn immutable(name: &'static str, value: &'static str, help: &'static str) -> Setting {
    Setting { changeable: false, ..fixed(name, value, help) }
}

/// Declares a [`fixed`] size limit of compact values, with its name before Redis 7.
const fn renamed(name: &'static str, before: &'static str, value: &'static str) -> Setting {
    Setting { alias: Some(before), ..fixed(name, value, COMPACT) }
}

/// Declares a setting of Redis with a fixed value. Flags and files may give another one, which
/// causes a warning at start; `CONFIG SET` refuses it.
const fn tolerated(name: &'static str, value: &'static str, help: &'static str) -> Setting {
    Setting {
        set: |setting, config, text| {
            config.without_effect.retain(|name| *name != setting.name);
            if !setting.describes(text) {
                config.without_effect.push(setting.name);
            }
            Ok(())
        },
        ..fixed(name, value, help)
    }
}
