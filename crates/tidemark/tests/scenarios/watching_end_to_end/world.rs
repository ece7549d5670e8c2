//! State that writers, subscribers and the thread that disturbs the server share.

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};

/// The shared state of a case.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// Port of the current server, or of the next one.
    port: AtomicU16,
    /// Its HTTP port.
    http_port: AtomicU16,
    /// How often the server has ended.
    life: AtomicUsize,
    /// Odd while the durability is `always`; changes with every change of the durability.
    durability: AtomicU64,
    writing_is_over: AtomicBool,
    /// End of the log, once all writers have ended; zero until then.
    head: AtomicU64,
    /// All records after this LSN can be read, even if the log has removed earlier ones.
    floor: AtomicU64,
    /// The case has failed, and all threads must end.
    is_given_up: AtomicBool,
}

impl World {
    pub(crate) fn port(&self) -> u16 {
        self.port.load(Ordering::Acquire)
    }

    pub(crate) fn http_port(&self) -> u16 {
        self.http_port.load(Ordering::Acquire)
    }

    pub(crate) fn set_ports(&self, port: u16, http_port: u16) {
        self.port.store(port, Ordering::Release);
        self.http_port.store(http_port, Ordering::Release);
    }

    pub(crate) fn life(&self) -> usize {
        self.life.load(Ordering::Acquire)
    }

    /// Notes that a server has ended. Call this before the next one is announced.
    pub(crate) fn server_has_ended(&self) {
        self.life.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the promise that every acknowledged write is durable, if one is in force.
    pub(crate) fn promises_all(&self) -> Option<u64> {
        Some(self.durability.load(Ordering::Acquire)).filter(|number| number % 2 == 1)
    }

    /// Ends or begins a promise. Call this before the durability is lowered from `always`, and
    /// after it is set to `always`.
    pub(crate) fn change_promise(&self) {
        self.durability.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn writing_is_over(&self) -> bool {
        self.writing_is_over.load(Ordering::Acquire)
    }

    pub(crate) fn end_writing(&self) {
        self.writing_is_over.store(true, Ordering::Release);
    }

    /// Returns the end of the log, once all writers have ended.
    pub(crate) fn head(&self) -> Option<u64> {
        Some(self.head.load(Ordering::Acquire)).filter(|head| *head > 0)
    }

    pub(crate) fn set_head(&self, head: u64) {
        self.head.store(head, Ordering::Release);
    }

    /// Returns the highest floor that a subscriber may have received.
    pub(crate) fn floor(&self) -> u64 {
        self.floor.load(Ordering::Acquire)
    }

    /// Raises the floor. Call this before the log may remove anything up to this record.
    pub(crate) fn raise_floor(&self, lsn: u64) {
        self.floor.fetch_max(lsn, Ordering::AcqRel);
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Acquire)
    }

    /// Ends all remaining threads.
    pub(crate) fn give_up(&self) {
        self.end_writing();
        self.is_given_up.store(true, Ordering::Release);
    }
}
