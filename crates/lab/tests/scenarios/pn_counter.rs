//! The defining property of a PN-counter: however replicas receive each other's moves, they
//! converge.

use proptest::prelude::*;
use tidemark_lab::baseline::PnCounter;

const REPLICAS: usize = 4;

/// One step of a run.
#[derive(Debug, Clone)]
enum Step {
    /// A replica moves the counter.
    Move { replica: usize, amount: i64 },
    /// A replica sends what another one did not know at an earlier time; or its whole state.
    Send { from: usize, known: Option<prop::sample::Index> },
    /// A message arrives at a replica: for the first time or again, in order or not.
    Deliver { message: prop::sample::Index, to: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let replica = || 0..REPLICAS;
    let step = prop_oneof![
        4 => (replica(), -100..100_i64).prop_map(|(replica, amount)| Step::Move { replica, amount }),
        3 => (replica(), any::<Option<prop::sample::Index>>()).prop_map(|(from, known)| Step::Send { from, known }),
        4 => (any::<prop::sample::Index>(), replica()).prop_map(|(message, to)| Step::Deliver { message, to }),
    ];
    prop::collection::vec(step, 1..100)
}

fn change(counter: &mut PnCounter, replica: usize, amount: i64) {
    let units = amount.unsigned_abs();
    match amount {
        0.. => counter.increment(replica as u64, units).unwrap(),
        _ => counter.decrement(replica as u64, units).unwrap(),
    }
}

fn counters() -> impl Strategy<Value = PnCounter> {
    let number = || prop_oneof![Just(0), 0..10_u64, any::<u64>()];
    prop::collection::btree_map(number(), (number(), number()), 0..6).prop_map(|sums| {
        let mut counter = PnCounter::default();
        for (replica, (increments, decrements)) in sums {
            counter.increment(replica, increments).unwrap();
            counter.decrement(replica, decrements).unwrap();
        }
        counter
    })
}

fn merged(first: &PnCounter, second: &PnCounter) -> PnCounter {
    let mut merged = first.clone();
    merged.merge(second).unwrap();
    merged
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn merging_is_a_join(a in counters(), b in counters(), c in counters()) {
        prop_assert_eq!(merged(&a, &b), merged(&b, &a));
        prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
        prop_assert_eq!(merged(&a, &a), a.clone());
        prop_assert_eq!(merged(&a, &PnCounter::default()), a);
    }

    #[test]
    fn a_delta_is_as_good_as_everything(a in counters(), b in counters(), c in counters()) {
        prop_assert_eq!(merged(&b, &a.delta(&b)), merged(&b, &a));
        // Also for a replica that has learned more since.
        let more = merged(&b, &c);
        prop_assert_eq!(merged(&more, &a.delta(&b)), merged(&more, &a));
        prop_assert_eq!(a.delta(&a), PnCounter::default());
    }

    #[test]
    fn replicas_end_at_the_same_value(steps in steps()) {
        let mut replicas = vec![PnCounter::default(); REPLICAS];
        let mut messages: Vec<Vec<u8>> = Vec::new();
        let mut history = vec![PnCounter::default()];
        let mut sum = 0;
        for step in steps {
            match step {
                Step::Move { replica, amount } => {
                    let before = replicas[replica].value();
                    change(&mut replicas[replica], replica, amount);
                    prop_assert_eq!(replicas[replica].value(), before + i128::from(amount), "its own moves count at once");
                    history.push(replicas[replica].clone());
                    sum += i128::from(amount);
                }
                Step::Send { from, known } => {
                    let known = known.map(|index| index.get(&history).clone()).unwrap_or_default();
                    messages.push(replicas[from].delta(&known).encode());
                }
                Step::Deliver { message, to } => if !messages.is_empty() {
                    let message: &Vec<u8> = message.get(&messages);
                    replicas[to].merge(&PnCounter::decode(message).unwrap()).unwrap();
                }
            }
        }
        // At the end each replica hears from every other one: around the ring and around again.
        for turn in 0..2 * REPLICAS {
            let (from, to) = (turn % REPLICAS, (turn + 1) % REPLICAS);
            let delta = replicas[from].delta(&replicas[to]);
            replicas[to].merge(&delta).unwrap();
        }
        for replica in &replicas {
            prop_assert_eq!(replica, &replicas[0]);
            prop_assert_eq!(replica.value(), sum);
        }
    }

    #[test]
    fn encoded_counters_are_read_back(counter in counters()) {
        prop_assert_eq!(PnCounter::decode(&counter.encode()), Ok(counter));
    }

    #[test]
    fn bytes_have_one_meaning_or_none(bytes in prop::collection::vec(prop_oneof![0..3_u8, any::<u8>()], 0..12)) {
        if let Ok(counter) = PnCounter::decode(&bytes) {
            prop_assert_eq!(counter.encode(), bytes);
        }
    }
}
