//! Registry of connected clients: what `CLIENT LIST` shows and `CLIENT KILL` matches.

use crate::command::rows::command_table;
use crate::net::connection_id::ConnectionId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidemark_engine::Waiter;
use tidemark_log::Clock;

/// Properties of a client, as bits.
pub(crate) mod flags {
    pub(crate) const SUBSCRIBED: u64 = 1;
    pub(crate) const IN_TRANSACTION: u64 = 1 << 1;
    pub(crate) const BLOCKED: u64 = 1 << 2;
    pub(crate) const CLOSING: u64 = 1 << 3;
    pub(crate) const UNIX: u64 = 1 << 4;
    pub(crate) const NO_EVICT: u64 = 1 << 5;
    pub(crate) const NO_TOUCH: u64 = 1 << 6;
    pub(crate) const TRACKING: u64 = 1 << 7;
    pub(crate) const TRACKING_BROKEN: u64 = 1 << 8;
    pub(crate) const TRACKING_BROADCAST: u64 = 1 << 9;
}

/// Names that a client has set for itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    pub(crate) name: Vec<u8>,
    pub(crate) library: Vec<u8>,
    pub(crate) library_version: Vec<u8>,
}

/// One connected client. Its worker writes, all threads read. The numbers are those after its last
/// commands.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: u64,
    /// Index of its worker.
    pub(crate) worker: usize,
    pub(crate) connection_id: ConnectionId,
    /// Remote address, `host:port`, or the socket's path.
    pub(crate) address: String,
    /// Local address.
    pub(crate) local_address: String,
    pub(crate) descriptor: i32,
    /// Whether the peer is on this machine.
    pub(crate) is_local: bool,
    /// Whether the client has a reserved place, because all ordinary ones were taken: it may only
    /// administer.
    pub(crate) is_reserved: bool,
    /// The server's clock.
    pub(crate) clock: Clock,
    pub(crate) connected: Instant,
    pub(crate) shown: Shown,
    names: Mutex<Names>,
    blocked: Mutex<BlockedOn>,
}

/// Whether a client waits for keys. Lets another thread end its wait immediately.
#[derive(Debug, Default)]
enum BlockedOn {
    #[default]
    Nothing,
    Keys(Arc<Waiter>),
    /// The client is to be disconnected and waits for nothing.
    Killed,
}

/// State that changes with every batch of commands. Stores are relaxed: readers need no consistent
/// cut.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// When the client last sent something, in milliseconds after it connected.
    pub(crate) active_ms: AtomicU64,
    pub(crate) db: AtomicUsize,
    pub(crate) flags: AtomicU64,
    /// Id of the row of its last command; 0 before the first.
    pub(crate) command: AtomicU16,
    pub(crate) protocol: AtomicU16,
    pub(crate) channels: AtomicUsize,
    pub(crate) patterns: AtomicUsize,
    pub(crate) shard_channels: AtomicUsize,
    /// Commands queued in a transaction; -1 outside.
    pub(crate) queued: AtomicI64,
    /// Client id that its invalidations are redirected to: 0 for none, -1 without tracking.
    pub(crate) redirect: AtomicI64,
    pub(crate) input_bytes: AtomicUsize,
    pub(crate) output_bytes: AtomicUsize,
    /// Allocated bytes of the reply buffer.
    pub(crate) reply_bytes: AtomicUsize,
    /// Allocated bytes of all its buffers.
    pub(crate) memory_bytes: AtomicUsize,
    /// The client is being disconnected because of its memory.
    pub(crate) is_evicted: AtomicBool,
    pub(crate) received_bytes: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
}

/// Addresses of a connection's two ends.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) address: String,
    pub(crate) local_address: String,
    pub(crate) descriptor: i32,
    pub(crate) is_local: bool,
    pub(crate) is_unix: bool,
}

impl Client {
    fn new(id: u64, worker: usize, slot: usize, origin: Origin, is_reserved: bool, clock: &Clock) -> Client {
        let shown = Shown::default();
        shown.queued.store(-1, Ordering::Relaxed);
        shown.redirect.store(-1, Ordering::Relaxed);
        shown.protocol.store(2, Ordering::Relaxed);
        shown.flags.store(if origin.is_unix { flags::UNIX } else { 0 }, Ordering::Relaxed);
        Client {
            id,
            worker,
            connection_id: ConnectionId { slot, client: id },
            address: origin.address,
            local_address: origin.local_address,
            descriptor: origin.descriptor,
            is_local: origin.is_local,
            is_reserved,
            clock: clock.clone(),
            connected: clock.now(),
            shown,
            names: Mutex::default(),
            blocked: Mutex::default(),
        }
    }

    /// Time since the client connected.
    pub(crate) fn age(&self) -> Duration {
        self.clock.elapsed(self.connected)
    }

    /// Notes that the client begins to wait for keys. Must be called before another thread can
    /// serve it.
    pub(crate) fn begin_wait(&self, waiter: &Arc<Waiter>) {
        let mut blocked = self.blocked();
        match *blocked {
            BlockedOn::Killed => waiter.give_up(),
            BlockedOn::Nothing | BlockedOn::Keys(_) => *blocked = BlockedOn::Keys(Arc::clone(waiter)),
        }
    }

    /// Notes that its wait for keys has ended.
    pub(crate) fn end_wait(&self) {
        let mut blocked = self.blocked();
        if matches!(*blocked, BlockedOn::Keys(_)) {
            *blocked = BlockedOn::Nothing;
        }
    }

    /// The client's wait for keys, if any.
    pub(crate) fn waiter(&self) -> Option<Arc<Waiter>> {
        match &*self.blocked() {
            BlockedOn::Keys(waiter) => Some(Arc::clone(waiter)),
            BlockedOn::Nothing | BlockedOn::Killed => None,
        }
    }

    /// Notes that the client is to be disconnected: from now on no element is taken for it.
    pub(crate) fn kill(&self) {
        if let BlockedOn::Keys(waiter) = std::mem::replace(&mut *self.blocked(), BlockedOn::Killed) {
            waiter.give_up();
        }
    }

    fn blocked(&self) -> MutexGuard<'_, BlockedOn> {
        self.blocked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names that the client has set.
    pub(crate) fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has(&self, flag: u64) -> bool {
        self.shown.flags.load(Ordering::Relaxed) & flag != 0
    }

    /// Sets or clears a flag. Only the client's own worker may call it.
    pub(crate) fn flag(&self, flag: u64, set: bool) {
        let flags = self.shown.flags.load(Ordering::Relaxed);
        self.shown.flags.store(if set { flags | flag } else { flags & !flag }, Ordering::Relaxed);
    }

    /// Class of the client for `CLIENT LIST TYPE` and the output limits.
    pub(crate) fn class(&self) -> &'static str {
        if self.has(flags::SUBSCRIBED) { "pubsub" } else { "normal" }
    }

    /// Returns the line of `CLIENT LIST`, with Redis's fields in their order. `running` is the
    /// client's command that is not answered yet.
    pub(crate) fn describe(&self, running: Option<&[&[u8]]>) -> Vec<u8> {
        let shown = &self.shown;
        let age = self.age();
        let idle = age.as_millis().saturating_sub(u128::from(shown.active_ms.load(Ordering::Relaxed))) / 1000;
        let names = self.names().clone();
        let outbox = shown.output_bytes.load(Ordering::Relaxed);
        let arguments = running.map_or(0, |args| args.iter().map(|arg| arg.len()).sum());
        let input = shown.input_bytes.load(Ordering::Relaxed) + running.map_or(0, request_bytes);
        let memory = shown.memory_bytes.load(Ordering::Relaxed);
        let reply = shown.reply_bytes.load(Ordering::Relaxed);
        let free = memory.saturating_sub(reply + input);
        let mut line = format!(
            "id={} addr={} laddr={} fd={} name=",
            self.id, self.address, self.local_address, self.descriptor
        )
        .into_bytes();
        line.extend_from_slice(&names.name);
        line.extend_from_slice(
            format!(
                " age={} idle={idle} flags={} db={} sub={} psub={} ssub={} multi={} qbuf={input} qbuf-free={free} \
                 argv-mem={arguments} multi-mem=0 rbs={reply} rbp={reply} obl={outbox} oll=0 omem={outbox} tot-mem={} events={} cmd={} \
                 user=default redir={} resp={} lib-name=",
                age.as_secs(),
                self.flag_letters(),
                shown.db.load(Ordering::Relaxed),
                shown.channels.load(Ordering::Relaxed),
                shown.patterns.load(Ordering::Relaxed),
                shown.shard_channels.load(Ordering::Relaxed),
                shown.queued.load(Ordering::Relaxed),
                memory + size_of::<Client>(),
                if outbox > 0 { "rw" } else { "r" },
                self.last_command(),
                shown.redirect.load(Ordering::Relaxed),
                shown.protocol.load(Ordering::Relaxed),
            )
            .as_bytes(),
        );
        line.extend_from_slice(&names.library);
        line.extend_from_slice(b" lib-ver=");
        line.extend_from_slice(&names.library_version);
        line
    }

    fn flag_letters(&self) -> String {
        let letters = [
            (flags::SUBSCRIBED, 'P'),
            (flags::IN_TRANSACTION, 'x'),
            (flags::BLOCKED, 'b'),
            (flags::TRACKING, 't'),
            (flags::TRACKING_BROKEN, 'R'),
            (flags::TRACKING_BROADCAST, 'B'),
            (flags::CLOSING, 'c'),
            (flags::UNIX, 'U'),
            (flags::NO_EVICT, 'e'),
            (flags::NO_TOUCH, 'T'),
        ];
        let text: String =
            letters.iter().filter(|(flag, _)| self.has(*flag)).map(|(_, letter)| letter).collect();
        if text.is_empty() { "N".to_owned() } else { text }
    }

    fn last_command(&self) -> String {
        match self.shown.command.load(Ordering::Relaxed) {
            0 => "NULL".to_owned(),
            id => match command_table().by_id(id) {
                Some(row) => command_table().full_name(row),
                None => "NULL".to_owned(),
            },
        }
    }
}

/// Size of a command on the wire. Bytes.
fn request_bytes(args: &[&[u8]]) -> usize {
    let digits = |number: usize| number.checked_ilog10().unwrap_or(0) as usize + 1;
    // `*2\r\n`, and `$6\r\nclient\r\n` for each.
    args.iter().fold(3 + digits(args.len()), |sum, arg| sum + 5 + digits(arg.len()) + arg.len())
}

/// All connected clients, by id.
#[derive(Debug)]
pub(crate) struct Clients {
    clock: Clock,
    connected: Mutex<BTreeMap<u64, Arc<Client>>>,
    count: AtomicUsize,
    last_id: AtomicU64,
}

impl Clients {
    pub(crate) fn new(clock: &Clock) -> Clients {
        let (count, last_id) = (AtomicUsize::new(0), AtomicU64::new(0));
        Clients { clock: clock.clone(), connected: Mutex::default(), count, last_id }
    }

    /// Admits a client if there are fewer than `limit`, or than `limit` plus `reserved` for a local
    /// client.
    pub(crate) fn admit(
        &self,
        limit: usize,
        reserved: usize,
        worker: usize,
        slot: usize,
        origin: Origin,
    ) -> Option<Arc<Client>> {
        let mut connected = self.lock();
        let is_reserved = connected.len() >= limit;
        if is_reserved && (!origin.is_local || connected.len() >= limit.saturating_add(reserved)) {
            return None;
        }
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let client = Arc::new(Client::new(id, worker, slot, origin, is_reserved, &self.clock));
        connected.insert(id, Arc::clone(&client));
        self.count.store(connected.len(), Ordering::Relaxed);
        Some(client)
    }

    /// Removes a disconnected client.
    pub(crate) fn remove(&self, id: u64) {
        let mut connected = self.lock();
        connected.remove(&id);
        self.count.store(connected.len(), Ordering::Relaxed);
    }

    /// Returns the client with this id.
    pub(crate) fn get(&self, id: u64) -> Option<Arc<Client>> {
        self.lock().get(&id).cloned()
    }

    /// Returns all clients, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        self.lock().values().cloned().collect()
    }

    /// Number of clients.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
