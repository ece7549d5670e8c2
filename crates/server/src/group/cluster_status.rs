//! The answer to `CLUSTER STATUS`, as those read it who ask a member.

use crate::resp::Value;

/// What a member says of itself and of its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterStatus {
    /// The cluster's id, as 32 hexadecimal digits.
    pub cluster: String,
    /// The member's number.
    pub node: u64,
    /// The version of its build; empty of one that does not say it.
    pub version: String,
    /// The highest level of records that it knows; 1 of a build that does not say it.
    pub level: u64,
    /// The level of the cluster's records.
    pub cluster_level: u64,
    /// What it is, in a word.
    pub role: String,
    /// The leader that it knows.
    pub leader: Option<u64>,
    /// The newest term that it knows.
    pub term: u64,
    /// Index of its last entry.
    pub last_entry: u64,
    /// Term of that entry; 0 of a version that does not say it.
    pub last_entry_term: u64,
    /// Index of the last entry that it knows to be committed.
    pub committed_entry: u64,
    /// Time since most members acknowledged this leader. Milliseconds.
    pub quorum_age_ms: Option<u64>,
    /// Whether its data is new enough for readers.
    pub is_fresh: bool,
    /// Whether it may have lost what it acknowledged, and does not vote.
    pub is_suspect: bool,
    /// What is wrong with it.
    pub problem: Option<String>,
    /// The change that is under way.
    pub change: Option<String>,
    /// The last change that ended.
    pub last_change: Option<String>,
    /// Why that was not made.
    pub last_change_error: Option<String>,
    /// Whether the list of members is committed; false of a version that does not say it.
    pub are_members_committed: bool,
    /// The members.
    pub members: Vec<MemberStatus>,
}

/// A member as another one sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    /// Its number.
    pub node: u64,
    /// Where other members reach it.
    pub peers: String,
    /// Where clients reach it.
    pub clients: String,
    /// Its directory, as 32 hexadecimal digits.
    pub directory: Option<String>,
    /// Whether it votes.
    pub votes: bool,
    /// Whether the other one is connected with it.
    pub is_reachable: bool,
    /// Why the last connection with it ended; empty before the first failure.
    pub error: String,
    /// Index of the last entry that it is known to have; only at the leader.
    pub entry: Option<u64>,
    /// Why it did not get a snapshot that it needs; only at the leader.
    pub snapshot_error: Option<String>,
    /// Why it does not take part, as it has said itself before it listens to others.
    pub report: Option<String>,
}

/// The field that an answer lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the answer to CLUSTER STATUS lacks '{0}': the member has another version")]
pub struct MissingField(&'static str);

impl ClusterStatus {
    /// Reads an answer of this version, or of one that says less of members.
    ///
    /// # Errors
    /// A field is missing, or is not of its type.
    pub fn of(reply: &Value) -> Result<ClusterStatus, MissingField> {
        let status = Fields(reply);
        let members = status.get("members").and_then(Value::as_elements).ok_or(MissingField("members"))?;
        let flag = |name| Ok(status.number(name)? == 1);
        Ok(ClusterStatus {
            cluster: status.text("cluster")?,
            node: status.number("node")?,
            version: status.text("version").unwrap_or_default(),
            level: status.number("level").unwrap_or(1),
            cluster_level: status.number("cluster_level").unwrap_or(1),
            role: status.text("role")?,
            leader: status.number("leader").ok(),
            term: status.number("term")?,
            last_entry: status.number("last_entry")?,
            last_entry_term: status.number("last_entry_term").unwrap_or(0),
            committed_entry: status.number("committed_entry")?,
            quorum_age_ms: status.number("quorum_age_ms").ok(),
            is_fresh: flag("fresh")?,
            is_suspect: flag("suspect").unwrap_or(false),
            problem: status.text("problem").ok(),
            change: status.text("change").ok(),
            last_change: status.text("last_change").ok(),
            last_change_error: status.text("last_change_error").ok(),
            are_members_committed: flag("members_committed").unwrap_or(false),
            members: members.iter().map(MemberStatus::of).collect::<Result<_, _>>()?,
        })
    }

    /// Returns the member of that number in this one's list.
    pub fn member(&self, node: u64) -> Option<&MemberStatus> {
        self.members.iter().find(|member| member.node == node)
    }
}

impl MemberStatus {
    fn of(map: &Value) -> Result<MemberStatus, MissingField> {
        let member = Fields(map);
        Ok(MemberStatus {
            node: member.number("node")?,
            peers: member.text("peers")?,
            clients: member.text("clients")?,
            directory: member.text("directory").ok(),
            votes: member.number("votes")? == 1,
            is_reachable: member.number("reachable")? == 1,
            error: member.text("error")?,
            entry: member.number("entry").ok(),
            snapshot_error: member.text("snapshot_error").ok(),
            report: member.text("report").ok(),
        })
    }
}

/// The fields of a map. A field that is null is missing.
struct Fields<'v>(&'v Value);

impl<'v> Fields<'v> {
    fn get(&self, name: &str) -> Option<&'v Value> {
        let pairs = self.0.as_pairs()?;
        pairs.into_iter().find(|(key, _)| key.as_bytes() == Some(name.as_bytes())).map(|(_, value)| value)
    }

    fn text(&self, name: &'static str) -> Result<String, MissingField> {
        let bytes = self.get(name).and_then(Value::as_bytes).ok_or(MissingField(name))?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    fn number(&self, name: &'static str) -> Result<u64, MissingField> {
        let number = self.get(name).and_then(Value::as_integer);
        number.and_then(|number| u64::try_from(number).ok()).ok_or(MissingField(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.as_bytes().to_vec())
    }

    /// An answer as RESP2 has it, without the fields `left_out`.
    fn answer(left_out: &[&str]) -> Value {
        let map = |pairs: Vec<(&str, Value)>| {
            let pairs = pairs.into_iter().filter(|(name, _)| !left_out.contains(name));
            Value::Array(pairs.flat_map(|(name, value)| [bulk(name), value]).collect())
        };
        let member = map(vec![
            ("node", Value::Integer(2)),
            ("peers", bulk("a:1")),
            ("clients", bulk("a:2")),
            ("directory", bulk("00")),
            ("votes", Value::Integer(1)),
            ("reachable", Value::Integer(0)),
            ("error", bulk("timed out")),
            ("entry", Value::Null),
            ("snapshot_error", bulk("no space")),
            ("report", bulk("it is damaged")),
        ]);
        map(vec![
            ("cluster", bulk("c")),
            ("node", Value::Integer(1)),
            ("version", bulk("0.2.0")),
            ("level", Value::Integer(3)),
            ("cluster_level", Value::Integer(2)),
            ("role", bulk("follower")),
            ("leader", Value::Null),
            ("term", Value::Integer(4)),
            ("last_entry", Value::Integer(9)),
            ("last_entry_term", Value::Integer(3)),
            ("committed_entry", Value::Integer(8)),
            ("quorum_age_ms", Value::Null),
            ("fresh", Value::Integer(0)),
            ("suspect", Value::Integer(1)),
            ("members_committed", Value::Integer(1)),
            ("members", Value::Array(vec![member])),
        ])
    }

    #[test]
    fn an_answer_is_read_without_what_other_versions_do_not_say() {
        let status = ClusterStatus::of(&answer(&[])).expect("it is whole");
        assert_eq!((status.last_entry, status.last_entry_term, status.leader), (9, 3, None));
        assert!(status.is_suspect && !status.is_fresh && status.problem.is_none());
        let member = status.member(2).expect("it is listed");
        assert_eq!((member.votes, member.is_reachable, member.entry), (true, false, None));
        assert_eq!(member.snapshot_error.as_deref(), Some("no space"));
        assert_eq!(member.report.as_deref(), Some("it is damaged"));
        assert_eq!((status.version.as_str(), status.level, status.cluster_level), ("0.2.0", 3, 2));
        assert!(status.are_members_committed);
        let unsaid = [
            "version",
            "level",
            "cluster_level",
            "last_entry_term",
            "suspect",
            "snapshot_error",
            "report",
            "members_committed",
        ];
        let older = ClusterStatus::of(&answer(&unsaid)).expect("enough");
        assert_eq!((older.last_entry_term, older.is_suspect, older.are_members_committed), (0, false, false));
        assert_eq!((older.version.as_str(), older.level, older.cluster_level), ("", 1, 1));
        for name in ["cluster", "role", "term", "votes", "error"] {
            assert_eq!(ClusterStatus::of(&answer(&[name])), Err(MissingField(name)));
        }
        assert!(ClusterStatus::of(&Value::Null).is_err());
    }
}
