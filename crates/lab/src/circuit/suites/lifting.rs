//! `ScorecardOps`, `SequencerOps`, `BracketSequencerOps` and `CycleOps` of the original's newer
//! suite: conclusions from many signs.

use super::channel::count;
use super::instruments::InTurn;
use super::lookup::named;
use crate::circuit::batch::Batch;
use crate::micro::benchmark::Benchmark;
use crate::micro::tally::Counter;
use tidemark_circuit::signals::sequencers::{self, State, Step};
use tidemark_circuit::signals::{Sign, SignMap, cycles, locks, resources, scorecards, statuses};
use tidemark_circuit::{Circuit, Flow, Recipe};

/// Size of the windows of signs.
const WINDOW: usize = 16;

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = Vec::new();
    all.extend(scorecards());
    all.extend(sequencers());
    all.extend(brackets());
    all.extend(cycles());
    all
}

fn scorecards() -> [Benchmark; 4] {
    const GRANT: [resources::Sign; 1] = [resources::Sign::Grant];
    let by_sign = |circuit: &Circuit, counter, signs: &[_]| {
        lifted(circuit, counter, &scorecards::flow(resources::Sign::status), signs)
    };
    [
        Batch::new(
            "ScorecardOps.emit_abstain_batch",
            "a sign that is no vote, to a scorecard",
            move |circuit, counter| by_sign(circuit, counter, &[resources::Sign::Release]),
        )
        .arriving_times(0)
        .row(),
        Batch::new("ScorecardOps.emit_vote_batch", "a vote, to a scorecard", move |circuit, counter| {
            by_sign(circuit, counter, &GRANT)
        })
        .row(),
        Batch::new(
            "ScorecardOps.emit_vote_signmap_batch",
            "a vote, read by a map, to a scorecard",
            |circuit, counter| {
                let ballot = SignMap::new(resources::Sign::status);
                lifted(circuit, counter, &scorecards::flow(move |sign| ballot[sign]), &GRANT)
            },
        )
        .row(),
        Batch::new(
            "ScorecardOps.emit_vote_window_batch",
            "a vote, read by a map, and the score of the last 16",
            |circuit, counter| {
                let ballot = SignMap::new(resources::Sign::status);
                let flow = Flow::new()
                    .window(WINDOW)?
                    .filter_map(move |window| scorecards::score(&window, |sign| ballot[sign]));
                lifted(circuit, counter, &flow, &GRANT)
            },
        )
        .row(),
    ]
}

/// The cycle of a lock: attempt, grant, release.
const SPAN: [locks::Sign; 3] = [locks::Sign::Attempt, locks::Sign::Grant, locks::Sign::Release];

fn sequencers() -> [Benchmark; 3] {
    let by_machine = |circuit: &Circuit, counter, signs: &[_]| {
        lifted(circuit, counter, &sequencers::machine(&idle()), signs)
    };
    [
        Batch::new(
            "SequencerOps.emit_lifecycle_batch",
            "three signs in turn that lead a state machine around, each of which it says something of",
            move |circuit, counter| by_machine(circuit, counter, &SPAN),
        )
        .row(),
        Batch::new(
            "SequencerOps.emit_idle_baseline_batch",
            "a sign that leaves a state machine where it begins, and of which it says something",
            move |circuit, counter| by_machine(circuit, counter, &[locks::Sign::Upgrade]),
        )
        .row(),
        Batch::new(
            "SequencerOps.emit_active_suppression_batch",
            "a sign of which a state machine says nothing where it is",
            |circuit, counter| {
                opened(lifted(circuit, counter, &sequencers::machine(&idle()), &[locks::Sign::Upgrade])?)
            },
        )
        .arriving(|_| 0..=1)
        .row(),
    ]
}

/// Initial state of the state machine in the original's rows.
fn idle() -> State<locks::Sign> {
    use locks::Sign::{Attempt, Deny, Grant, Release};
    use statuses::Sign::{Converging, Defective, Degraded, Diverging, Stable};

    let held = State::new(|sign| match sign {
        Release => Step::Restart(Some(Stable)),
        _ => Step::Stay,
    });
    let asked = State::new(|sign| match sign {
        Grant => Step::Next(Some(Converging), held.clone()),
        Deny => Step::Restart(Some(Degraded)),
        _ => Step::Stay,
    });
    State::new(|sign| match sign {
        Attempt => Step::Next(Some(Diverging), asked.clone()),
        Release => Step::Restart(Some(Defective)),
        _ => Step::Restart(Some(Stable)),
    })
}

fn brackets() -> [Benchmark; 2] {
    [
        Batch::new(
            "BracketSequencerOps.emit_lifecycle_batch",
            "three signs in turn, which are an episode and of each of which a status follows",
            |circuit, counter| lifted(circuit, counter, &sequencers::episodes(), &SPAN),
        )
        .row(),
        Batch::new(
            "BracketSequencerOps.emit_suppression_batch",
            "a sign within an episode, of which no status follows",
            |circuit, counter| {
                opened(lifted(circuit, counter, &sequencers::episodes(), &[locks::Sign::Upgrade])?)
            },
        )
        .arriving(|_| 0..=1)
        .row(),
    ]
}

/// Emits the sign that opens an episode once; it arrives during the first emissions.
fn opened<F: FnMut(locks::Sign)>(mut way: InTurn<locks::Sign, F>) -> anyhow::Result<InTurn<locks::Sign, F>> {
    way.say(locks::Sign::Attempt);
    Ok(way)
}

fn cycles() -> [Benchmark; 4] {
    let said = |name: &str, what: &str, dimension| {
        let what = format!("that a sign {what}, by an instrument, to a conduit with a receptor");
        Batch::new(format!("CycleOps.{name}"), what, move |circuit, counter| {
            let conduit = circuit.conduit()?;
            count(circuit, &conduit, counter)?;
            let cycle = named(&cycles::pool(&conduit))?;
            Ok(InTurn::new(vec![resources::Sign::Grant], move |sign| cycle.signal(sign, dimension)))
        })
        .row()
    };
    [
        said("emit_signal_batch", "is new", cycles::Dimension::Single),
        said("emit_repeat_batch", "is the last once more", cycles::Dimension::Repeat),
        said("emit_return_batch", "was said before", cycles::Dimension::Return),
        Batch::new(
            "CycleOps.emit_flow_batch",
            "a sign, and finding out whether it was said before",
            |circuit, counter| lifted(circuit, counter, &cycles::flow(), &[resources::Sign::Grant]),
        )
        .row(),
    ]
}

/// Signs in rotation through a flow to a conduit with a receptor.
fn lifted<R>(
    circuit: &Circuit,
    counter: Counter,
    flow: &R,
    signs: &[R::In],
) -> anyhow::Result<InTurn<R::In, impl FnMut(R::In) + use<R>>>
where
    R: Recipe,
    R::In: Copy,
    R::Out: Clone,
{
    let conduit = circuit.conduit::<R::Out>()?;
    count(circuit, &conduit, counter)?;
    let pipe = named(&conduit.pool(flow))?;
    Ok(InTurn::new(signs.to_vec(), move |sign| pipe.emit(sign)))
}
