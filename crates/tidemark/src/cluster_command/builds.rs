//! Members of a cluster that run different builds, in words.

use super::findings::Finding;
use super::picture::Picture;
use std::collections::BTreeMap;

/// Says which members are older than others. That is no fault: an upgrade is under way.
pub(super) fn differing_builds(picture: &Picture) -> Option<Finding> {
    let said = || picture.members.iter().filter_map(|member| member.said.as_ref().ok());
    let mut versions: BTreeMap<(Vec<u64>, &str), Vec<u64>> = BTreeMap::new();
    for said in said() {
        versions.entry((order_of(&said.version), said.version.as_str())).or_default().push(said.node);
    }
    if versions.len() <= 1 {
        return None;
    }
    let running =
        versions.iter().map(|((_, version), nodes)| format!("{} {version}", members(nodes, "runs", "run")));
    let running = running.collect::<Vec<_>>().join("; ");
    let (_, newest) = versions.last_key_value()?;
    let older: Vec<u64> = said().map(|said| said.node).filter(|node| !newest.contains(node)).collect();
    let level = said().map(|said| said.cluster_level).max()?;
    let next = said().map(|said| said.level).max().filter(|next| *next > level);
    let waits = next.map_or(String::new(), |_| {
        format!("; until then commands that need records above level {level} are refused")
    });
    Some(Finding { wrong: running, remedy: format!("upgrade {}{waits}", members(&older, "", "").trim_end()) })
}

/// The numbers of a version, so that 0.10 is behind 0.9.
fn order_of(version: &str) -> Vec<u64> {
    let numbers = version.split(|char: char| !char.is_ascii_digit());
    numbers.map_while(|number| number.parse().ok()).collect()
}

/// Names members in words, with what they do.
fn members(nodes: &[u64], one: &str, several: &str) -> String {
    match nodes {
        [] => String::new(),
        [node] => format!("member {node} {one}"),
        [first @ .., last] => {
            let first = first.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
            format!("members {first} and {last} {several}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::tests::well;
    use super::*;

    fn running(versions: [(&str, u64); 3], cluster_level: u64) -> Option<Finding> {
        let mut picture = well();
        for (member, (version, level)) in picture.members.iter_mut().zip(versions) {
            let said = member.said.as_mut().expect("it answers");
            (said.version, said.level, said.cluster_level) = (version.to_owned(), level, cluster_level);
        }
        differing_builds(&picture)
    }

    #[test]
    fn members_of_one_build_are_not_mentioned() {
        assert_eq!(running([("0.9.0", 2); 3], 2), None);
    }

    #[test]
    fn older_members_are_named() {
        let found = running([("0.9.0", 2), ("0.10.0", 3), ("0.9.0", 2)], 2).expect("they differ");
        assert_eq!(found.wrong, "members 1 and 3 run 0.9.0; member 2 runs 0.10.0");
        assert_eq!(
            found.remedy,
            "upgrade members 1 and 3; until then commands that need records above level 2 are refused"
        );
        let found = running([("0.9.1", 2), ("0.9.1", 2), ("0.9.0", 2)], 2).expect("they differ");
        assert_eq!(found.wrong, "member 3 runs 0.9.0; members 1 and 2 run 0.9.1");
        assert_eq!(found.remedy, "upgrade member 3");
    }
}
