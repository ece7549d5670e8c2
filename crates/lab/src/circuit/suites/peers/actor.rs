//! An actor for each end: kameo's, with an unbounded mailbox, in a runtime of one thread.

use super::carrier::{Carrier, Open};
use super::peer::Peer;
use crate::micro::cores::{self, Pinned};
use crate::micro::tally::Take;
use kameo::Actor;
use kameo::actor::{ActorRef, Spawn};
use kameo::error::Infallible;
use kameo::mailbox;
use kameo::message::{Context, Message};
use tokio::runtime::Runtime;

pub(super) fn peer() -> Peer {
    Peer::of::<Kameo>("kameo", "an actor of kameo for each receiver: tell, and ask for an await")
}

struct Kameo;

impl Carrier for Kameo {
    type Open<T: Take> = Actors<T>;

    fn open<T: Take>(ends: Vec<T>) -> anyhow::Result<Actors<T>> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .on_thread_start(|| cores::stay_on(cores::consumer()))
            .build()?;
        let entered = runtime.enter();
        let spawn = |end| Receiver::spawn_with_mailbox(Receiver(end), mailbox::unbounded());
        let receivers = ends.into_iter().map(spawn).collect();
        drop(entered);
        Ok(Actors { receivers, _runtime: runtime, _pinned: Pinned::to(cores::producer()) })
    }
}

struct Actors<T: Take> {
    receivers: Vec<ActorRef<Receiver<T>>>,
    _runtime: Runtime,
    _pinned: Pinned,
}

impl<T: Take> Open for Actors<T> {
    #[inline]
    fn send(&mut self, value: u64) -> anyhow::Result<()> {
        self.receivers.iter().try_for_each(|actor| Ok(actor.tell(Value(value)).try_send()?))
    }

    #[inline]
    fn ask(&mut self, value: u64) -> anyhow::Result<()> {
        self.receivers.iter().try_for_each(|actor| Ok(actor.ask(Value(value)).blocking_send()?))
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.receivers.iter().try_for_each(|actor| Ok(actor.ask(Flush).blocking_send()?))
    }
}

struct Receiver<T>(T);

struct Value(u64);

struct Flush;

impl<T: Take> Actor for Receiver<T> {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(receiver: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(receiver)
    }
}

impl<T: Take> Message<Value> for Receiver<T> {
    type Reply = ();

    async fn handle(&mut self, message: Value, _: &mut Context<Self, ()>) {
        self.0.take(message.0);
    }
}

impl<T: Take> Message<Flush> for Receiver<T> {
    type Reply = ();

    async fn handle(&mut self, _: Flush, _: &mut Context<Self, ()>) {}
}
