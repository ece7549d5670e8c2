//! A pool of prizes with one unit each: a prize that is given twice is detected.

use super::{Answer, Client, call};
use std::collections::BTreeSet;

/// Creates the pool `prizes`.
pub(crate) fn create_prizes(client: &mut Client, count: usize) {
    let items = (0..count).flat_map(|item| [format!("prize{item}"), "1".into(), "1".into()]);
    let items: Vec<String> = items.collect();
    let mut create = vec!["POOL.CREATE", "prizes", "ITEMS"];
    create.extend(items.iter().map(String::as_str));
    call(client, &create);
}

/// Draws until an answer is missing or an error; returns the prizes won, each once, and the error.
pub(crate) fn draw_until_refused(client: &mut Client) -> (BTreeSet<String>, Option<String>) {
    let mut won = BTreeSet::new();
    loop {
        match client.call(&["POOL.DRAW", "prizes"]) {
            Ok(Answer::Error(text)) => return (won, Some(text)),
            Ok(draw) => match &draw.array()[..] {
                [_, Answer::Bulk(id)] => assert!(won.insert(id.clone()), "{id} is won twice"),
                other => panic!("not a draw: {other:?}"),
            },
            Err(_) => return (won, None),
        }
    }
}
