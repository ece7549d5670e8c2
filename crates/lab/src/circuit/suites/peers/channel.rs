//! Channels: a thread receives from one and answers by another.

use super::{Scenario, Step, exchange};
use crate::circuit::benchmark::{Benchmark, Work};
use crate::circuit::cores::{self, Pinned};
use crate::circuit::tally::Tally;
use anyhow::Context;
use std::sync::mpsc;
use std::thread;

/// Says that everything before it is to be answered. No scenario sends as many values.
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

pub(super) fn rows(scenario: Scenario) -> Vec<Benchmark> {
    let mut all = vec![scenario.row("std_mpsc", "std::sync::mpsc::channel", work::<Std>)];
    #[cfg(feature = "peers")]
    all.extend([
        scenario.row("crossbeam", "crossbeam_channel::unbounded", work::<others::Crossbeam>),
        scenario.row("kanal", "kanal::unbounded", work::<others::Kanal>),
        scenario.row("flume", "flume::unbounded", work::<others::Flume>),
    ]);
    all.shrink_to_fit();
    all
}

fn work<C: Channel>(scenario: Scenario, count: u64) -> anyhow::Result<Work> {
    let (sender, inbox) = C::open();
    let (outbox, answers) = C::open();
    let mut tally = Tally::default();
    let counter = tally.counter();
    let receiving = thread::Builder::new().name("receiver".to_owned()).spawn(move || {
        cores::stay_on(cores::consumer());
        while let Some(value) = C::receive(&inbox) {
            if value != FLUSH {
                counter.count(value);
            } else if !C::send(&outbox, value) {
                break;
            }
        }
    })?;
    let line =
        Line { sender: Some(sender), receiving: Some(receiving), _pinned: Pinned::to(cores::producer()) };
    exchange(scenario, count, move |step| {
        let sender = line.sender.as_ref().context("the line is open while it is used")?;
        match step {
            Step::Send(value) => anyhow::ensure!(C::send(sender, value), "the receiver has gone"),
            Step::Await => {
                anyhow::ensure!(C::send(sender, FLUSH), "the receiver has gone");
                C::receive(&answers).context("the receiver has gone")?;
            }
            Step::Verify(sent) => tally.expect(sent)?,
        }
        Ok(())
    })
}

/// A thread that receives as long as this exists.
struct Line<S> {
    sender: Option<S>,
    receiving: Option<thread::JoinHandle<()>>,
    _pinned: Pinned,
}

impl<S> Drop for Line<S> {
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
