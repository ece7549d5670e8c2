//! An actor: kameo's, with an unbounded mailbox, in a runtime of one thread.

use super::{Scenario, Step, exchange};
use crate::circuit::benchmark::{Benchmark, Work};
use crate::circuit::cores::{self, Pinned};
use crate::circuit::tally::{Counter, Tally};
use kameo::Actor;
use kameo::actor::{ActorRef, Spawn};
use kameo::error::Infallible;
use kameo::mailbox;
use kameo::message::{Context, Message};

pub(super) fn row(scenario: Scenario) -> Benchmark {
    scenario.row("kameo", "an actor of kameo: tell, and ask for an await", work)
}

fn work(scenario: Scenario, count: u64) -> anyhow::Result<Work> {
    let mut tally = Tally::default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .on_thread_start(|| cores::stay_on(cores::consumer()))
        .build()?;
    let entered = runtime.enter();
    let actor = Receiver::spawn_with_mailbox(Receiver(tally.counter()), mailbox::unbounded());
    drop(entered);
    let pinned = Pinned::to(cores::producer());
    exchange(scenario, count, move |step| {
        // Both last as long as the work does.
        let _ = (&runtime, &pinned);
        match step {
            Step::Send(value) => actor.tell(Value(value)).try_send()?,
            Step::Await => actor.ask(Flush).blocking_send()?,
            Step::Verify(sent) => tally.expect(sent)?,
        }
        Ok(())
    })
}

struct Receiver(Counter);

struct Value(u64);

struct Flush;

impl Actor for Receiver {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(receiver: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(receiver)
    }
}

impl Message<Value> for Receiver {
    type Reply = ();

    async fn handle(&mut self, message: Value, _: &mut Context<Self, ()>) {
        self.0.count(message.0);
    }
}

impl Message<Flush> for Receiver {
    type Reply = ();

    async fn handle(&mut self, _: Flush, _: &mut Context<Self, ()>) {}
}
