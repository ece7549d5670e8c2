//! Metrics in the `OpenMetrics` format, collected on request.

use crate::command::info::{key_counts, processor_seconds, resident_bytes, uncommitted_age_ms};
use crate::group::NodeId;
use crate::shared::Shared;
use crate::sinks::SinkFigures;
use crate::version::TIDEMARK_VERSION;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use tidemark_engine::keyspace::KeyChurn;
use tidemark_engine::{ChurnOrder, CounterFigures, PoolFigures};

/// Encodes a server's metrics as text.
pub(crate) fn encode(shared: &Arc<Shared>) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("tidemark");
    registry.register("build", "The program that runs", Info::new([("version", TIDEMARK_VERSION)]));
    registry.register_collector(Box::new(Snapshot { shared: Arc::clone(shared) }));
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text)
}

struct Snapshot {
    shared: Arc<Shared>,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        encode_clients(&self.shared, &mut encoder)?;
        encode_log(&self.shared, &mut encoder)?;
        encode_counters(&self.shared, &mut encoder)?;
        encode_pools(&self.shared, &mut encoder)?;
        encode_sinks(&self.shared, &mut encoder)?;
        encode_group(&self.shared, &mut encoder)?;
        encode_state(&self.shared, &mut encoder)
    }
}

fn encode_clients(shared: &Shared, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let totals = shared.totals();
    counter(encoder, "commands", "Commands run", totals.commands)?;
    counter(encoder, "connections", "Connections accepted", totals.connections)?;
    counter(encoder, "connections_refused", "Connections refused on arrival", totals.refused_connections)?;
    counter(encoder, "received_bytes", "Bytes received from clients", totals.received_bytes)?;
    counter(encoder, "sent_bytes", "Bytes sent to clients", totals.sent_bytes)?;
    counter(
        encoder,
        "slow_readers_disconnected",
        "Clients that did not read their replies",
        totals.slow_readers,
    )?;
    counter(
        encoder,
        "clients_evicted",
        "Clients disconnected because all together used too much memory",
        totals.evicted_clients,
    )?;
    let memory = &shared.client_memory.budget;
    let refusals = memory.refusals() as u64;
    counter(encoder, "replies_refused", "Replies refused because the memory of clients was full", refusals)?;
    gauge(encoder, "client_memory_bytes", "Memory of the buffers of all clients", memory.used() as f64)?;
    let limit = if memory.limit() == usize::MAX { f64::INFINITY } else { memory.limit() as f64 };
    gauge(encoder, "client_memory_limit_bytes", "Limit of client buffers", limit)?;
    counter(encoder, "logins_failed", "Wrong passwords", shared.logins.failed())?;
    let refused = shared.logins.refused();
    counter(encoder, "logins_refused", "Logins refused after too many wrong passwords", refused)?;
    counter(encoder, "protocol_errors", "Clients that sent an invalid request", totals.protocol_errors)?;
    counter(encoder, "event_loop_turns", "Turns of the event loops", totals.turns)?;
    counter(encoder, "emissions", "Emissions of watched reads written to clients", totals.emissions)?;
    counter(encoder, "changes", "Changes sent to followers of the log", totals.changes)?;
    let errors: u64 = shared.errors.all().values().sum();
    counter(encoder, "error_replies", "Commands answered by an error", errors)?;
    gauge(encoder, "clients_connected", "Clients connected now", shared.clients.count() as f64)?;
    let watching = shared.http_registry.count();
    gauge(encoder, "http_watch_connections", "Connections that watch reads over HTTP", watching as f64)?;
    let (channels, patterns, shards) = shared.pubsub.counts();
    gauge(encoder, "pubsub_channels", "Channels that have subscribers", (channels + shards) as f64)?;
    gauge(encoder, "pubsub_patterns", "Patterns that have subscribers", patterns as f64)?;
    gauge(
        encoder,
        "changes_followers",
        "Connections and sinks that follow the log",
        shared.feed.followers() as f64,
    )?;
    gauge(encoder, "once_sessions", "Sessions of ONCE", shared.engine.session_count() as f64)?;
    let (queries, retained) = shared.engine.query_figures();
    gauge(encoder, "watched_reads", "Different reads that are watched", queries as f64)?;
    gauge(
        encoder,
        "watched_reads_dormant",
        "Watched reads that are dormant: answering them on each change would cost too much",
        shared.engine.dormant_queries() as f64,
    )?;
    gauge(
        encoder,
        "channel_watches",
        "Watched reads that are published on channels",
        shared.channel_registry.len() as f64,
    )?;
    let (evaluated, spared) = shared.engine.evaluation_figures();
    counter(encoder, "watched_answers", "Evaluations of watched reads", evaluated)?;
    counter(
        encoder,
        "watched_answers_spared",
        "Evaluations of watched reads that were skipped, because a change of the key could not affect them",
        spared,
    )?;
    gauge(encoder, "retained_emission_bytes", "Bytes of retained emissions", retained as f64)?;
    let (running, waiting, begun) = shared.replays.figures();
    gauge(encoder, "backlogs", "Subscribers in replay", running as f64)?;
    gauge(encoder, "backlogs_waiting", "Subscribers waiting for replay", waiting as f64)?;
    counter(encoder, "backlogs_begun", "Replays started", begun)?;
    counter(encoder, "long_commands", "Commands that ran beside the event loops", shared.offload.begun())?;
    let tracking = shared.engine.tracking_figures();
    gauge(encoder, "tracking_clients", "Clients with CLIENT TRACKING", tracking.trackers as f64)?;
    gauge(encoder, "tracked_keys", "Keys remembered for tracking clients", tracking.keys as f64)?;
    gauge(encoder, "tracked_bytes", "Bytes of tracked keys and their readers", tracking.bytes as f64)
}

fn encode_log(shared: &Shared, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let log = shared.engine.log();
    // Since the start, because counters begin at 0: LSNs jump at an unclean start, which a rate
    // would show as a burst.
    let records = |last| log.records_between(log.recovered(), last);
    counter(encoder, "log_appended_records", "Records appended since the start", records(log.appended()))?;
    counter(
        encoder,
        "log_written_records",
        "Records since the start that survive the process",
        records(log.written()),
    )?;
    counter(
        encoder,
        "log_durable_records",
        "Records since the start that survive a power failure",
        records(log.durable()),
    )?;
    counter(
        encoder,
        "log_committed_records",
        "Records since the start that clients may be told of: durable ones, or those of a quorum in a group",
        records(log.committed()),
    )?;
    let healthy = shared.engine.check_writable().is_ok();
    gauge(encoder, "log_writable", "1 while the log accepts changes", f64::from(u8::from(healthy)))
}

fn encode_pools(shared: &Shared, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let PoolFigures { totals, pools, reservations } = shared.engine.pool_figures();
    gauge(encoder, "pool_keys", "Keys in all databases that are prize pools", pools as f64)?;
    counter(encoder, "pool_draws", "Draws from prize pools", totals.draws)?;
    counter(
        encoder,
        "pool_refusals",
        "Draws and other changes that prize pools have refused",
        totals.refusals,
    )?;
    gauge(encoder, "pool_reservations_open", "Reservations of prize pools that are open", reservations as f64)
}

fn encode_counters(shared: &Shared, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let CounterFigures { totals, failed, exposure, keys } = shared.engine.counter_figures();
    gauge(encoder, "counter_keys", "Keys in all databases that are counters", keys as f64)?;
    counter(encoder, "counter_moves", "Moves of counters", totals.moves)?;
    counter(
        encoder,
        "counter_moved_units",
        "Units that counters were moved by, up or down",
        totals.moved_units,
    )?;
    counter(encoder, "counter_commits", "Commits of counters to the log", totals.commits)?;
    counter(
        encoder,
        "counter_committed_units",
        "Units by which commits moved the committed positions",
        totals.committed_units,
    )?;
    counter(encoder, "counter_commit_errors", "Commits of counters that the log has refused", failed)?;
    gauge(
        encoder,
        "counter_write_reduction_ratio",
        "Share of the moves that needed no record of their own",
        totals.write_reduction(),
    )?;
    gauge(
        encoder,
        "counter_churn_ratio",
        "Share of the moved units that was not committed, because other moves cancelled it or because it waits",
        totals.churn(),
    )?;
    gauge(
        encoder,
        "counters_uncommitted",
        "Counters that have moved since they were committed",
        exposure.counters as f64,
    )?;
    gauge(
        encoder,
        "counter_uncommitted_units",
        "Units of relaxed counters that a crash would lose",
        exposure.units as f64,
    )?;
    gauge(
        encoder,
        "counter_reserved_units",
        "Units that exact counters have reserved and not used",
        exposure.reserved as f64,
    )?;
    gauge(
        encoder,
        "counter_oldest_uncommitted_seconds",
        "Age of the oldest change of a counter that is not committed",
        uncommitted_age_ms(&exposure, &shared.clock) as f64 / 1000.0,
    )?;
    encode_top_counters(shared, encoder)
}

/// Encodes the counters that move most. Unlike the figures above, these are estimates over the last
/// half to one minute.
fn encode_top_counters(shared: &Shared, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let config = shared.settings.current();
    let top = shared.engine.churning(ChurnOrder::Moves, config.counter_churn_series, shared.clock.now_us());
    let mut top = TopFamilies { encoder, top: &top.keys, with_names: config.counter_churn_names };
    top.encode("moves", "Recent moves of one of the counters that move most", |key| key.moves as f64)?;
    top.encode("moved_units", "Units that the counter was moved by, up or down", |key| key.units as f64)?;
    top.encode("committed_units", "Units by which commits moved the counter's committed position", |key| {
        key.committed as f64
    })?;
    top.encode("churn", "Share of the counter's moved units that was not committed", KeyChurn::churn)
}

/// Metric families with one series per top counter.
struct TopFamilies<'a, 'e> {
    encoder: &'a mut DescriptorEncoder<'e>,
    top: &'a [KeyChurn],
    with_names: bool,
}

impl TopFamilies<'_, '_> {
    fn encode(&mut self, name: &str, help: &str, figure: impl Fn(&KeyChurn) -> f64) -> fmt::Result {
        if self.top.is_empty() {
            return Ok(());
        }
        let labels: Vec<String> = self.top.iter().map(|key| self.label(key)).collect();
        let (name, help) = (format!("counter_top_{name}"), format!("{help}."));
        let mut family = self.encoder.encode_descriptor(&name, &help, None, MetricType::Gauge)?;
        for (key, label) in self.top.iter().zip(labels) {
            let labels = [("db", key.db.to_string()), ("key", label)];
            ConstGauge::new(figure(key)).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// Label of a counter, unique per counter. A truncated name is not unique, so its id is used.
    fn label(&self, key: &KeyChurn) -> String {
        if self.with_names && key.is_whole { printable(&key.name) } else { key.id() }
    }
}

/// Escapes bytes as one line of text, reversibly.
fn printable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == '\\' || character.is_control() {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

fn encode_sinks(shared: &Shared, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let figures = shared.sinks.figures(shared.engine.log().committed());
    let state = |figure: &SinkFigures, name: &str| ConstGauge::new(u64::from(figure.state == name) as f64);
    let mut sinks = SinkFamilies { encoder, figures: &figures };
    sinks.encode("position", "LSN up to which the sink has delivered changes", |figure| {
        ConstGauge::new(figure.position as f64)
    })?;
    sinks.encode("lag", "Committed records that the sink has not delivered", |figure| {
        ConstGauge::new(figure.lag as f64)
    })?;
    sinks.encode("running", "1 while the sink delivers changes", |figure| state(figure, "running"))?;
    sinks.encode("stopped", "1 if the sink needs an operator to continue", |figure| {
        state(figure, "stopped")
    })?;
    sinks.encode("messages", "Messages that the sink has delivered", |figure| {
        ConstCounter::new(figure.messages)
    })?;
    sinks.encode("errors", "Failures of the sink", |figure| ConstCounter::new(figure.errors))
}

/// Metric families with one series per sink.
struct SinkFamilies<'a, 'e> {
    encoder: &'a mut DescriptorEncoder<'e>,
    figures: &'a [SinkFigures],
}

impl SinkFamilies<'_, '_> {
    fn encode<M: EncodeMetric>(
        &mut self,
        name: &str,
        help: &str,
        metric: impl Fn(&SinkFigures) -> M,
    ) -> fmt::Result {
        let metrics: Vec<(&SinkFigures, M)> =
            self.figures.iter().map(|figure| (figure, metric(figure))).collect();
        let Some((_, first)) = metrics.first() else { return Ok(()) };
        let (name, help) = (format!("sink_{name}"), format!("{help}."));
        let mut family = self.encoder.encode_descriptor(&name, &help, None, first.metric_type())?;
        for (figure, metric) in &metrics {
            metric.encode(family.encode_family(&[("sink", &*figure.name)])?)?;
        }
        Ok(())
    }
}

/// Encodes what a member knows of its group; nothing at a node alone.
fn encode_group(shared: &Shared, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let Some(group) = &shared.group else { return Ok(()) };
    let (status, members) = (group.consensus().status(), group.consensus().members());
    gauge(encoder, "cluster_leads", "1 while this member leads", f64::from(u8::from(group.leads())))?;
    gauge(encoder, "cluster_term", "Newest term that this member knows", status.term.0 as f64)?;
    counter(
        encoder,
        "cluster_leader_changes",
        "Times another member led than before",
        group.leader_changes(),
    )?;
    gauge(encoder, "cluster_last_entry", "Index of this member's last entry", status.last as f64)?;
    gauge(
        encoder,
        "cluster_committed_entry",
        "Index of the last entry that is known to be committed",
        status.committed as f64,
    )?;
    let (log, applied) = (shared.engine.log(), shared.engine.applied());
    gauge(
        encoder,
        "cluster_unapplied_records",
        "Committed records that are not in memory yet",
        log.records_between(applied, log.committed().max(applied)) as f64,
    )?;
    gauge(
        encoder,
        "cluster_refuses_snapshot",
        "1 while this member does not take the snapshot that it needs",
        f64::from(u8::from(status.refuses_snapshot)),
    )?;
    if let Some(age) = status.quorum_age {
        let help = "Time since most members acknowledged this leader";
        gauge(encoder, "cluster_quorum_age_seconds", help, age.as_secs_f64())?;
    }
    counter(encoder, "cluster_messages_sent", "Published messages sent to members", status.messages.sent)?;
    counter(
        encoder,
        "cluster_messages_received",
        "Published messages received from members",
        status.messages.received,
    )?;
    counter(
        encoder,
        "cluster_messages_dropped",
        "Published messages that did not reach the subscribers of a member",
        status.messages.dropped,
    )?;
    let others = || members.iter().filter(|member| member.id != group.me());
    encode_members(
        encoder,
        "connected",
        "1 while the member is reached",
        others().map(|member| (member.id, f64::from(u8::from(member.is_reachable)))),
    )?;
    let lacks_snapshot = |id| f64::from(u8::from(status.unsent_snapshots.contains(&id)));
    let followers = others().filter(|_| group.leads());
    encode_members(
        encoder,
        "lacks_snapshot",
        "1 while the member does not get the snapshot that it needs; only at the leader",
        followers.map(|member| (member.id, lacks_snapshot(member.id))),
    )?;
    let lag = |last: u64| status.last.saturating_sub(last) as f64;
    encode_members(
        encoder,
        "lag_entries",
        "Entries that the member has not acknowledged; only at the leader",
        status.matching.iter().filter(|(id, _)| *id != group.me()).map(|(id, last)| (*id, lag(*last))),
    )
}

/// Encodes a gauge with one series for each other member.
fn encode_members(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (NodeId, f64)>,
) -> fmt::Result {
    let mut values = values.peekable();
    if values.peek().is_none() {
        return Ok(());
    }
    let (name, help) = (format!("cluster_member_{name}"), format!("{help}."));
    let mut family = encoder.encode_descriptor(&name, &help, None, MetricType::Gauge)?;
    for (id, value) in values {
        ConstGauge::new(value).encode(family.encode_family(&[("member", id.to_string())])?)?;
    }
    Ok(())
}

fn encode_state(shared: &Shared, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let is_loading = !shared.engine.is_loaded();
    let progress = if is_loading { shared.loading.figures().percent() / 100.0 } else { 1.0 };
    gauge(encoder, "loading", "1 while the data is being loaded", f64::from(u8::from(is_loading)))?;
    gauge(
        encoder,
        "loading_progress",
        "Share of the snapshot, and then of the log, that is loaded",
        progress,
    )?;
    let counts = key_counts(shared);
    let keys: usize = counts.iter().map(|count| count.keys).sum();
    let expiring: usize = counts.iter().map(|count| count.with_deadline).sum();
    gauge(encoder, "keys", "Keys in all databases", keys as f64)?;
    gauge(encoder, "keys_with_expiry", "Keys in all databases that will expire", expiring as f64)?;
    gauge(encoder, "resident_memory_bytes", "Memory of the process in RAM", resident_bytes() as f64)?;
    let (user, system) = processor_seconds();
    float_counter(encoder, "processor_user_seconds", "Processor time in user mode", user)?;
    float_counter(encoder, "processor_system_seconds", "Processor time in system mode", system)?;
    gauge(encoder, "uptime_seconds", "Time since the start", shared.uptime().as_secs_f64())
}

fn counter(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    encode_metric(encoder, name, help, &ConstCounter::new(value))
}

fn float_counter(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> fmt::Result {
    encode_metric(encoder, name, help, &ConstCounter::new(value))
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> fmt::Result {
    encode_metric(encoder, name, help, &ConstGauge::new(value))
}

fn encode_metric(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metric: &impl EncodeMetric,
) -> fmt::Result {
    let encoder = encoder.encode_descriptor(name, &format!("{help}."), None, metric.metric_type())?;
    metric.encode(encoder)
}
