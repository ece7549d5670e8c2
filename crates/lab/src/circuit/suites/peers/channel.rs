//! Channels: a thread receives from one and answers by another.

use super::{Carrier, Open, Peer};
use crate::circuit::cores::{self, Pinned};
use crate::circuit::tally::Take;
use anyhow::Context;
use std::marker::PhantomData;
use std::sync::mpsc;
use std::thread;

/// Set in a value that is to be answered when it is taken.
const ASKED: u64 = 1 << 63;
/// Not a value: everything before it is to be answered.
const FLUSH: u64 = u64::MAX;

/// An unbounded channel.
trait Channel: 'static {
    type Sender: Send + 'static;
    type Receiver: Send + 'static;

    fn open() -> (Self::Sender, Self::Receiver);
    /// False if the other end is gone.
    fn send(sender: &Self::Sender, value: u64) -> bool;
    /// None if the other end is gone.
    fn receive(receiver: &Self::Receiver) -> Option<u64>;
}

pub(super) fn peers() -> Vec<Peer> {
    vec![
        Peer::of::<Through<Std>>("std_mpsc", "std::sync::mpsc::channel"),
        #[cfg(feature = "peers")]
        Peer::of::<Through<others::Crossbeam>>("crossbeam", "crossbeam_channel::unbounded"),
        #[cfg(feature = "peers")]
        Peer::of::<Through<others::Kanal>>("kanal", "kanal::unbounded"),
        #[cfg(feature = "peers")]
        Peer::of::<Through<others::Flume>>("flume", "flume::unbounded"),
    ]
}

/// A channel to a thread for each end.
struct Through<C>(PhantomData<C>);

impl<C: Channel> Carrier for Through<C> {
    type Open<T: Take> = Lines<C>;

    fn open<T: Take>(ends: Vec<T>) -> anyhow::Result<Lines<C>> {
        let lines = ends.into_iter().map(Line::open).collect::<anyhow::Result<_>>()?;
        Ok(Lines { lines, _pinned: Pinned::to(cores::producer()) })
    }
}

struct Lines<C: Channel> {
    lines: Vec<Line<C>>,
    _pinned: Pinned,
}

impl<C: Channel> Open for Lines<C> {
    #[inline]
    fn send(&mut self, value: u64) -> anyhow::Result<()> {
        self.lines.iter().try_for_each(|line| line.send(value))
    }

    #[inline]
    fn ask(&mut self, value: u64) -> anyhow::Result<()> {
        self.lines.iter().try_for_each(|line| line.send(value | ASKED))?;
        self.lines.iter().try_for_each(Line::answer)
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.ask(FLUSH)
    }
}

/// A thread that receives as long as this exists.
struct Line<C: Channel> {
    sender: Option<C::Sender>,
    answers: C::Receiver,
    receiving: Option<thread::JoinHandle<()>>,
}

impl<C: Channel> Line<C> {
    fn open<T: Take>(mut end: T) -> anyhow::Result<Self> {
        let (sender, inbox) = C::open();
        let (outbox, answers) = C::open();
        let receiving = thread::Builder::new().name("receiver".to_owned()).spawn(move || {
            cores::stay_on(cores::consumer());
            while let Some(value) = C::receive(&inbox) {
                if value != FLUSH {
                    end.take(value & !ASKED);
                }
                if value & ASKED != 0 && !C::send(&outbox, value) {
                    break;
                }
            }
        })?;
        Ok(Line { sender: Some(sender), answers, receiving: Some(receiving) })
    }

    #[inline]
    fn send(&self, value: u64) -> anyhow::Result<()> {
        let sender = self.sender.as_ref().context("the line is open while it is used")?;
        anyhow::ensure!(C::send(sender, value), "the receiver has gone");
        Ok(())
    }

    fn answer(&self) -> anyhow::Result<()> {
        C::receive(&self.answers).context("the receiver has gone").map(drop)
    }
}

impl<C: Channel> Drop for Line<C> {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(receiving) = self.receiving.take() {
            // It has nothing to say: a value it lost was noticed by counting.
            let _ = receiving.join();
        }
    }
}

struct Std;

impl Channel for Std {
    type Sender = mpsc::Sender<u64>;
    type Receiver = mpsc::Receiver<u64>;

    fn open() -> (Self::Sender, Self::Receiver) {
        mpsc::channel()
    }

    #[inline]
    fn send(sender: &Self::Sender, value: u64) -> bool {
        sender.send(value).is_ok()
    }

    #[inline]
    fn receive(receiver: &Self::Receiver) -> Option<u64> {
        receiver.recv().ok()
    }
}

#[cfg(feature = "peers")]
mod others {
    use super::Channel;

    /// A channel whose functions are called as those of the standard library.
    macro_rules! channel {
        ($name:ident, $module:ident) => {
            pub(super) struct $name;

            impl Channel for $name {
                type Sender = $module::Sender<u64>;
                type Receiver = $module::Receiver<u64>;

                fn open() -> (Self::Sender, Self::Receiver) {
                    $module::unbounded()
                }

                #[inline]
                fn send(sender: &Self::Sender, value: u64) -> bool {
                    sender.send(value).is_ok()
                }

                #[inline]
                fn receive(receiver: &Self::Receiver) -> Option<u64> {
                    receiver.recv().ok()
                }
            }
        };
    }

    channel!(Crossbeam, crossbeam_channel);
    channel!(Kanal, kanal);
    channel!(Flume, flume);
}
