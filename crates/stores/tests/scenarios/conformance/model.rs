//! Random scripts, compared with [`Memory`] as the model.

use super::support::{TestStore, batch};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tidemark_counter::store::{Batch, Claim, Error, Memory, Store};

const WRITERS: [&str; 2] = ["a", "b"];
const KEYS: [&str; 3] = ["x", "y", "z"];

/// A step of a script.
#[derive(Debug, Clone)]
enum Step {
    /// Claims a writer's name.
    Claim(usize),
    /// Commits the next batch of a writer's newest claim.
    Commit(usize, Vec<(usize, i64)>),
    /// Sends one of the last batches again, unchanged.
    Resend(usize),
    /// Sends a batch whose number exceeds the right one by this much.
    Skip(usize, u64),
    /// Ends all connections and processes.
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let amount = prop_oneof![8 => -100..100_i64, 1 => Just(i64::MAX), 1 => Just(i64::MIN), 1 => any::<i64>()];
    let deltas = proptest::sample::subsequence((0..KEYS.len()).collect::<Vec<_>>(), 0..=KEYS.len());
    let deltas = (deltas, proptest::collection::vec(amount, KEYS.len()))
        .prop_map(|(keys, amounts)| keys.into_iter().zip(amounts).collect());
    prop_oneof![
        2 => (0..WRITERS.len()).prop_map(Step::Claim),
        8 => (0..WRITERS.len(), deltas).prop_map(|(writer, deltas)| Step::Commit(writer, deltas)),
        4 => (0..6_usize).prop_map(Step::Resend),
        1 => (0..WRITERS.len(), 1..3_u64).prop_map(|(writer, more)| Step::Skip(writer, more)),
        1 => Just(Step::Crash),
    ]
}

/// Returns a store's answer without its message.
fn described(answer: Result<impl std::fmt::Debug, Error>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(Error::Fenced { writer, epoch }) => format!("fenced {writer} {epoch}"),
        Err(Error::Forgotten { writer, claimed, known }) => format!("forgotten {writer} {claimed} {known}"),
        Err(Error::Gap { sent, expected }) => format!("gap {sent} {expected}"),
        Err(Error::Rejected(rejected)) => {
            format!("rejected {:?}", rejected.iter().map(|rejected| rejected.index).collect::<Vec<_>>())
        }
        Err(error) => panic!("{error}"),
    }
}

/// Runs a script on a store and on the model.
fn run(mut place: TestStore, script: &[Step]) {
    let (mut store, mut model) = (place.store(), Memory::default());
    let mut claims = [Claim { epoch: 0, last_sequence: 0 }; WRITERS.len()];
    let mut sent: Vec<Batch> = Vec::new();
    for step in script {
        let (said, expected) = match step {
            Step::Claim(writer) => {
                let (said, expected) = (store.claim(WRITERS[*writer]), model.claim(WRITERS[*writer]));
                claims[*writer] = *expected.as_ref().expect("a claim");
                (described(said), described(expected))
            }
            Step::Commit(writer, deltas) => {
                let deltas: Vec<_> = deltas.iter().map(|(key, amount)| (KEYS[*key], *amount)).collect();
                let next =
                    batch(WRITERS[*writer], claims[*writer], claims[*writer].last_sequence + 1, &deltas);
                let (said, expected) = (store.commit(&next), model.commit(&next));
                claims[*writer].last_sequence += u64::from(expected.is_ok());
                sent.push(next);
                (described(said), described(expected))
            }
            Step::Resend(back) => {
                let Some(batch) = sent.iter().rev().nth(*back) else { continue };
                let answers = (store.commit(batch), model.commit(batch));
                if answers.1.as_ref().is_ok_and(|receipt| format!("{receipt:?}") == "Applied") {
                    let writer = WRITERS.iter().position(|name| *name == batch.writer).expect("a writer");
                    claims[writer].last_sequence = batch.sequence;
                }
                (described(answers.0), described(answers.1))
            }
            Step::Skip(writer, more) => {
                let sequence = claims[*writer].last_sequence + 1 + more;
                let early = batch(WRITERS[*writer], claims[*writer], sequence, &[(KEYS[0], 1)]);
                (described(store.commit(&early)), described(model.commit(&early)))
            }
            Step::Crash => {
                drop(store);
                place = place.reopened();
                store = place.store();
                continue;
            }
        };
        assert_eq!(said, expected, "{step:?} in {script:?}");
        let keys = KEYS.map(str::as_bytes);
        let (found, expected) =
            (store.load(&keys).expect("positions"), model.load(&keys).expect("positions"));
        assert_eq!(found, expected, "after {step:?} in {script:?}");
    }
}

pub(crate) fn random_scripts_come_out_as_in_the_model(place: &TestStore) {
    let config = ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() };
    let scripts = proptest::collection::vec(step(), 1..40);
    let ran = TestRunner::new(config).run(&scripts, |script| {
        let place = match place {
            TestStore::Memory(_) => TestStore::memory(),
            TestStore::Log { .. } => TestStore::log(),
            TestStore::Server { running, .. } => TestStore::on(running),
        };
        run(place, &script);
        Ok(())
    });
    ran.unwrap_or_else(|failure| panic!("{failure}"));
}
