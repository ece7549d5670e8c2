//! State that all workers share.

use crate::config::Config;
use crate::dice::Directory;
use crate::durability::loading::{Loading, ServedEngine};
use crate::durability::log_state::{CommitLost, has_failed, not_yet_committed};
use crate::durability::snapshots::Snapshots;
use crate::events::keyspace_events::KeyspaceEvents;
use crate::events::pubsub::PubSub;
use crate::group::Group;
use crate::housekeeping::Housekeeping;
use crate::login_guard::LoginGuard;
use crate::migrate::queue::MigrationQueue;
use crate::net::client::Clients;
use crate::net::client_eviction::ClientMemory;
use crate::net::inbox::{Inbox, Message};
use crate::net::offload_queue::{OffloadJob, OffloadQueue};
use crate::net::outbox::Until;
use crate::net::pause::Pause;
use crate::observe::counters::{Counters, ErrorCounts, Rates, Totals};
use crate::observe::operator_line::OperatorLine;
use crate::scripts::host::ServerOfScripts;
use crate::settings::Settings;
use crate::sinks::Sinks;
use crate::subscription::channel_registry::ChannelRegistry;
use crate::subscription::http_registry::{HttpRegistry, NeverReached};
use crate::subscription::ownership::NameOwners;
use crate::subscription::replay_queue::ReplayQueue;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidemark_changes::Feed;
use tidemark_cluster::SYNC_RECORD;
use tidemark_engine::Engine;
use tidemark_engine::watch::{Emission, WriteBudget};
use tidemark_log::{Clock, Durability, Lsn, Room};
use tokio::sync::Semaphore;

/// Minimum time between two retention runs over watched reads, in milliseconds.
const FORGETTING_PAUSE_MS: u64 = 1_000;
/// The same while all watched reads have subscribers and no emission is retained.
const WATCHED_PAUSE_MS: u64 = 60_000;
/// Minimum time between two warnings about HTTP on the command port, in seconds.
const HTTP_WARNING_PAUSE_S: u64 = 60;

/// Pause between two looks at whether the workers have taken a message.
const BEAT_PAUSE: Duration = Duration::from_micros(200);

/// The server's state, shared by all threads.
pub(crate) struct Shared {
    /// The one source of time, which is the log's too.
    pub(crate) clock: Clock,
    pub(crate) engine: ServedEngine,
    pub(crate) loading: Loading,
    pub(crate) settings: Arc<Settings>,
    /// The group that this node is a member of; `None` if it is alone.
    pub(crate) group: Option<Group>,
    pub(crate) clients: Clients,
    /// Memory budget of all clients' input and output buffers.
    pub(crate) client_memory: ClientMemory,
    pub(crate) pubsub: Arc<PubSub>,
    pub(crate) keyspace_events: Arc<KeyspaceEvents>,
    /// Clients of DiceDB's protocol.
    pub(crate) dice: Arc<Directory>,
    pub(crate) snapshots: Snapshots,
    /// Queue of subscriptions whose emissions are replayed from the log.
    pub(crate) replays: ReplayQueue,
    pub(crate) offload: OffloadQueue<OffloadJob>,
    pub(crate) migrations: MigrationQueue,
    /// The log as a stream of changes for followers.
    pub(crate) feed: Arc<Feed>,
    /// Sinks that forward the log's changes.
    pub(crate) sinks: Sinks,
    /// Free places for connections that follow the log.
    pub(crate) follower_places: Arc<Semaphore>,
    /// One per worker.
    pub(crate) inboxes: Vec<Arc<Inbox>>,
    /// Owners of named subscriptions.
    pub(crate) name_owners: NameOwners,
    /// Subscribers to watched reads over HTTP.
    pub(crate) http_registry: Arc<HttpRegistry>,
    /// Watched reads whose emissions are published on channels.
    pub(crate) channel_registry: Arc<ChannelRegistry>,
    /// One per worker, one for channels, and the last for HTTP.
    pub(crate) counters: Vec<Counters>,
    pub(crate) errors: ErrorCounts,
    /// Totals and expired keys at the last `CONFIG RESETSTAT`.
    baseline: Mutex<(Totals, u64)>,
    /// Totals when `INFO` last computed rates, and those rates.
    pub(crate) rates: Mutex<Rates>,
    started: Instant,
    /// Unique per run of the server. 40 hexadecimal digits.
    pub(crate) run_id: String,
    stopping: AtomicBool,
    /// Work that is due at a time, on behalf of no client.
    pub(crate) housekeeping: Housekeeping,
    /// Time of the next retention run over watched reads, in milliseconds since 1970. `u64::MAX` if
    /// there are no watched reads.
    next_forgetting_ms: AtomicU64,
    pub(crate) pause: Pause,
    /// Limits wrong passwords by address.
    pub(crate) logins: LoginGuard,
    http_warning: OperatorLine,
    /// The newest record that has members of a group sync what is before it.
    newest_sync: AtomicU64,
}

impl Shared {
    /// Creates a server whose data is loaded.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn new(
        engine: Engine,
        snapshots: Snapshots,
        config: Config,
        inboxes: Vec<Arc<Inbox>>,
    ) -> Shared {
        Shared::in_group(engine, snapshots, config, inboxes, None)
    }

    /// Creates a server whose data is loaded, of a member of a group if one is given.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn in_group(
        engine: Engine,
        snapshots: Snapshots,
        config: Config,
        inboxes: Vec<Arc<Inbox>>,
        group: Option<Group>,
    ) -> Shared {
        let shared = Shared::with(ServedEngine::loaded(engine), snapshots, config, inboxes, group);
        shared.prepare(&shared.engine);
        shared
    }

    /// Creates a server that serves an empty engine while the data is being loaded.
    pub(crate) fn loading(
        empty: Engine,
        snapshots: Snapshots,
        config: Config,
        inboxes: Vec<Arc<Inbox>>,
        group: Option<Group>,
    ) -> Shared {
        Shared::with(ServedEngine::loading(empty), snapshots, config, inboxes, group)
    }

    /// Prepares an engine to be served.
    fn prepare(&self, engine: &Engine) {
        if !engine.is_following() {
            engine.begin_counting();
        }
        self.configure(engine, &self.settings.current(), self.clock.now_us());
        engine.set_event_audience(Arc::<KeyspaceEvents>::clone(&self.keyspace_events));
        let host = ServerOfScripts::new(Arc::clone(&self.pubsub), &self.clock);
        engine.scripts().set_host(Arc::new(host));
    }

    /// Applies the settings that the engine stores.
    pub(crate) fn configure(&self, engine: &Engine, config: &Config, now_us: u64) {
        engine.log().set_durability(config.durability);
        engine.limit_tracking(config.tracking_limits());
        engine.limit_series_memory(config.series_memory_limit());
        self.snapshots.request_dropping();
        engine.limit_writes(WriteBudget {
            write_us: config.watch_write_budget_us,
            heard_us: config.watch_subscribed_budget_us.saturating_mul(config.worker_count() as u64),
            unheard_us: config.watch_unsubscribed_budget_us,
        });
        engine.set_counter_defaults(config.counters);
        engine.keyspace().limit_leases(config.leases_max);
        engine.keyspace().limit_sessions(config.once_max_sessions);
        engine.keyspace().limit_stream_blocks(config.stream_blocks);
        engine.set_churn_sample(config.counter_churn_sample, now_us);
        self.keyspace_events.configure(engine, config);
    }

    /// Starts to serve the loaded engine.
    pub(crate) fn install(&self, engine: Engine) {
        self.prepare(&engine);
        self.engine.install(engine);
        // A client may have changed settings during the load.
        self.configure(&self.engine, &self.settings.current(), self.clock.now_us());
        if self.engine.query_figures().0 > 0 {
            self.watching_began(self.clock.now_us());
        }
        // Workers sleep until a deadline of the empty engine: recompute it.
        self.inboxes.iter().for_each(|inbox| inbox.wake());
        self.http_registry.pause_changed();
    }

    fn with(
        engine: ServedEngine,
        snapshots: Snapshots,
        config: Config,
        inboxes: Vec<Arc<Inbox>>,
        group: Option<Group>,
    ) -> Shared {
        let clock = engine.log().clock().clone();
        let counters = (0..inboxes.len() + 2).map(|_| Counters::default()).collect();
        let replays = ReplayQueue::new(config.watch_backlogs);
        let http_registry = Arc::new(HttpRegistry::new(inboxes.len(), config.http_watch_connections, &clock));
        let client_memory = ClientMemory::new(config.maxmemory_clients.bytes(), &clock);
        let channel_registry = Arc::new(ChannelRegistry::new(inboxes.len() + 1, config.watch_max_channels));
        let follower_places = Arc::new(Semaphore::new(config.changes_followers));
        let settings = Arc::new(Settings::new(config, engine.log().is_member()));
        let pubsub = Arc::<PubSub>::default();
        let keyspace_events = Arc::new(KeyspaceEvents::new(
            Arc::clone(&pubsub),
            inboxes.clone(),
            Arc::clone(&settings),
            Arc::clone(engine.log()),
        ));
        Shared {
            feed: Arc::new(Feed::new(Arc::clone(engine.log()))),
            sinks: Sinks::default(),
            follower_places,
            engine,
            loading: Loading::new(&clock),
            settings,
            group,
            clients: Clients::new(&clock),
            client_memory,
            pubsub,
            keyspace_events,
            dice: Arc::default(),
            snapshots,
            replays,
            offload: OffloadQueue::default(),
            migrations: MigrationQueue::default(),
            inboxes,
            name_owners: NameOwners::default(),
            http_registry,
            channel_registry,
            counters,
            errors: ErrorCounts::default(),
            baseline: Mutex::default(),
            rates: Mutex::new(Rates::new(clock.now())),
            started: clock.now(),
            run_id: run_id(),
            stopping: AtomicBool::new(false),
            housekeeping: Housekeeping::default(),
            next_forgetting_ms: AtomicU64::new(u64::MAX),
            pause: Pause::default(),
            logins: LoginGuard::new(&clock),
            http_warning: OperatorLine::every(HTTP_WARNING_PAUSE_S, &clock),
            newest_sync: AtomicU64::new(0),
            clock,
        }
    }

    /// Begins a graceful stop. Idempotent.
    pub(crate) fn stop(&self) {
        if !self.stopping.swap(true, Ordering::SeqCst) {
            self.engine.hold_removals(0);
            self.pause.end();
            self.loading.give_up();
            self.snapshots.give_up();
            self.replays.stop();
            self.offload.stop();
            self.migrations.stop();
            self.engine
                .scripts()
                .running()
                .end_at(self.clock.now() + self.settings.current().shutdown_timeout);
            self.engine.stop_sealing();
            self.channel_registry.mailbox().stop();
            self.inboxes.iter().for_each(|inbox| inbox.send(Message::Stop));
            self.http_registry.pause_changed();
        }
    }

    /// Begins a pause of clients' commands, replacing any other. No key expires during the pause,
    /// not even on a read.
    pub(crate) fn begin_pause(&self, until_ms: u64, changes_only: bool) {
        self.engine.hold_removals(until_ms);
        self.pause.begin(until_ms, changes_only);
        self.pause_changed();
    }

    /// Ends the pause of clients' commands.
    pub(crate) fn end_pause(&self) {
        self.engine.hold_removals(0);
        self.pause.end();
        self.pause_changed();
    }

    /// Notifies all workers and HTTP that `pause` has changed.
    fn pause_changed(&self) {
        self.inboxes.iter().for_each(|inbox| inbox.send(Message::PauseChanged));
        self.http_registry.pause_changed();
    }

    /// Time since the start.
    pub(crate) fn uptime(&self) -> Duration {
        self.clock.elapsed(self.started)
    }

    /// Whether a graceful stop has begun.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// See [`not_yet_committed`].
    pub(crate) fn not_yet_committed(&self) -> Result<Option<Lsn>, CommitLost> {
        not_yet_committed(self.engine.log())
    }

    /// Log progress that an emission must wait for before it is sent.
    pub(crate) fn holds_back(&self, emission: &Emission) -> Option<Until> {
        self.holds_back_position(emission.lsn, emission.durable)
    }

    /// Log progress that must precede the announcement of `lsn` to a subscriber. A subscriber that
    /// resumes at `lsn` after a process kill must find the record. With `durable`, and wherever
    /// clients are told only what is committed, the record is committed first.
    pub(crate) fn holds_back_position(&self, lsn: Lsn, durable: bool) -> Option<Until> {
        let log = self.engine.log();
        if durable || self.settings.waits_for_commit() {
            (lsn > log.committed()).then_some(Until::Committed(lsn))
        } else {
            (lsn > log.written()).then_some(Until::Written(lsn))
        }
    }

    /// Returns the record that is committed when a change, `lsn`, is as durable as a client may ask. In a group
    /// whose members acknowledge what is written, that is one behind the change that has them sync first.
    ///
    /// # Errors
    /// The log does not take that record. The change is in the log.
    pub(crate) fn synced_with(&self, lsn: Lsn) -> Result<Lsn, CommitLost> {
        let group = self.group.as_ref().filter(|group| group.leads());
        // Not by the settings: the mode follows them a moment later.
        if group.is_none_or(|group| group.consensus().durability() == Durability::Always) {
            return Ok(lsn);
        }
        let asked = Lsn(self.newest_sync.load(Ordering::Acquire));
        if asked > lsn {
            return Ok(asked);
        }
        let now_us = self.clock.now_us();
        let asked = self.engine.log().append_into(Room::NONE, now_us, SYNC_RECORD, |_| {});
        let asked = asked.map_err(|_| CommitLost)?;
        self.newest_sync.fetch_max(asked.0, Ordering::AcqRel);
        Ok(asked)
    }

    /// Whether a write or sync of the log has failed. A full log has not failed: it still makes its
    /// records durable.
    pub(crate) fn log_has_failed(&self) -> bool {
        has_failed(self.engine.log())
    }

    /// Warns the operator, rate-limited, that a client speaks HTTP on the command port.
    pub(crate) fn warn_of_http(&self, address: &str) {
        self.http_warning.write(|| {
            format!(
                "warning: {address} sent HTTP to the port of commands and was disconnected; a web page may be trying to make \
                 its visitors' browsers run commands here"
            )
        });
    }

    /// Counters of the channel thread.
    pub(crate) fn channel_counters(&self) -> &Counters {
        &self.counters[self.inboxes.len()]
    }

    /// Totals since the start.
    pub(crate) fn totals(&self) -> Totals {
        Totals::of(&self.counters)
    }

    /// Totals since the last reset.
    pub(crate) fn totals_since_reset(&self) -> Totals {
        self.totals().since(self.baseline.lock().unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Keys expired since the last reset.
    pub(crate) fn expired_since_reset(&self) -> u64 {
        self.engine.expired_keys() - self.baseline.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    /// Resets the totals.
    pub(crate) fn reset_totals(&self) {
        let now = (self.totals(), self.engine.expired_keys());
        *self.baseline.lock().unwrap_or_else(PoisonError::into_inner) = now;
        self.errors.reset();
    }

    /// When [`Shared::do_due_work`] has work next, in milliseconds since 1970. Only the leader has.
    pub(crate) fn next_due_work(&self) -> Option<u64> {
        if self.leads() { self.housekeeping.next(&self.engine, self.pause.until_ms()) } else { None }
    }

    /// Does what is due on behalf of no client: see [`crate::housekeeping`].
    pub(crate) fn do_due_work(&self, now_us: u64) {
        if self.leads() {
            self.housekeeping.run(&self.engine, self.pause.until_ms(), now_us);
        }
    }
}

impl Shared {
    /// Begins a graceful stop. A member of a group that leads hands the lead over first, so that clients
    /// wait for a moment only; a second call stops at once.
    pub(crate) fn stop_gracefully(&self) {
        if !self.group.as_ref().is_some_and(Group::leave) {
            self.stop();
        }
    }

    /// Whether this node changes data on its own account: it is alone, or it leads.
    pub(crate) fn leads(&self) -> bool {
        self.group.as_ref().is_none_or(Group::leads)
    }

    /// See [`Group::ended_terms`]; never changes alone.
    #[inline]
    pub(crate) fn ended_terms(&self) -> u64 {
        self.group.as_ref().map_or(0, Group::ended_terms)
    }

    /// The lead is here from now on: what is due becomes this node's work.
    pub(crate) fn begin_term(&self) {
        self.sinks.lead_changed(|| self.leads());
        self.wake_all();
    }

    /// Counts a term of this member that has ended: see [`Group::ended_terms`].
    pub(crate) fn count_ended_term(&self) {
        if let Some(group) = &self.group {
            group.end_term();
        }
    }

    /// The lead is no longer here, and its term is counted. Ends the connections of all clients, without
    /// the answers that waited: whether their changes stay is decided by the next leader.
    pub(crate) fn end_term(&self) {
        self.sinks.lead_changed(|| self.leads());
        self.wake_all();
    }

    /// Waits until each worker has sent the answers that the log's progress up to now allows, at most
    /// `patience`.
    pub(crate) fn send_answers(&self, patience: Duration) {
        let began = self.clock.now();
        // A worker takes its messages before it looks at the log and sends. The second message is taken when
        // all of that is done.
        for _ in 0..2 {
            let taken = Arc::<AtomicUsize>::default();
            self.inboxes.iter().for_each(|inbox| inbox.send(Message::Beat(Arc::clone(&taken))));
            while taken.load(Ordering::Acquire) < self.inboxes.len() {
                if self.clock.elapsed(began) > patience {
                    return;
                }
                std::thread::sleep(BEAT_PAUSE);
            }
        }
    }

    /// See [`HttpRegistry::wait_for_log`].
    pub(crate) async fn wait_for_log(
        &self,
        until: Option<Until>,
        ended_terms: u64,
    ) -> Result<(), NeverReached> {
        let (log, group) = (self.engine.log(), self.group.as_ref());
        self.http_registry.wait_for_log(log, group, until, ended_terms).await
    }

    fn wake_all(&self) {
        self.inboxes.iter().for_each(|inbox| inbox.wake());
        self.http_registry.log_moved();
        self.http_registry.pause_changed();
    }
}

impl Shared {
    /// Schedules retention runs, if none is scheduled, because there is a watched read.
    pub(crate) fn watching_began(&self, now_us: u64) {
        if self.next_forgetting_ms.load(Ordering::SeqCst) == u64::MAX {
            self.next_forgetting_ms.store(now_us / 1000 + FORGETTING_PAUSE_MS, Ordering::SeqCst);
        }
    }

    /// When [`Shared::forget_watched`] has work next, in milliseconds since 1970.
    pub(crate) fn next_forgetting(&self) -> Option<u64> {
        let at = self.next_forgetting_ms.load(Ordering::Relaxed);
        (at != u64::MAX && self.leads()).then_some(at)
    }

    /// Evicts emissions past retention, and watched reads without subscribers, unless another
    /// worker is doing so.
    pub(crate) fn forget_watched(&self, now_us: u64) {
        let due = self.next_forgetting_ms.load(Ordering::Relaxed);
        let now_ms = now_us / 1000;
        if due > now_ms || !self.leads() {
            return;
        }
        let later = now_ms + FORGETTING_PAUSE_MS;
        if self.next_forgetting_ms.compare_exchange(due, later, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            if !self.engine.log().has_room() {
                // Removing a watched read appends a record.
                self.next_forgetting_ms.store(later, Ordering::SeqCst);
                return;
            }
            self.engine.forget_watched(now_us);
            // Rounded up: an earlier run would find nothing.
            let next_ms = self.engine.next_forgetting_us().map(|at| at / 1000 + 1);
            let next_ms = match next_ms {
                Some(at) => at.max(later),
                None if self.engine.query_figures().0 > 0 => now_ms + WATCHED_PAUSE_MS,
                None => u64::MAX,
            };
            self.next_forgetting_ms.store(next_ms, Ordering::SeqCst);
            if next_ms == u64::MAX && self.engine.query_figures().0 > 0 {
                // A read was watched concurrently and saw a run scheduled: schedule one for it.
                self.watching_began(now_us);
            }
        }
    }
}

fn run_id() -> String {
    use std::hash::{BuildHasher, RandomState};
    // Each `RandomState` is keyed from the system's randomness.
    let words = [0_u64, 1, 2].map(|word| RandomState::new().hash_one(word));
    let mut id = words.map(|word| format!("{word:016x}")).concat();
    id.truncate(40);
    id
}
