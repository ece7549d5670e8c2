//! Circuits, through their own entries.

use super::carrier::{Carrier, Open};
use super::peer::Peer;
use crate::circuit::rig::{By, Rig, Way};
use crate::micro::tally::Take;
use anyhow::Context;
use std::marker::PhantomData;
use tidemark_circuit::{Circuit, Lane, Pipe, Registrar, Subject, name};

pub(super) fn peers() -> Vec<Peer> {
    vec![
        Peer::of::<Entered<Thread, OwnLane>>(
            "circuit_lane",
            "a circuit with a thread, by a lane of the sender's own",
        ),
        Peer::of::<Entered<Thread, Shared>>("circuit_pipe", "a circuit with a thread, by a pipe"),
        Peer::of::<Entered<Pool, Shared>>("circuit_pool", "a circuit of a pool with one thread, by a pipe"),
    ]
}

/// A circuit with a kind of runner and a kind of entry.
struct Entered<R, W>(PhantomData<(R, W)>);

/// Kind of runner of a circuit.
trait RunBy: 'static {
    const BY: By;
}

struct Thread;

impl RunBy for Thread {
    const BY: By = By::Thread;
}

struct Pool;

impl RunBy for Pool {
    const BY: By = By::Pool;
}

/// Kind of entry into a circuit.
trait Enter: 'static {
    type Way: Way;

    fn enter(circuit: &Circuit, pipe: Pipe<u64>) -> anyhow::Result<Self::Way>;
}

struct Shared;

impl Enter for Shared {
    type Way = Pipe<u64>;

    fn enter(_: &Circuit, pipe: Pipe<u64>) -> anyhow::Result<Pipe<u64>> {
        Ok(pipe)
    }
}

struct OwnLane;

impl Enter for OwnLane {
    type Way = (Lane, Pipe<u64>);

    fn enter(circuit: &Circuit, pipe: Pipe<u64>) -> anyhow::Result<(Lane, Pipe<u64>)> {
        Ok((circuit.lane()?, pipe))
    }
}

impl<R: RunBy, W: Enter> Carrier for Entered<R, W> {
    type Open<T: Take> = Running<W::Way>;

    fn open<T: Take>(mut ends: Vec<T>) -> anyhow::Result<Running<W::Way>> {
        let rig = Rig::apart(R::BY)?;
        let pipe = if ends.len() == 1 {
            let mut end = ends.pop().context("there is one end")?;
            rig.pipe(move |value: u64| end.take(value))?
        } else {
            all_of(&rig, ends)?
        };
        Ok(Running { way: W::enter(&rig, pipe)?, rig })
    }
}

/// Returns a conduit's pipe with a receptor for each end.
fn all_of<T: Take>(circuit: &Circuit, mut ends: Vec<T>) -> anyhow::Result<Pipe<u64>> {
    let conduit = circuit.conduit()?;
    // There is one pipe, so the callback runs once.
    conduit.subscribe(&circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| {
        for mut end in ends.drain(..) {
            registrar.receptor(move |value| end.take(value));
        }
    })?)?;
    // Values from a lane could otherwise overtake the subscription.
    circuit.settle()?;
    Ok(conduit.get(name!("peers")).clone())
}

struct Running<W> {
    /// Dropped before the circuit is closed.
    way: W,
    rig: Rig,
}

impl<W: Way> Open for Running<W> {
    #[inline]
    fn send(&mut self, value: u64) -> anyhow::Result<()> {
        self.way.emit(value);
        Ok(())
    }

    #[inline]
    fn ask(&mut self, value: u64) -> anyhow::Result<()> {
        self.way.emit(value);
        Ok(self.rig.settle()?)
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        Ok(self.rig.settle()?)
    }
}
