//! Commands that Redis has and the table does not, for error messages.

/// Redis commands that are missing, by family: the beginning of a sentence, and the names.
const FAMILIES: &[(&str, &[&str])] = &[
    ("users with rights are", &["acl"]),
    ("clusters are", &["asking", "cluster", "readonly", "readwrite"]),
    ("replicas are", &["failover", "psync", "replconf", "replicaof", "slaveof", "sync"]),
    ("modules are", &["module"]),
    ("SLOWLOG, LATENCY, MEMORY and MONITOR are", &["latency", "memory", "monitor", "slowlog"]),
];

/// Returns the beginning of a sentence on what is missing, if `name` is a missing Redis command.
pub(super) fn family_of(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    FAMILIES.iter().find(|(_, names)| names.contains(&name.as_str())).map(|(family, _)| *family)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::find;

    #[test]
    fn what_is_missing_is_in_no_table_and_named_once() {
        let mut names: Vec<&str> = FAMILIES.iter().flat_map(|(_, names)| *names).copied().collect();
        for name in &names {
            assert!(find(name.as_bytes()).is_none(), "{name} is there");
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
