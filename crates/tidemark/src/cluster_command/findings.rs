//! What is wrong with a cluster, and what to do about it.

use super::picture::{Drawn, Picture};

/// Entries that a member may lack while it is at work as it should.
const LAG_ENTRIES_MAX: u64 = 1_000;

/// Longest time since most members answered the leader while it is well. Longer than any heartbeat that a
/// busy machine delays.
pub(super) const QUORUM_AGE_MS_MAX: u64 = 3_000;

/// Something that is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) wrong: String,
    pub(super) remedy: String,
}

fn finding(wrong: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { wrong: wrong.into(), remedy: remedy.into() }
}

/// Returns the numbers as words.
fn list(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns how many members may fail before no majority is left; `None` if there is none now.
pub(super) fn spare(picture: &Picture) -> Option<usize> {
    let voters: Vec<&Drawn> = picture.members.iter().filter(|member| member.seen.votes).collect();
    let present = voters.iter().filter(|member| member.said.is_ok()).count();
    present.checked_sub(voters.len() / 2 + 1)
}

/// Returns the voting members that answer and may have lost what they acknowledged.
fn suspects(picture: &Picture) -> Vec<u64> {
    let voters = picture.members.iter().filter(|member| member.seen.votes);
    let suspects = voters.filter(|member| member.said.as_ref().is_ok_and(|said| said.is_suspect));
    suspects.map(|member| member.seen.node).collect()
}

/// Returns how many members answer and vote.
pub(super) fn able(picture: &Picture) -> usize {
    let voters = picture.members.iter().filter(|member| member.seen.votes && member.said.is_ok());
    voters.count() - suspects(picture).len()
}

/// Returns how many members elect a leader.
pub(super) fn majority(picture: &Picture) -> usize {
    picture.members.iter().filter(|member| member.seen.votes).count() / 2 + 1
}

/// Returns the voting members that are silent because their data is damaged.
pub(super) fn damaged(picture: &Picture) -> Vec<u64> {
    let voters = picture.members.iter().filter(|member| member.seen.votes && member.said.is_err());
    voters.filter(|member| member.seen.report.is_some()).map(|member| member.seen.node).collect()
}

/// What stands in the way of a cluster in which damaged members wait for a leader that they would elect.
fn no_quorum_with_damage(picture: &Picture, voters: &[&Drawn], silent: &[u64]) -> Finding {
    let damaged = damaged(picture);
    let others: Vec<u64> = silent.iter().copied().filter(|node| !damaged.contains(node)).collect();
    let first = if others.is_empty() {
        String::new()
    } else {
        format!(
            "start {} with their directories: with one more that is whole the cluster may heal. Else ",
            list(&others)
        )
    };
    finding(
        format!(
            "no quorum: {} of {} voting members answer, so changes are refused; the data of {} is damaged, and is got \
             from the others only when these have a leader",
            voters.len() - silent.len(),
            voters.len(),
            list(&damaged)
        ),
        format!(
            "nothing is removed meanwhile. {first}copy the directories of {}, which may have the only copy of the newest \
             changes, and run `tidemark cluster recover`: it says what the members that answer have, and with \
             --accept-loss goes on with that",
            list(&damaged)
        ),
    )
}

/// Looks for what is wrong, the worst first.
pub(super) fn findings(picture: &Picture) -> Vec<Finding> {
    let mut found = Vec::new();
    let voters: Vec<&Drawn> = picture.members.iter().filter(|member| member.seen.votes).collect();
    let silent: Vec<u64> =
        voters.iter().filter(|member| member.said.is_err()).map(|member| member.seen.node).collect();
    if voters.is_empty() {
        found.push(finding(
            "the cluster has no members yet",
            "it is founded when all members of --cluster-members run and reach each other",
        ));
    } else if spare(picture).is_none() && !damaged(picture).is_empty() {
        found.push(no_quorum_with_damage(picture, &voters, &silent));
    } else if spare(picture).is_none() {
        found.push(finding(
            format!(
                "no quorum: {} of {} voting members answer, so changes are refused",
                voters.len() - silent.len(),
                voters.len()
            ),
            format!(
                "start most members again with their directories; silent are {}. If their disks are lost for good, \
                 `tidemark cluster recover` says what of the others can be saved",
                list(&silent)
            ),
        ));
    } else {
        match picture.leader() {
            None if able(picture) < majority(picture) => found.push(finding(
                format!(
                    "no leader can be elected: of {} voting members {} may have lost what they acknowledged, and do \
                     not vote",
                    voters.len(),
                    list(&suspects(picture)),
                ),
                "start the silent members, if there are any; else `tidemark cluster recover` says what could be lost",
            )),
            None => found.push(finding(
                "no member leads, although most answer",
                "ask again in a second; if it stays so, see in the members' standard error why they are not \
                 connected with each other",
            )),
            Some(leader) if leader.quorum_age_ms.is_some_and(|age| age > QUORUM_AGE_MS_MAX) => {
                let age = leader.quorum_age_ms.unwrap_or_default();
                found.push(finding(
                    format!("most members have not answered the leader for {age} ms, so it refuses commands"),
                    "check the network between the members, and the ports for members",
                ));
            }
            Some(_) => {}
        }
    }
    picture.members.iter().for_each(|member| find_in(picture, member, &mut found));
    if voters.len() == 1 {
        found.push(finding(
            "one member votes: the cluster fails with it",
            "let two others join: `tidemark serve --cluster-join` with empty directories",
        ));
    }
    if voters.len().is_multiple_of(2) && !voters.is_empty() {
        let survives = (voters.len() - 1) / 2;
        found.push(finding(
            format!("{} members vote: no more may fail than with one less, {survives}", voters.len()),
            "let another member join, or remove one",
        ));
    }
    if let Some(leader) = picture.leader()
        && let (Some(change), Some(error)) = (&leader.last_change, &leader.last_change_error)
    {
        found.push(finding(format!("the last change was not made: {change}: {error}"), "repeat it"));
    }
    found
}

fn find_in(picture: &Picture, member: &Drawn, found: &mut Vec<Finding>) {
    let node = member.seen.node;
    let said = match &member.said {
        Ok(said) => said,
        Err(_) if member.seen.report.is_some() => {
            let report = member.seen.report.as_deref().unwrap_or_default();
            let remedy = if picture.leader().is_some() {
                format!(
                    "wait; if its process has ended, start member {node} again: it gets its data from the leader"
                )
            } else {
                "see above: it gets its data from the others once they have a leader".to_owned()
            };
            return found.push(finding(format!("member {node} does not take part: {report}"), remedy));
        }
        Err(error) => {
            return found.push(finding(
                format!("member {node} does not answer at {}: {error}", member.seen.clients),
                format!(
                    "start it again with its directory; if that is lost, let a new member join and run \
                     `tidemark cluster replace {node} NEW`"
                ),
            ));
        }
    };
    if let Some(problem) = &said.problem {
        let remedy = match said.role.as_str() {
            "failed" => format!("repair the cause and restart member {node}; its standard error says more"),
            "leader" => {
                "repair the cause: the member then goes on by itself. It gives the lead to a member whose \
                         disk is well; if it keeps it, there is none that it can ask"
                    .to_owned()
            }
            _ => {
                "repair the cause: the member then goes on by itself; its standard error says more".to_owned()
            }
        };
        found.push(finding(format!("member {node}: {problem}"), remedy));
    }
    if said.is_suspect && picture.leader().is_some() {
        found.push(finding(
            format!("member {node} may have lost what it acknowledged, and does not vote"),
            "wait; it votes once the leader has caught it up",
        ));
    }
    match said.role.as_str() {
        "stranger" => found.push(finding(
            format!("member {node} is not in its own list of members: it has not joined, or was removed"),
            "stop it if it was removed; else its standard error says why it has not joined",
        )),
        "loading" => found.push(finding(format!("member {node} loads its data"), "wait for its end")),
        _ => {}
    }
    let Some(leader) = picture.leader().filter(|leader| leader.node != node) else { return };
    if !member.seen.is_reachable {
        let error = &member.seen.error;
        found.push(finding(
            format!("the leader is not connected with member {node} at {}: {error}", member.seen.peers),
            "check the network between the two, and the port for members",
        ));
    }
    // A member that says itself what is wrong needs no second line.
    if let Some(error) = member.seen.snapshot_error.as_ref().filter(|_| said.problem.is_none()) {
        found.push(finding(
            format!("member {node} does not get the snapshot of the leader that it needs: {error}"),
            "the leader tries it again by itself; standard error of both says more",
        ));
    }
    let lacks = leader.last_entry.saturating_sub(member.seen.entry.unwrap_or(0));
    if !member.seen.votes {
        found.push(finding(
            format!("member {node} does not vote yet; it lacks {lacks} entries"),
            "wait; it votes once it has caught up",
        ));
    } else if lacks > LAG_ENTRIES_MAX || (member.seen.is_reachable && !said.is_fresh) {
        found.push(finding(
            format!("member {node} is behind: it lacks {lacks} entries"),
            "wait; if it falls further behind, its disk or its network is too slow for the writes",
        ));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use tidemark_server::{ClusterStatus as Said, MemberStatus as Seen};

    fn seen(node: u64) -> Seen {
        Seen {
            node,
            peers: format!("10.0.0.{node}:8379"),
            clients: format!("10.0.0.{node}:7379"),
            votes: true,
            is_reachable: true,
            error: String::new(),
            directory: None,
            entry: Some(20),
            snapshot_error: None,
            report: None,
        }
    }

    fn said(node: u64) -> Said {
        Said {
            cluster: "c".into(),
            node,
            role: if node == 1 { "leader".into() } else { "follower".into() },
            leader: Some(1),
            term: 3,
            last_entry: 20,
            last_entry_term: 3,
            committed_entry: 20,
            quorum_age_ms: (node == 1).then_some(4),
            is_fresh: true,
            version: "0.1.0".into(),
            level: 2,
            cluster_level: 2,
            is_suspect: false,
            problem: None,
            change: None,
            last_change: None,
            last_change_error: None,
            are_members_committed: true,
            members: (1..=3).map(seen).collect(),
        }
    }

    pub(in super::super) fn well() -> Picture {
        let drawn = |node| Drawn { seen: seen(node), said: Ok(said(node)) };
        Picture { cluster: "c".into(), members: (1..=3).map(drawn).collect() }
    }

    /// What is found wrong when `change` has been made to a cluster that is well.
    fn wrong(change: impl FnOnce(&mut Picture)) -> Vec<String> {
        let mut picture = well();
        change(&mut picture);
        findings(&picture).into_iter().map(|finding| finding.wrong).collect()
    }

    #[test]
    fn nothing_is_wrong_with_a_cluster_that_is_well() {
        assert_eq!(findings(&well()), []);
        assert_eq!(spare(&well()), Some(1));
    }

    #[test]
    fn what_is_wrong_is_said_in_words() {
        let refused = || Err("connection refused".to_owned());
        let silent = wrong(|picture| picture.members[2].said = refused());
        assert_eq!(silent, ["member 3 does not answer at 10.0.0.3:7379: connection refused"]);
        let none = wrong(|picture| (0..2).for_each(|member| picture.members[member].said = refused()));
        assert_eq!(none[0], "no quorum: 1 of 3 voting members answer, so changes are refused");
        let mut damaged = well();
        for member in 0..2 {
            damaged.members[member].said = refused();
            damaged.members[member].seen.report = Some("its data is damaged: a bit".into());
        }
        let found = findings(&damaged);
        assert_eq!(
            found[0].wrong,
            "no quorum: 1 of 3 voting members answer, so changes are refused; the data of 1, 2 is damaged, and is got \
             from the others only when these have a leader"
        );
        assert!(found[0].remedy.contains("copy the directories of 1, 2"), "{found:?}");
        assert!(found[0].remedy.contains("tidemark cluster recover"), "{found:?}");
        assert_eq!(found[1].wrong, "member 1 does not take part: its data is damaged: a bit");
        let waits = wrong(|picture| {
            picture.members[2].said = refused();
            picture.members[2].seen.report = Some("its data is damaged: a bit".into());
        });
        assert_eq!(waits, ["member 3 does not take part: its data is damaged: a bit"]);
        let election = wrong(|picture| {
            let first = picture.members[0].said.as_mut().expect("it answers");
            first.role = "follower".into();
        });
        assert_eq!(election, ["no member leads, although most answer"]);
        let suspects = wrong(|picture| {
            for member in 0..2 {
                let said = picture.members[member].said.as_mut().expect("it answers");
                (said.role, said.is_suspect) = ("follower".into(), true);
            }
        });
        let words = "no leader can be elected: of 3 voting members 1, 2 may have lost what they acknowledged, and do \
                     not vote";
        assert_eq!(suspects, [words]);
        let suspect = wrong(|picture| {
            picture.members[1].said.as_mut().expect("it answers").is_suspect = true;
        });
        assert_eq!(suspect, ["member 2 may have lost what it acknowledged, and does not vote"]);
        let single = wrong(|picture| picture.members.truncate(1));
        assert_eq!(single, ["one member votes: the cluster fails with it"]);
        let alone = wrong(|picture| {
            picture.members[0].said.as_mut().expect("it answers").quorum_age_ms = Some(4_000);
        });
        assert_eq!(alone, ["most members have not answered the leader for 4000 ms, so it refuses commands"]);
        let cut = wrong(|picture| {
            let seen = &mut picture.members[1].seen;
            (seen.is_reachable, seen.error) = (false, "timed out".into());
        });
        assert_eq!(cut, ["the leader is not connected with member 2 at 10.0.0.2:8379: timed out"]);
        let slow = wrong(|picture| {
            picture.members[0].said.as_mut().expect("it answers").last_entry = 5000;
            picture.members[2].seen.entry = Some(5000);
        });
        assert_eq!(slow, ["member 2 is behind: it lacks 4980 entries"]);
        let without_snapshot = |problem: Option<&str>| {
            wrong(|picture| {
                picture.members[2].seen.snapshot_error = Some("no space".into());
                picture.members[2].said.as_mut().expect("it answers").problem = problem.map(str::to_owned);
            })
        };
        let words = "member 3 does not get the snapshot of the leader that it needs: no space";
        assert_eq!(without_snapshot(None), [words]);
        assert_eq!(without_snapshot(Some("its disk is small")), ["member 3: its disk is small"]);
        let learner = wrong(|picture| picture.members[2].seen.votes = false);
        assert_eq!(
            learner,
            [
                "member 3 does not vote yet; it lacks 0 entries",
                "2 members vote: no more may fail than with one less, 0"
            ]
        );
        let disk = wrong(|picture| {
            let second = picture.members[1].said.as_mut().expect("it answers");
            second.problem = Some("the log has failed: EIO".into());
        });
        assert_eq!(disk, ["member 2: the log has failed: EIO"]);
        for (role, words) in
            [("failed", "restart member 2"), ("leader", "gives the lead"), ("follower", "by itself")]
        {
            let mut picture = well();
            let second = picture.members[1].said.as_mut().expect("it answers");
            (second.role, second.problem) = (role.into(), Some("the log cannot grow".into()));
            let found = findings(&picture);
            assert!(found.iter().any(|finding| finding.remedy.contains(words)), "{role}: {found:?}");
        }
        let change = wrong(|picture| {
            let leader = picture.members[0].said.as_mut().expect("it answers");
            leader.last_change = Some("removal of member 9".into());
            leader.last_change_error = Some("no".into());
        });
        assert_eq!(change, ["the last change was not made: removal of member 9: no"]);
    }
}
