//! Client eviction: while all clients together use more memory than `maxmemory-clients`, the
//! largest ones are disconnected.

use crate::net::client::{Client, Clients, flags};
use crate::observe::operator_line::OperatorLine;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, TryLockError};
use tidemark_engine::MemoryBudget;
use tidemark_log::Clock;

/// Minimum time between two lines about evictions, in seconds.
const LINE_PAUSE_S: u64 = 1;

/// Error that replaces a reply for which the memory budget has no room.
pub(crate) const NO_MEMORY: &str = "OOM the answer is longer than what other clients have left of maxmemory-clients; what the \
                                    command has changed, if anything, stays changed";

/// The memory budget of all clients.
pub(crate) struct ClientMemory {
    pub(crate) budget: Arc<MemoryBudget>,
    /// Held by the worker that chooses whom to evict.
    choosing: Mutex<()>,
    line: OperatorLine,
}

impl ClientMemory {
    pub(crate) fn new(limit: usize, clock: &Clock) -> ClientMemory {
        ClientMemory {
            budget: Arc::new(MemoryBudget::new(limit)),
            choosing: Mutex::default(),
            line: OperatorLine::every(LINE_PAUSE_S, clock),
        }
    }
}

/// Chooses the clients to disconnect until the used memory and the refused reply fit into the
/// budget; largest first. A refused reply does not evict clients that use less than it would have.
pub(crate) fn choose_victims(memory: &ClientMemory, clients: &Clients) -> Vec<Arc<Client>> {
    let _guard = match memory.choosing.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        // Another worker is choosing.
        Err(TryLockError::WouldBlock) => return Vec::new(),
    };
    let budget = &memory.budget;
    let (refused, used, limit) = (budget.take_refused(), budget.used(), budget.limit());
    let excess = used.saturating_add(refused).saturating_sub(limit);
    if excess == 0 {
        return Vec::new();
    }
    // Free some more than the excess, or the next reply would evict again.
    let goal_bytes = excess.saturating_add(limit / 32);
    // Above the limit, even the smallest may be evicted. Half of the refused bytes is the reply,
    // half its copy.
    let smallest = if used > limit { 0 } else { refused / 2 };
    let bytes = |client: &Client| client.shown.memory_bytes.load(Ordering::Relaxed);
    let (mut leaving, mut candidates) = (0_usize, Vec::new());
    for client in clients.all() {
        if client.shown.is_evicted.load(Ordering::Relaxed) {
            leaving += bytes(&client);
        } else if !client.is_reserved && !client.has(flags::NO_EVICT) && bytes(&client) > smallest {
            candidates.push((bytes(&client), client));
        }
    }
    candidates.sort_unstable_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let mut victims = Vec::new();
    for (bytes, client) in candidates {
        if leaving >= goal_bytes || (leaving >= excess && bytes < limit / 256) {
            break;
        }
        leaving += bytes;
        client.shown.is_evicted.store(true, Ordering::Relaxed);
        memory.line.write(|| {
            format!(
                "warning: client id={} addr={} is disconnected: of all clients it uses most memory, {bytes} bytes; all \
                 together use {used} and maxmemory-clients is {limit}",
                client.id, client.address
            )
        });
        victims.push(client);
    }
    victims
}
