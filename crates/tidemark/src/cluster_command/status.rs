//! `tidemark cluster status`: each member in a line, and what is wrong.

use super::builds::differing_builds;
use super::findings::{Finding, findings, spare};
use super::picture::{Drawn, Picture};
use serde_json::{Value as Json, json};
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;
use tidemark_lab::target::Target;

/// Digits of the cluster's id that are shown.
const ID_DIGITS: usize = 8;

/// Asks all members, and shows what they say.
pub(super) fn run(target: &Target, timeout: Duration, is_json: bool) -> anyhow::Result<ExitCode> {
    let picture = Picture::draw(target, timeout)?;
    let found = findings(&picture);
    let mut out = io::stdout().lock();
    if is_json {
        writeln!(out, "{:#}", json(&picture, &found))?;
    } else {
        writeln!(out, "{}", headline(&picture))?;
        for member in &picture.members {
            writeln!(out, "{}", line(&picture, member))?;
        }
        // A cluster is well while its members are upgraded.
        for finding in found.iter().chain(&differing_builds(&picture)) {
            writeln!(out, "{}\n  {}", finding.wrong, finding.remedy)?;
        }
    }
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn headline(picture: &Picture) -> String {
    let id: String = picture.cluster.chars().take(ID_DIGITS).collect();
    let voters = picture.members.iter().filter(|member| member.seen.votes).count();
    let leader = match picture.leader() {
        None => "without a leader".to_owned(),
        Some(leader) => {
            let age = leader.quorum_age_ms.map_or(String::new(), |ms| format!(", confirmed {ms} ms ago"));
            format!("led by member {} in term {}{age}", leader.node, leader.term)
        }
    };
    let spare = match spare(picture) {
        None => "no majority answers".to_owned(),
        Some(count) => format!("{count} may fail"),
    };
    let change = picture.leader().and_then(|leader| leader.change.as_ref());
    let change = change.map_or(String::new(), |change| format!("; under way: {change}"));
    let level = picture.leader().map_or(String::new(), |leader| format!(", level {}", leader.cluster_level));
    format!("cluster {id}, {leader}; {voters} members vote, {spare}{level}{change}")
}

fn line(picture: &Picture, member: &Drawn) -> String {
    let (node, clients) = (member.seen.node, &member.seen.clients);
    let Ok(said) = &member.said else { return format!("  {node}  {:8}  {clients}", "silent") };
    let entries = match picture.leader() {
        Some(leader) if leader.node == node => {
            format!("entry {}, committed up to {}", leader.last_entry, leader.committed_entry)
        }
        Some(leader) => {
            let has = member.seen.entry.unwrap_or(0);
            match leader.last_entry.saturating_sub(has) {
                0 => format!("entry {has}, lacks none"),
                lacks => format!("entry {has}, lacks {lacks}"),
            }
        }
        None => {
            format!("term {}, entry {}, committed up to {}", said.term, said.last_entry, said.committed_entry)
        }
    };
    let build = format!("{}, level {}", said.version, said.level);
    format!("  {node}  {:8}  {clients}  {build}  {entries}", said.role)
}

/// Returns the picture as JSON.
fn json(picture: &Picture, findings: &[Finding]) -> Json {
    let member = |drawn: &Drawn| {
        let (seen, said) = (&drawn.seen, drawn.said.as_ref());
        json!({
            "node": seen.node,
            "peers": seen.peers,
            "clients": seen.clients,
            "votes": seen.votes,
            "role": said.map_or("silent", |said| said.role.as_str()),
            "follows": said.ok().and_then(|said| said.leader),
            "term": said.ok().map(|said| said.term),
            "last_entry": said.ok().map(|said| said.last_entry),
            "committed_entry": said.ok().map(|said| said.committed_entry),
            "acknowledged_entry": seen.entry,
            "fresh": said.ok().map(|said| said.is_fresh),
            "connected_with_leader": seen.is_reachable,
            "suspect": said.ok().map(|said| said.is_suspect),
            "problem": said.ok().and_then(|said| said.problem.as_deref()),
            "snapshot_error": seen.snapshot_error,
            "report": seen.report,
            "version": said.ok().map(|said| said.version.as_str()),
            "level": said.ok().map(|said| said.level),
            "error": said.err(),
        })
    };
    let leader = picture.leader();
    json!({
        "cluster": picture.cluster,
        "leader": leader.map(|leader| leader.node),
        "term": leader.map(|leader| leader.term),
        "quorum_age_ms": leader.and_then(|leader| leader.quorum_age_ms),
        "level": leader.map(|leader| leader.cluster_level),
        "older_builds": differing_builds(picture).map(|found| found.wrong),
        "change": leader.and_then(|leader| leader.change.as_deref()),
        "last_change": leader.and_then(|leader| leader.last_change.as_deref()),
        "last_change_error": leader.and_then(|leader| leader.last_change_error.as_deref()),
        "members": picture.members.iter().map(member).collect::<Vec<_>>(),
        "findings": findings.iter().map(|finding| json!({
            "wrong": finding.wrong,
            "remedy": finding.remedy,
        })).collect::<Vec<_>>(),
    })
}
