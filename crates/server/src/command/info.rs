//! `INFO`: sections of `name:value` lines, with Redis's names where tools read them.

use crate::available_memory;
use crate::command::cluster_command::{self, Node};
use crate::context::Context;
use crate::net::client::flags;
use crate::session::Session;
use crate::shared::Shared;
use crate::version::{REDIS_VERSION, TIDEMARK_VERSION, TIME_SERIES_MODULE};
use std::fmt::Write as _;
use std::sync::PoisonError;
use tidemark_engine::keyspace::{DATABASES, Exposure};
use tidemark_engine::{CommandError, CounterFigures, PoolFigures};
use tidemark_log::{Clock, Health};

type Section = fn(&mut String, &Context<'_>);

/// Sections with their names, in the order of output.
const SECTIONS: [(&str, Section); 14] = [
    ("server", server),
    ("clients", clients),
    ("memory", memory),
    ("persistence", persistence),
    ("stats", stats),
    ("replication", replication),
    ("counters", counters),
    ("pools", pools),
    ("sinks", sinks),
    ("cpu", cpu),
    ("errorstats", error_stats),
    ("modules", modules),
    ("cluster", cluster),
    ("keyspace", keyspace),
];

/// `INFO [section [section ...]]`
pub(crate) fn info(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let wanted: Vec<String> =
        args.iter().skip(1).map(|arg| String::from_utf8_lossy(arg).to_lowercase()).collect();
    let everything =
        wanted.is_empty() || wanted.iter().any(|name| ["all", "default", "everything"].contains(&&**name));
    let mut text = String::new();
    for (name, section) in SECTIONS {
        if everything || wanted.iter().any(|wanted| wanted == name) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            let mut title = name.to_owned();
            title.get_mut(..1).into_iter().for_each(str::make_ascii_uppercase);
            let title = if name == "cpu" { "CPU" } else { &title };
            let _ = write!(text, "# {title}\r\n");
            section(&mut text, cx);
        }
    }
    session.outbox.reply.verbatim(&text);
    Ok(())
}

fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = write!(text, "{name}:{value}\r\n");
}

fn server(text: &mut String, cx: &Context<'_>) {
    let config = cx.config;
    let uptime = cx.shared.uptime().as_secs();
    line(text, "redis_version", REDIS_VERSION);
    line(text, "tidemark_version", TIDEMARK_VERSION);
    line(text, "redis_mode", if cx.shared.group.is_some() { "cluster" } else { "standalone" });
    line(text, "os", std::env::consts::OS);
    line(text, "arch_bits", usize::BITS);
    line(text, "multiplexing_api", "epoll");
    line(text, "process_id", std::process::id());
    line(text, "run_id", &cx.shared.run_id);
    line(text, "tcp_port", config.port);
    line(text, "server_time_usec", cx.shared.clock.now_us());
    line(text, "uptime_in_seconds", uptime);
    line(text, "uptime_in_days", uptime / 86_400);
    line(text, "worker_threads", cx.shared.inboxes.len());
    line(text, "executable", std::env::current_exe().unwrap_or_default().display());
    let file = config.config_file.as_deref().unwrap_or(std::path::Path::new(""));
    line(text, "config_file", file.display());
}

/// Modules of Redis whose commands are here: clients read from it which versions they may use.
fn modules(text: &mut String, _: &Context<'_>) {
    let (name, version) = TIME_SERIES_MODULE;
    line(
        text,
        "module",
        format_args!("name={name},ver={version},api=1,filters=0,usedby=[],using=[],options=[]"),
    );
}

fn clients(text: &mut String, cx: &Context<'_>) {
    let all = cx.shared.clients.all();
    line(text, "connected_clients", all.len());
    line(text, "maxclients", cx.config.maxclients);
    line(text, "blocked_clients", all.iter().filter(|client| client.has(flags::BLOCKED)).count());
    line(text, "tracking_clients", cx.shared.engine.tracking_figures().trackers);
    line(text, "pubsub_clients", all.iter().filter(|client| client.has(flags::SUBSCRIBED)).count());
}

fn memory(text: &mut String, cx: &Context<'_>) {
    // Counts the memory of the process: what the allocator keeps is used, so fragmentation is zero.
    let Resident { now, peak } = resident();
    let machine = available_memory::machine_bytes().unwrap_or(0);
    for (name, bytes) in [
        ("used_memory", now),
        ("used_memory_rss", now),
        ("used_memory_peak", peak),
        ("total_system_memory", machine),
    ] {
        line(text, name, bytes);
        line(text, &format!("{name}_human"), human(bytes));
    }
    let per_cent = if peak == 0 { 0.0 } else { now as f64 * 100.0 / peak as f64 };
    line(text, "used_memory_peak_perc", format_args!("{per_cent:.2}%"));
    let clients = &cx.shared.client_memory.budget;
    line(text, "mem_clients_normal", clients.used());
    line(text, "maxmemory_clients", if clients.limit() == usize::MAX { 0 } else { clients.limit() });
    line(text, "maxmemory", 0);
    line(text, "maxmemory_human", human(0));
    line(text, "maxmemory_policy", "noeviction");
    line(text, "mem_fragmentation_ratio", "1.00");
    line(text, "mem_fragmentation_bytes", 0);
    let reclaimed = cx.shared.engine.reclaimed();
    line(text, "lazyfree_pending_objects", reclaimed.pending);
    line(text, "lazyfreed_objects", reclaimed.freed);
}

fn persistence(text: &mut String, cx: &Context<'_>) {
    let log = cx.shared.engine.log();
    let healthy = cx.shared.engine.check_writable().is_ok();
    line(text, "loading", u8::from(!cx.shared.engine.is_loaded()));
    if !cx.shared.engine.is_loaded() {
        let (figures, elapsed) = (cx.shared.loading.figures(), cx.shared.loading.duration());
        let now_s = cx.shared.clock.now_us() / 1_000_000;
        line(text, "loading_start_time", now_s.saturating_sub(elapsed.as_secs()));
        line(text, "loading_of", figures.source.units());
        line(text, "loading_total", figures.total);
        line(text, "loading_loaded", figures.done);
        line(text, "loading_loaded_perc", format_args!("{:.2}", figures.percent()));
        line(text, "loading_eta_seconds", figures.eta.as_secs().max(1));
    }
    line(text, "durability", log.durability());
    line(text, "log_appended_lsn", log.appended());
    line(text, "log_written_lsn", log.written());
    line(text, "log_durable_lsn", log.durable());
    line(text, "log_committed_lsn", log.committed());
    line(text, "log_floor_lsn", log.floor());
    line(text, "log_status", log_status(cx.shared));
    if let Some(failure) = log.retention_failure() {
        line(text, "log_retention_error", failure.to_string().replace(['\r', '\n'], " "));
    }
    let snapshots = &cx.shared.snapshots;
    line(text, "snapshot_last_lsn", snapshots.last_lsn());
    if let Some(error) = snapshots.last_error() {
        line(text, "snapshot_last_error", error.replace(['\r', '\n'], " "));
    }
    // Redis's names for the same values, which tools monitor.
    line(text, "rdb_bgsave_in_progress", u8::from(snapshots.is_busy()));
    line(text, "rdb_last_save_time", snapshots.last_success());
    line(text, "rdb_last_bgsave_status", if snapshots.last_error().is_none() { "ok" } else { "err" });
    line(text, "aof_rewrite_in_progress", u8::from(snapshots.is_busy()));
    line(text, "aof_enabled", 1);
    line(text, "aof_last_write_status", if healthy { "ok" } else { "err" });
    line(text, "rdb_changes_since_last_save", log.records_between(snapshots.last_lsn(), log.appended()));
}

/// State of the log. A full or stalled log can recover; a failed one cannot.
fn log_status(shared: &Shared) -> &'static str {
    match (shared.engine.check_writable(), shared.engine.log().health()) {
        (Ok(()), _) => "ok",
        (Err(_), Health::Full(_)) => "full",
        (Err(_), Health::Stalled(_)) => "stalled",
        (Err(_), _) => "failed",
    }
}

fn stats(text: &mut String, cx: &Context<'_>) {
    let totals = cx.shared.totals_since_reset();
    let (channels, patterns, shards) = cx.shared.pubsub.counts();
    line(text, "total_connections_received", totals.connections);
    line(text, "total_commands_processed", totals.commands);
    let now = cx.shared.totals();
    let at = cx.shared.clock.now();
    let rates = cx.shared.rates.lock().unwrap_or_else(PoisonError::into_inner).update(at, now);
    line(text, "instantaneous_ops_per_sec", rates.commands.round());
    line(text, "total_net_input_bytes", totals.received_bytes);
    line(text, "total_net_output_bytes", totals.sent_bytes);
    line(text, "instantaneous_input_kbps", format_args!("{:.2}", rates.received_bytes / 1024.0));
    line(text, "instantaneous_output_kbps", format_args!("{:.2}", rates.sent_bytes / 1024.0));
    line(text, "rejected_connections", totals.refused_connections);
    line(text, "total_error_replies", cx.shared.errors.all().values().sum::<u64>());
    line(text, "client_output_buffer_limit_disconnections", totals.slow_readers);
    line(text, "acl_access_denied_auth", cx.shared.logins.failed());
    line(text, "refused_logins", cx.shared.logins.refused());
    line(text, "expired_keys", cx.shared.expired_since_reset());
    line(text, "evicted_keys", 0);
    line(text, "evicted_clients", totals.evicted_clients);
    line(text, "refused_replies", cx.shared.client_memory.budget.refusals());
    line(text, "client_protocol_error_disconnections", totals.protocol_errors);
    line(text, "eventloop_cycles", totals.turns);
    line(text, "pubsub_channels", channels);
    line(text, "pubsub_patterns", patterns);
    line(text, "pubsubshard_channels", shards);
    let tracking = cx.shared.engine.tracking_figures();
    line(text, "tracking_total_keys", tracking.keys);
    line(text, "tracking_total_items", tracking.readers);
    line(text, "tracking_total_prefixes", tracking.prefixes);
    line(text, "tracking_total_bytes", tracking.bytes);
    line(text, "once_sessions", cx.shared.engine.session_count());
}

fn replication(text: &mut String, cx: &Context<'_>) {
    if let Some(leader) = cluster_command::followed(cx) {
        line(text, "role", "slave");
        line(text, "master_host", leader.host);
        line(text, "master_port", leader.port);
        line(text, "master_link_status", if leader.is_up { "up" } else { "down" });
    } else {
        line(text, "role", "master");
    }
    let followers = cluster_command::followers(cx);
    line(text, "connected_slaves", followers.len());
    for (number, node) in followers.iter().enumerate() {
        let Node { host, port, .. } = node;
        line(text, &format!("slave{number}"), format_args!("ip={host},port={port},state=online"));
    }
    line(text, "master_replid", &cx.shared.run_id);
    line(text, "master_repl_offset", cx.shared.engine.log().appended());
}

fn cpu(text: &mut String, _: &Context<'_>) {
    let (user, system) = processor_seconds();
    line(text, "used_cpu_sys", format_args!("{system:.6}"));
    line(text, "used_cpu_user", format_args!("{user:.6}"));
}

fn error_stats(text: &mut String, cx: &Context<'_>) {
    for (code, count) in cx.shared.errors.all() {
        line(text, &format!("errorstat_{code}"), format_args!("count={count}"));
    }
}

fn cluster(text: &mut String, cx: &Context<'_>) {
    line(text, "cluster_enabled", u8::from(cx.shared.group.is_some()));
}

fn sinks(text: &mut String, cx: &Context<'_>) {
    let figures = cx.shared.sinks.figures(cx.shared.engine.log().committed());
    line(text, "sinks", figures.len());
    for (number, figure) in figures.iter().enumerate() {
        // Commas separate fields, lines separate sinks.
        let error = figure.last_error.replace(['\r', '\n'], " ").replace(',', ";");
        line(
            text,
            &format!("sink{number}"),
            format_args!(
                "url={},state={},position={},lag={},messages={},errors={},last_error={error}",
                figure.name.replace(',', ";"),
                figure.state,
                figure.position,
                figure.lag,
                figure.messages,
                figure.errors
            ),
        );
    }
}

fn counters(text: &mut String, cx: &Context<'_>) {
    let CounterFigures { totals, failed, exposure, keys } = cx.shared.engine.counter_figures();
    line(text, "counter_keys", keys);
    line(text, "counter_moves", totals.moves);
    line(text, "counter_moved_units", totals.moved_units);
    line(text, "counter_commits", totals.commits);
    line(text, "counter_committed_units", totals.committed_units);
    line(text, "counter_commit_errors", failed);
    line(text, "counter_write_reduction_ratio", format_args!("{:.6}", totals.write_reduction()));
    line(text, "counter_churn_ratio", format_args!("{:.6}", totals.churn()));
    line(text, "counters_uncommitted", exposure.counters);
    line(text, "counter_uncommitted_units", exposure.units);
    line(text, "counter_reserved_units", exposure.reserved);
    line(text, "counter_oldest_uncommitted_ms", uncommitted_age_ms(&exposure, &cx.shared.clock));
}

fn pools(text: &mut String, cx: &Context<'_>) {
    let PoolFigures { totals, pools, reservations } = cx.shared.engine.pool_figures();
    line(text, "pool_keys", pools);
    line(text, "pool_draws", totals.draws);
    line(text, "pool_refusals", totals.refusals);
    line(text, "pool_reservations_open", reservations);
}

/// Returns the age of the oldest uncommitted change of a counter in milliseconds; 0 if none.
pub(crate) fn uncommitted_age_ms(exposure: &Exposure, clock: &Clock) -> u64 {
    exposure.since_ms.map_or(0, |since_ms| (clock.now_us() / 1000).saturating_sub(since_ms))
}

fn keyspace(text: &mut String, cx: &Context<'_>) {
    for (db, count) in key_counts(cx.shared).iter().enumerate().filter(|(_, count)| count.keys > 0) {
        line(
            text,
            &format!("db{db}"),
            format_args!("keys={},expires={},avg_ttl=0", count.keys, count.with_deadline),
        );
    }
}

/// Keys in one database.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct KeyCount {
    pub(crate) keys: usize,
    pub(crate) with_deadline: usize,
}

/// Counts keys by database, one shard after the other.
pub(crate) fn key_counts(shared: &Shared) -> [KeyCount; DATABASES] {
    let mut counts = [KeyCount::default(); DATABASES];
    let keyspace = shared.engine.keyspace();
    for index in 0..keyspace.shard_count() {
        let shard = keyspace.lock(index);
        for (count, database) in counts.iter_mut().zip(shard.databases()) {
            count.keys += database.len();
            count.with_deadline += database.deadline_count();
        }
    }
    counts
}

/// Resident memory of the process, in bytes; 0 where the system does not report it.
struct Resident {
    now: u64,
    /// Peak since the process began.
    peak: u64,
}

fn resident() -> Resident {
    let now = resident_bytes();
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    // The two values are read one after the other, so the peak may be the older.
    Resident { now, peak: peak.map_or(now, |kibibytes| (kibibytes * 1024).max(now)) }
}

/// Formats bytes as Redis does for people: 943.12K.
fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let power = (bytes.ilog2() / 10).min(5);
    let value = bytes as f64 / 1024_f64.powi(power as i32);
    format!("{value:.2}{}", UNITS[power as usize - 1])
}

/// Returns the resident memory of the process in bytes; 0 where the system does not report it.
pub(crate) fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// Returns the CPU seconds of the process in user and system mode; 0 where they are not reported.
pub(crate) fn processor_seconds() -> (f64, f64) {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may contain spaces, so fields are counted after it.
    let fields = text.rsplit(')').next().unwrap_or_default();
    let field =
        |index: usize| fields.split_whitespace().nth(index).and_then(|ticks| ticks.parse::<f64>().ok());
    let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
    (field(11).unwrap_or(0.0) / ticks_per_second, field(12).unwrap_or(0.0) / ticks_per_second)
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn bytes_are_shown_as_by_redis() {
        let shown = [0, 1023, 1024, 965_760, 25_276_510_208, 1 << 50, u64::MAX].map(human);
        assert_eq!(shown, ["0B", "1023B", "1.00K", "943.12K", "23.54G", "1.00P", "16384.00P"]);
    }
}
