//! Subject: who is who.

use std::collections::HashSet;

use tidemark_circuit::{Current, Subject};

/// Scenarios that make no sense in Rust, with the reason.
#[allow(dead_code, unreachable_pub, reason = "read from the source, to prove that every scenario is covered")]
pub const NOT_APPLICABLE: &[(&str, &str)] =
    &[("SUB-03", "the type system: there is one type of subject, and nothing else compares with it")];

#[test]
fn sub_07_an_id_is_equal_only_to_itself() {
    let threads: Vec<Current> =
        (0..20).map(|_| std::thread::spawn(Current::of_thread).join().unwrap()).collect();
    let ids: HashSet<_> = threads.iter().map(|current| current.subject().id()).collect();
    assert_eq!(ids.len(), 20, "namesakes have ids of their own");
    assert!(threads.iter().all(|current| ids.contains(&current.subject().id())), "an id hashes as itself");
    assert!(!ids.contains(&Subject::cortex().id()));
    assert_eq!(Subject::cortex().id(), Subject::cortex().clone().id());
}
