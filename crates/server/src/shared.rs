//! What all workers share.

use crate::clock::now_us;
use crate::config::Config;
use crate::dice::Directory;
use crate::durability::loading::{Loading, ServedEngine};
use crate::durability::log_state::{has_failed, not_yet_durable};
use crate::durability::snapshots::Snapshots;
use crate::events::keyspace_events::KeyspaceEvents;
use crate::events::publication::Kind;
use crate::events::pubsub::PubSub;
use crate::login_guard::LoginGuard;
use crate::net::client::Clients;
use crate::net::client_eviction::ClientMemory;
use crate::net::connection_id::ConnectionAddress;
use crate::net::inbox::{Inbox, Message};
use crate::net::offload::Offload;
use crate::net::outbox::Until;
use crate::net::pause::Pause;
use crate::observe::counters::{Counters, ErrorCounts, Rates, Totals};
use crate::observe::operator_line::OperatorLine;
use crate::settings::Settings;
use crate::sinks::Sinks;
use crate::subscription::channel_publisher::ChannelPublisher;
use crate::subscription::http_registry::HttpRegistry;
use crate::subscription::ownership::NameOwners;
use crate::subscription::replay_queue::ReplayQueue;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tidemark_changes::Feed;
use tidemark_engine::Engine;
use tidemark_engine::watch::{Emission, WriteBudget};
use tidemark_log::Lsn;
use tokio::sync::Semaphore;

/// Active expiry runs at most every so many milliseconds, however densely deadlines lie.
const EXPIRY_PAUSE_MS: u64 = 10;
/// What is to be logged on nobody's behalf waits so many milliseconds if the log has no room.
const ROOM_PAUSE_MS: u64 = 100;
/// Keys that one run of active expiry removes at most, so that clients wait for it less than a millisecond or so.
const EXPIRY_BUDGET: usize = 1_000;
/// How many counters one turn commits at most.
const COMMIT_BUDGET: usize = 1_000;
/// Watched reads are looked through for what is too old at most every so many milliseconds.
const FORGETTING_PAUSE_MS: u64 = 1_000;
/// The same while each of them has subscribers and nothing is retained.
const WATCHED_PAUSE_MS: u64 = 60_000;
/// The operator is warned of HTTP at most once in so many seconds.
const HTTP_WARNING_PAUSE_S: u64 = 60;

/// The server, as its workers see it.
pub(crate) struct Shared {
    pub(crate) engine: ServedEngine,
    pub(crate) loading: Loading,
    pub(crate) settings: Arc<Settings>,
    pub(crate) clients: Clients,
    /// Memory for what clients have sent and have not read.
    pub(crate) client_memory: ClientMemory,
    pub(crate) pubsub: Arc<PubSub>,
    pub(crate) keyspace_events: Arc<KeyspaceEvents>,
    /// Clients of DiceDB's protocol.
    pub(crate) dice: Arc<Directory>,
    pub(crate) snapshots: Snapshots,
    /// Emissions that are not retained any more.
    pub(crate) replays: ReplayQueue,
    pub(crate) offload: Offload,
    /// The log as those see it who follow it.
    pub(crate) feed: Arc<Feed>,
    /// Those who pass the log's changes on.
    pub(crate) sinks: Sinks,
    /// Connections that may follow the log and do not yet.
    pub(crate) follower_places: Arc<Semaphore>,
    /// One per worker.
    pub(crate) inboxes: Vec<Arc<Inbox>>,
    /// Who is given named subscriptions.
    pub(crate) name_owners: NameOwners,
    /// Those who watch reads over HTTP.
    pub(crate) http_registry: Arc<HttpRegistry>,
    /// Watched reads whose emissions are published.
    pub(crate) channel_publisher: Arc<ChannelPublisher>,
    /// One per worker, one for channels, and the last for HTTP.
    pub(crate) counters: Vec<Counters>,
    pub(crate) errors: ErrorCounts,
    /// What the counters showed at the last `CONFIG RESETSTAT`, and how many keys had expired.
    baseline: Mutex<(Totals, u64)>,
    /// What the counters showed when `INFO` last computed rates, and these rates.
    pub(crate) rates: Mutex<Rates>,
    pub(crate) started: Instant,
    /// Tells two runs of the server apart. 40 hexadecimal digits.
    pub(crate) run_id: String,
    stopping: AtomicBool,
    /// When active expiry may run again, in milliseconds since 1970.
    next_expiry_ms: AtomicU64,
    /// When counters may be committed again, in milliseconds since 1970.
    next_commit_ms: AtomicU64,
    /// When watched reads and their emissions are looked through for what is too old, in milliseconds since 1970; never if
    /// there are none.
    next_forgetting_ms: AtomicU64,
    pub(crate) active_expiry: AtomicBool,
    pub(crate) pause: Pause,
    /// Wrong passwords, by address.
    pub(crate) logins: LoginGuard,
    http_warning: OperatorLine,
}

impl Shared {
    /// A server whose data is loaded.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn new(
        engine: Engine,
        snapshots: Snapshots,
        config: Config,
        inboxes: Vec<Arc<Inbox>>,
    ) -> Shared {
        let shared = Shared::with(ServedEngine::loaded(engine), snapshots, config, inboxes);
        shared.prepare(&shared.engine);
        shared
    }

    /// A server over an empty engine in place of the one whose data is being loaded.
    pub(crate) fn loading(
        empty: Engine,
        snapshots: Snapshots,
        config: Config,
        inboxes: Vec<Arc<Inbox>>,
    ) -> Shared {
        Shared::with(ServedEngine::loading(empty), snapshots, config, inboxes)
    }

    /// Gets an engine ready to be served.
    fn prepare(&self, engine: &Engine) {
        engine.begin_counting();
        self.configure(engine, &self.settings.current(), now_us());
        engine.set_event_audience(Arc::<KeyspaceEvents>::clone(&self.keyspace_events));
    }

    /// Puts settings in force that the engine keeps.
    pub(crate) fn configure(&self, engine: &Engine, config: &Config, now_us: u64) {
        engine.log().set_durability(config.durability);
        engine.limit_tracking(config.tracking_limits());
        engine.limit_writes(WriteBudget {
            write_us: config.watch_write_budget_us,
            heard_us: config.watch_subscribed_budget_us.saturating_mul(config.worker_count() as u64),
            unheard_us: config.watch_unsubscribed_budget_us,
        });
        engine.set_counter_defaults(config.counters);
        engine.keyspace().limit_leases(config.leases_max);
        engine.set_churn_sample(config.counter_churn_sample, now_us);
        self.keyspace_events.configure(engine, config);
    }

    /// Serves an engine that has its data.
    pub(crate) fn install(&self, engine: Engine) {
        self.prepare(&engine);
        self.engine.install(engine);
        // A client may have changed settings meanwhile.
        self.configure(&self.engine, &self.settings.current(), now_us());
        if self.engine.query_figures().0 > 0 {
            self.watching_began(now_us());
        }
        // Workers sleep until something was due for the empty one.
        self.inboxes.iter().for_each(|inbox| inbox.wake());
        self.http_registry.pause_changed();
    }

    fn with(engine: ServedEngine, snapshots: Snapshots, config: Config, inboxes: Vec<Arc<Inbox>>) -> Shared {
        let counters = (0..inboxes.len() + 2).map(|_| Counters::default()).collect();
        let replays = ReplayQueue::new(config.watch_backlogs);
        let http_registry = Arc::new(HttpRegistry::new(inboxes.len(), config.http_watch_connections));
        let client_memory = ClientMemory::new(config.maxmemory_clients.bytes());
        let channel_publisher = Arc::new(ChannelPublisher::new(inboxes.len() + 1, config.watch_max_channels));
        let follower_places = Arc::new(Semaphore::new(config.changes_followers));
        let (settings, pubsub) = (Arc::new(Settings::new(config)), Arc::<PubSub>::default());
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
            loading: Loading::default(),
            settings,
            clients: Clients::default(),
            client_memory,
            pubsub,
            keyspace_events,
            dice: Arc::default(),
            snapshots,
            replays,
            offload: Offload::default(),
            inboxes,
            name_owners: NameOwners::default(),
            http_registry,
            channel_publisher,
            counters,
            errors: ErrorCounts::default(),
            baseline: Mutex::default(),
            rates: Mutex::new(Rates::new(Instant::now())),
            started: Instant::now(),
            run_id: run_id(),
            stopping: AtomicBool::new(false),
            next_expiry_ms: AtomicU64::new(0),
            next_commit_ms: AtomicU64::new(0),
            next_forgetting_ms: AtomicU64::new(u64::MAX),
            active_expiry: AtomicBool::new(true),
            pause: Pause::default(),
            logins: LoginGuard::default(),
            http_warning: OperatorLine::every(HTTP_WARNING_PAUSE_S),
        }
    }

    /// Begins a graceful stop. Further calls do nothing.
    pub(crate) fn stop(&self) {
        if !self.stopping.swap(true, Ordering::SeqCst) {
            self.engine.hold_removals(0);
            self.pause.end();
            self.loading.give_up();
            self.snapshots.give_up();
            self.replays.stop();
            self.offload.stop();
            self.channel_publisher.mailbox().stop();
            self.inboxes.iter().for_each(|inbox| inbox.send(Message::Stop));
            self.http_registry.pause_changed();
        }
    }

    /// Begins a pause of clients' commands, which replaces any other. Nothing expires meanwhile, not even where a read meets it.
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

    /// Tells all workers, and HTTP, that `pause` has changed.
    fn pause_changed(&self) {
        self.inboxes.iter().for_each(|inbox| inbox.send(Message::PauseChanged));
        self.http_registry.pause_changed();
    }

    /// Ends a client's subscription to a channel, a pattern or a shard channel.
    pub(crate) fn unsubscribe(&self, kind: Kind, name: &[u8], subscriber: ConnectionAddress) {
        if self.pubsub.unsubscribe(kind, name, subscriber) && kind == Kind::Channel {
            self.channel_publisher.subscribers_left(name, self);
        }
    }

    /// Whether a graceful stop has begun.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// The newest record, if it is not durable yet and can still become so. Once the log has failed nothing more does,
    /// and reads go on.
    pub(crate) fn not_yet_durable(&self) -> Option<Lsn> {
        not_yet_durable(self.engine.log())
    }

    /// What must come before anybody is told what an emission shows.
    pub(crate) fn holds_back(&self, emission: &Emission) -> Option<Until> {
        self.holds_back_position(emission.lsn, emission.durable)
    }

    /// What must come before a subscriber hears of a position in the log: whoever comes back with it after the process was
    /// killed must find that position still, and after a power failure as well where everything, or this record, is
    /// `durable` before it is told.
    pub(crate) fn holds_back_position(&self, lsn: Lsn, durable: bool) -> Option<Until> {
        let log = self.engine.log();
        if durable || self.settings.is_always_durable() {
            (lsn > log.durable()).then_some(Until::Durable(lsn))
        } else {
            (lsn > log.written()).then_some(Until::Written(lsn))
        }
    }

    /// Whether a write or sync of the log has failed. A log that is merely full still makes durable what it has.
    pub(crate) fn log_has_failed(&self) -> bool {
        has_failed(self.engine.log())
    }

    /// Tells the operator, not too often, that somebody speaks HTTP where commands are expected.
    pub(crate) fn warn_of_http(&self, address: &str) {
        self.http_warning.write(|| {
            format!(
                "warning: {address} sent HTTP to the port of commands and was disconnected; a web page may be trying to make \
                 its visitors' browsers run commands here"
            )
        });
    }

    /// What the thread of channels counts.
    pub(crate) fn channel_counters(&self) -> &Counters {
        &self.counters[self.inboxes.len()]
    }

    /// What has been counted since the start.
    pub(crate) fn totals(&self) -> Totals {
        Totals::of(&self.counters)
    }

    /// What has been counted since the last reset.
    pub(crate) fn totals_since_reset(&self) -> Totals {
        self.totals().since(self.baseline.lock().unwrap_or_else(PoisonError::into_inner).0)
    }

    /// How many keys have expired since the last reset.
    pub(crate) fn expired_since_reset(&self) -> u64 {
        self.engine.expired_keys() - self.baseline.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    /// Lets counting begin anew.
    pub(crate) fn reset_totals(&self) {
        let now = (self.totals(), self.engine.expired_keys());
        *self.baseline.lock().unwrap_or_else(PoisonError::into_inner) = now;
        self.errors.reset();
    }

    /// When [`Shared::expire`] has something to do, in milliseconds since 1970.
    pub(crate) fn next_expiry(&self) -> Option<u64> {
        if !self.active_expiry.load(Ordering::Relaxed) {
            return None;
        }
        let earliest = self.next_expiry_ms.load(Ordering::Relaxed).max(self.pause.until_ms());
        Some(self.engine.next_deadline()?.max(earliest))
    }

    /// When [`Shared::commit_counters`] has something to do, in milliseconds since 1970.
    pub(crate) fn next_commit(&self) -> Option<u64> {
        let earliest = self.next_commit_ms.load(Ordering::Relaxed).max(self.pause.until_ms());
        Some(self.engine.next_commit()?.max(earliest))
    }

    /// Commits counters that are due, unless another worker is just doing so.
    pub(crate) fn commit_counters(&self, now_us: u64) {
        let now_ms = now_us / 1000;
        if self.next_commit().is_none_or(|at| at > now_ms) {
            return;
        }
        if !self.engine.log().has_room() {
            self.next_commit_ms.store(now_ms + ROOM_PAUSE_MS, Ordering::Relaxed);
            return;
        }
        let due = self.next_commit_ms.load(Ordering::Relaxed);
        // Only one worker wins the right to this run.
        if self.next_commit_ms.compare_exchange(due, now_ms + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        {
            self.engine.commit_due(now_us, COMMIT_BUDGET);
        }
    }

    /// Removes keys whose time has come, unless another worker is just doing so.
    pub(crate) fn expire(&self, now_us: u64) {
        let now_ms = now_us / 1000;
        if self.next_expiry().is_none_or(|at| at > now_ms) {
            return;
        }
        let due = self.next_expiry_ms.load(Ordering::Relaxed);
        let next = now_ms + EXPIRY_PAUSE_MS;
        // Only one worker wins the right to this run.
        if self.next_expiry_ms.compare_exchange(due, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.engine.expire_due(now_us, EXPIRY_BUDGET);
        }
    }
}

impl Shared {
    /// Notes that there is a watched read.
    pub(crate) fn watching_began(&self, now_us: u64) {
        if self.next_forgetting_ms.load(Ordering::SeqCst) == u64::MAX {
            self.next_forgetting_ms.store(now_us / 1000 + FORGETTING_PAUSE_MS, Ordering::SeqCst);
        }
    }

    /// When [`Shared::forget_watched`] has something to do, in milliseconds since 1970.
    pub(crate) fn next_forgetting(&self) -> Option<u64> {
        Some(self.next_forgetting_ms.load(Ordering::Relaxed)).filter(|at| *at != u64::MAX)
    }

    /// Lets go of emissions that are too old, and of watched reads that nobody has come back to, unless another worker is
    /// just doing so.
    pub(crate) fn forget_watched(&self, now_us: u64) {
        let due = self.next_forgetting_ms.load(Ordering::Relaxed);
        let now_ms = now_us / 1000;
        if due > now_ms {
            return;
        }
        let later = now_ms + FORGETTING_PAUSE_MS;
        if self.next_forgetting_ms.compare_exchange(due, later, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            if !self.engine.log().has_room() {
                // Their removal is a record.
                self.next_forgetting_ms.store(later, Ordering::SeqCst);
                return;
            }
            self.engine.forget_watched(now_us);
            // Rounded up: earlier there would be nothing to do.
            let next_ms = self.engine.next_forgetting_us().map(|at| at / 1000 + 1);
            let next_ms = match next_ms {
                Some(at) => at.max(later),
                None if self.engine.query_figures().0 > 0 => now_ms + WATCHED_PAUSE_MS,
                None => u64::MAX,
            };
            self.next_forgetting_ms.store(next_ms, Ordering::SeqCst);
            if next_ms == u64::MAX && self.engine.query_figures().0 > 0 {
                // It began meanwhile, and did not see that nobody would look.
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
