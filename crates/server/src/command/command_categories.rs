//! Access categories, as `COMMAND` reports them: those of a command's flags and group, and what its row
//! adds or excludes. A test compares them with Redis 7.0.

use tidemark_engine::command::flags;
use tidemark_engine::{Command, Run};

/// Categories implied by a flag.
const OF_FLAGS: [(u32, &str); 6] = [
    (flags::WRITE, "@write"),
    (flags::READONLY, "@read"),
    (flags::ADMIN, "@admin"),
    (flags::ADMIN, "@dangerous"),
    (flags::BLOCKING, "@blocking"),
    (flags::PUBSUB, "@pubsub"),
];

/// The categories of a command.
pub(super) fn categories(row: &Command) -> Vec<&'static str> {
    // A container and its help do nothing themselves.
    let is_container = matches!(row.run, Run::Container);
    let mut categories = Vec::new();
    if !is_container && row.name != "help" {
        let of_flags = OF_FLAGS.iter().filter(|(flag, _)| row.is(*flag));
        categories.extend(of_flags.map(|(_, category)| *category));
    }
    categories.push(if row.is(flags::FAST) { "@fast" } else { "@slow" });
    if !is_container {
        categories.extend(row.group.category());
    }
    categories.retain(|category| !row.excluded_categories.contains(category));
    categories.extend(row.categories);
    categories
}
