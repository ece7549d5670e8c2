//! What writers, subscribers and whoever disturbs them know of each other.

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// Where the server is, or will be soon.
    port: AtomicU16,
    /// Where it speaks HTTP.
    http_port: AtomicU16,
    /// How often the server has ended.
    life: AtomicUsize,
    /// Odd while the durability is `always`, and different whenever it has been changed.
    durability: AtomicU64,
    writing_is_over: AtomicBool,
    /// The end of the log, once nobody writes any more; zero until then.
    head: AtomicU64,
    /// Behind this record everything can be had, however far the log has let go what is before it.
    floor: AtomicU64,
    /// There is nothing to be had any more.
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

    /// To be called when a server has ended, before the next one is announced.
    pub(crate) fn server_has_ended(&self) {
        self.life.fetch_add(1, Ordering::AcqRel);
    }

    /// Which promise holds that every acknowledged write is durable, if one does.
    pub(crate) fn promises_all(&self) -> Option<u64> {
        Some(self.durability.load(Ordering::Acquire)).filter(|number| number % 2 == 1)
    }

    /// To be called before the durability is changed to less than `always`, and behind a change to it.
    pub(crate) fn change_promise(&self) {
        self.durability.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn writing_is_over(&self) -> bool {
        self.writing_is_over.load(Ordering::Acquire)
    }

    pub(crate) fn end_writing(&self) {
        self.writing_is_over.store(true, Ordering::Release);
    }

    /// The end of the log, once nobody writes any more.
    pub(crate) fn head(&self) -> Option<u64> {
        Some(self.head.load(Ordering::Acquire)).filter(|head| *head > 0)
    }

    pub(crate) fn set_head(&self, head: u64) {
        self.head.store(head, Ordering::Release);
    }

    /// The highest floor that anybody can have been told of.
    pub(crate) fn floor(&self) -> u64 {
        self.floor.load(Ordering::Acquire)
    }

    /// To be called before the log may let go of anything up to this record.
    pub(crate) fn raise_floor(&self, lsn: u64) {
        self.floor.fetch_max(lsn, Ordering::AcqRel);
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Acquire)
    }

    /// Lets everybody end who has not.
    pub(crate) fn give_up(&self) {
        self.end_writing();
        self.is_given_up.store(true, Ordering::Release);
    }
}
