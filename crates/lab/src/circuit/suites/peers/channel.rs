//! Channels: a thread receives from one channel per end and answers by another.
//!
//! One thread serves all ends, as one thread runs a circuit. The figures are then those of the
//! channels, not of threads that share a core. All channels carry the same values, so the thread
//! receives from one after the other and needs no selection.

use super::carrier::{Carrier, Open};
use super::peer::Peer;
use super::unbounded::{self, Channel};
use crate::micro::cores::{self, Pinned};
use crate::micro::tally::Take;
use anyhow::Context;
use std::marker::PhantomData;
use std::thread;

/// Bit of a value that requests an answer on receipt.
const ASKED: u64 = 1 << 63;
/// Not a value: requests an answer when everything before it is received.
const FLUSH: u64 = u64::MAX;

pub(super) fn peers() -> Vec<Peer> {
    vec![
        Peer::of::<Through<unbounded::Std>>(
            "std_mpsc",
            "std::sync::mpsc::channel, one for each receiver, and one thread that receives from all",
        ),
        #[cfg(feature = "peers")]
        Peer::of::<Through<unbounded::Crossbeam>>(
            "crossbeam",
            "crossbeam_channel::unbounded, one for each receiver, and one thread that receives from all",
        ),
        #[cfg(feature = "peers")]
        Peer::of::<Through<unbounded::Kanal>>(
            "kanal",
            "kanal::unbounded, one for each receiver, and one thread that receives from all",
        ),
        #[cfg(feature = "peers")]
        Peer::of::<Through<unbounded::Flume>>(
            "flume",
            "flume::unbounded, one for each receiver, and one thread that receives from all",
        ),
    ]
}

/// A channel per end to one thread, which receives from them in turn while this exists.
struct Through<C>(PhantomData<C>);

impl<C: Channel> Carrier for Through<C> {
    type Open<T: Take> = Lines<C>;

    fn open<T: Take>(ends: Vec<T>) -> anyhow::Result<Lines<C>> {
        let (senders, inboxes): (Vec<_>, Vec<_>) = ends.iter().map(|_| C::open()).unzip();
        let (outbox, answers) = C::open();
        let receiving = thread::Builder::new().name("receiver".to_owned()).spawn(move || {
            cores::stay_on(cores::consumer());
            receive::<C, T>(inboxes.into_iter().zip(ends).collect(), &outbox);
        })?;
        Ok(Lines { senders, answers, receiving: Some(receiving), _pinned: Pinned::to(cores::producer()) })
    }
}

/// Receives for each end, and answers when all have received a value with a request, until the
/// senders are gone.
fn receive<C: Channel, T: Take>(mut lines: Vec<(C::Receiver, T)>, outbox: &C::Sender) {
    loop {
        let mut is_asked = false;
        for (inbox, end) in &mut lines {
            let Some(value) = C::receive(inbox) else { return };
            if value != FLUSH {
                end.take(value & !ASKED);
            }
            is_asked = value & ASKED != 0;
        }
        if is_asked && !C::send(outbox, ASKED) {
            return;
        }
    }
}

struct Lines<C: Channel> {
    senders: Vec<C::Sender>,
    answers: C::Receiver,
    receiving: Option<thread::JoinHandle<()>>,
    _pinned: Pinned,
}

impl<C: Channel> Open for Lines<C> {
    #[inline]
    fn send(&mut self, value: u64) -> anyhow::Result<()> {
        for sender in &self.senders {
            anyhow::ensure!(C::send(sender, value), "the receiver has gone");
        }
        Ok(())
    }

    #[inline]
    fn ask(&mut self, value: u64) -> anyhow::Result<()> {
        self.send(value | ASKED)?;
        C::receive(&self.answers).context("the receiver has gone").map(drop)
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.ask(FLUSH)
    }
}

impl<C: Channel> Drop for Lines<C> {
    fn drop(&mut self) {
        self.senders.clear();
        if let Some(receiving) = self.receiving.take() {
            // Has no result: lost values are noticed by counting.
            let _ = receiving.join();
        }
    }
}
