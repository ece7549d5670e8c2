//! Taking units from limiters and quotas, from one or from several together.

use super::answer::{self, invalid, other_algorithm, signed};
use super::options::{Accepts, Options};
use super::quotas;
use super::verdict::{Answer, Verdict};
use crate::command::parse;
use crate::context::{Context, Keys};
use crate::error::CommandError;
use crate::keyspace::{Deadline, Entry, Payload};
use crate::value::limit::{Algorithm, Leases, NO_BOUND, Policy};
use crate::value::{Limit, Object, TypedValue};
use tidemark_counter::limiter::{Decision, Time};

/// Most bytes of a logged `LIMIT.CHECKALL` of one key besides the key: an amount, an algorithm and
/// three numbers with their keywords.
const CHECK_BYTES: usize = 128;

#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) key: &'a [u8],
    /// Units; 0 only asks.
    pub(super) amount: u64,
    /// Definition of the limiter if it does not exist.
    pub(super) policy: Option<Policy>,
    /// Duration of the lease, if not the limiter's default. Milliseconds; ignored by other
    /// limiters.
    pub(super) ttl_ms: Option<u64>,
}

impl Request<'_> {
    /// Returns the policy that a grant is decided by, given the limiter's policy.
    fn terms(&self, policy: Policy) -> Result<Policy, CommandError> {
        match self.ttl_ms {
            Some(ttl_ms) if policy.algorithm().has_leases() => policy.with_period(ttl_ms).map_err(invalid),
            _ => Ok(policy),
        }
    }
}

/// Returns the command's time as limiters use it.
pub(super) fn now(keys: &Keys<'_>) -> Time {
    Time::from_micros(keys.now_us())
}

/// Asks one limiter, without a change. `limit` is `None` if it does not exist yet.
fn ask(keys: &Keys<'_>, limit: Option<&Limit>, request: &Request<'_>) -> Result<Answer, CommandError> {
    let (now, leases_max) = (now(keys), keys.leases_max());
    let (policy, decision) = match limit {
        Some(limit) => {
            let policy = limit.in_force(request.policy).map_err(other_algorithm)?;
            (policy, limit.peek(request.terms(policy)?, now, request.amount, leases_max))
        }
        None => {
            let policy = request.policy.ok_or(answer::NO_LIMITER)?;
            let terms = request.terms(policy)?;
            (policy, Limit::new(policy, false).peek(terms, now, request.amount, leases_max))
        }
    };
    Ok(Answer { decision, algorithm: policy.algorithm(), lease: 0 })
}

/// Takes what [`ask`] has allowed.
fn take_allowed(keys: &mut Keys<'_>, request: &Request<'_>) -> Result<Answer, CommandError> {
    assert!(request.amount > 0, "a question takes nothing");
    let now = now(keys);
    let take = |limit: &mut Limit| -> Result<(Answer, Option<u64>), CommandError> {
        let terms = request.terms(limit.policy())?;
        // The limit on leases was checked before, and may have changed since.
        let decision = limit.take(terms, now, request.amount, NO_BOUND);
        let lease = limit.leases().map_or(0, Leases::last_id);
        Ok((Answer { decision, algorithm: terms.algorithm(), lease }, limit.deadline()))
    };
    let taken = keys.update(request.key, |limit: &mut Limit| {
        // An error was returned by `ask` before.
        if let Ok(policy) = limit.in_force(request.policy) {
            limit.follow(policy);
        }
        take(limit)
    })?;
    let answer = match (taken, request.policy) {
        (Some(taken), _) => {
            let (answer, deadline) = taken?;
            if deadline.is_some() {
                keys.set_deadline(request.key, deadline);
            }
            answer
        }
        (None, Some(policy)) => {
            let mut limit = Limit::new(policy, false);
            let (answer, deadline) = take(&mut limit)?;
            let deadline = deadline.map_or(Deadline::Clear, Deadline::At);
            keys.set(request.key, Payload::Object(Box::new(limit.into_object())), deadline);
            answer
        }
        (None, None) => return Err(answer::NO_LIMITER),
    };
    assert!(answer.decision.is_allowed, "{} units that were allowed are refused", request.amount);
    keys.changed(request.key, if answer.algorithm.has_leases() { "limit_acquire" } else { "limit_check" });
    Ok(answer)
}

/// Takes units from one limiter, if it allows that. `is_meant` checks that the command suits the
/// algorithm.
pub(super) fn take(
    ctx: &mut Context<'_, '_>,
    request: &Request<'_>,
    is_meant: impl FnOnce(Algorithm) -> Result<(), CommandError>,
) -> Result<Answer, CommandError> {
    let asked = ask(ctx.keys, ctx.keys.read(request.key)?, request)?;
    is_meant(asked.algorithm)?;
    if !asked.decision.is_allowed || request.amount == 0 {
        return Ok(asked);
    }
    take_allowed(ctx.keys, request)
}

/// Returns an error if the algorithm has leases.
pub(super) fn without_leases(algorithm: Algorithm) -> Result<(), CommandError> {
    if algorithm.has_leases() { Err(answer::HAS_LEASES) } else { Ok(()) }
}

/// Asks the limiter or counter at the key, without a change.
fn ask_any(keys: &Keys<'_>, request: &Request<'_>) -> Result<Verdict, CommandError> {
    let entry = keys.entry(request.key);
    if let Some(Object::Counter(counter)) = entry.and_then(Entry::object) {
        let verdict = quotas::ask(&keys.account(counter), request.amount)?;
        return if request.policy.is_none() { Ok(verdict) } else { Err(CommandError::WrongType) };
    }
    let limit = entry.map(Entry::collection).transpose()?;
    ask(keys, limit, request).map(Verdict::Limiter)
}

/// Takes what all of them have allowed. If both counters and limiters take part, each limiter is
/// logged separately, because changes of counters are not logged as sent.
fn take_all<'a>(
    keys: &mut Keys<'_>,
    asked: &[(Request<'a>, Verdict)],
) -> Result<Vec<(Request<'a>, Verdict)>, CommandError> {
    let takes = || asked.iter().filter(|(request, _)| request.amount > 0);
    let is_limiter = |verdict: &Verdict| matches!(verdict, Verdict::Limiter(_));
    let (limiters, all) = (takes().filter(|(_, verdict)| is_limiter(verdict)).count(), takes().count());
    if limiters > 0 || all > 1 {
        // A single counter may move while the log accepts nothing; here that could take only a
        // part.
        keys.check_admitted()?;
    }
    if limiters < all {
        let bytes: usize = takes().map(|(request, _)| request.key.len() + CHECK_BYTES).sum();
        if !keys.may_log_instead(bytes) {
            return Err(CommandError::text("ERR these are too many keys for one call"));
        }
    }
    let mut taken = Vec::with_capacity(asked.len());
    for (request, verdict) in asked {
        let verdict = match verdict {
            _ if request.amount == 0 => *verdict,
            Verdict::Counter { .. } => quotas::take_allowed(keys, request.key, request.amount)?,
            Verdict::Limiter(_) => {
                if limiters < all {
                    log_check(keys, request);
                }
                Verdict::Limiter(take_allowed(keys, request)?)
            }
        };
        taken.push((*request, verdict));
    }
    Ok(taken)
}

/// Counts a refused call as use of its counters: an idle counter must not expire, and return with
/// its full limit, while clients keep asking.
fn renew_idle(keys: &mut Keys<'_>, asked: &[(Request<'_>, Verdict)]) {
    for (request, _) in asked.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Counter { .. })) {
        keys.renew_idle(request.key);
    }
}

/// Logs what is taken from one limiter.
fn log_check(keys: &mut Keys<'_>, request: &Request<'_>) {
    let amount = request.amount.to_string();
    let definition = request.policy.map(answer::definition).unwrap_or_default();
    let mut words: Vec<&[u8]> = vec![b"1", request.key, b"AMOUNT", amount.as_bytes()];
    words.extend(definition.iter().map(String::as_bytes));
    keys.log_instead("limit.checkall", &words);
}

/// Parses the key, amount and definition of `LIMIT.CHECK` and `LIMIT.PEEK`.
fn request<'a>(args: &[&'a [u8]]) -> Result<Request<'a>, CommandError> {
    let options = Options::parse(&args[2..], Accepts { amounts: 1, definitions: 1, ..Accepts::default() })?;
    Ok(Request { key: args[1], amount: options.amount_of(0), policy: options.policy_of(0), ttl_ms: None })
}

pub(super) fn check(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let request = request(args)?;
    let mut verdict = ask_any(ctx.keys, &request)?;
    if let Verdict::Limiter(answer) = verdict {
        without_leases(answer.algorithm)?;
    }
    if verdict.is_allowed() {
        let taken = take_all(ctx.keys, &[(request, verdict)])?;
        verdict = taken.first().map_or(verdict, |(_, taken)| *taken);
    } else {
        renew_idle(ctx.keys, &[(request, verdict)]);
    }
    ctx.reply.array(5);
    verdict.answer(ctx.reply);
    Ok(())
}

pub(super) fn peek(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let verdict = ask_any(ctx.keys, &request(args)?)?;
    ctx.reply.array(5);
    verdict.answer(ctx.reply);
    Ok(())
}

/// Parses the keys, amounts and definitions of `LIMIT.CHECKALL` and `LIMIT.PEEKALL`, and asks each
/// key.
fn ask_all<'a>(keys: &Keys<'_>, args: &[&'a [u8]]) -> Result<Vec<(Request<'a>, Verdict)>, CommandError> {
    let number = parse::at_least(1, args[1], "ERR numkeys should be greater than 0")?;
    let (names, rest) = args[2..].split_at_checked(number).ok_or(CommandError::Syntax)?;
    let accepts = Accepts { amounts: number, definitions: number, ..Accepts::default() };
    let options = Options::parse(rest, accepts)?;
    if !options.fit(number) {
        return Err(CommandError::text("ERR there must be one amount or definition, or one for each key"));
    }
    if has_repeats(names) {
        return Err(CommandError::text("ERR a key can be checked only once in a call"));
    }
    let requests = (0..).zip(names).map(|(at, key)| Request {
        key,
        amount: options.amount_of(at),
        policy: options.policy_of(at),
        ttl_ms: None,
    });
    requests.map(|request| ask_any(keys, &request).map(|verdict| (request, verdict))).collect()
}

/// Takes units from all keys, or from none.
pub(super) fn check_all(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let asked = ask_all(ctx.keys, args)?;
    if asked.iter().all(|(_, verdict)| verdict.is_allowed()) {
        let taken = take_all(ctx.keys, &asked)?;
        return answer_deciding(ctx, &taken);
    }
    renew_idle(ctx.keys, &asked);
    answer_deciding(ctx, &asked)
}

pub(super) fn peek_all(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let asked = ask_all(ctx.keys, args)?;
    answer_deciding(ctx, &asked)
}

/// Answers for the deciding key: the one with the longest wait; if none refuses, the one with the
/// least left; among equals, the first. If some keys have leases, the answer ends with the lease
/// granted on each key.
fn answer_deciding(
    ctx: &mut Context<'_, '_>,
    verdicts: &[(Request<'_>, Verdict)],
) -> Result<(), CommandError> {
    // Among equals the first: `max_by` returns the last.
    let deciding = verdicts.iter().rev().max_by(|(_, one), (_, other)| one.weigh(other));
    let (request, verdict) = deciding.ok_or(CommandError::Syntax)?;
    let leases = || verdicts.iter().map(|(_, verdict)| verdict.lease());
    let has_leases = leases().any(|lease| lease.is_some());
    ctx.reply.array(6 + usize::from(has_leases));
    verdict.answer(ctx.reply);
    ctx.reply.bulk(request.key);
    if has_leases {
        ctx.reply.array(verdicts.len());
        leases().for_each(|lease| ctx.reply.integer(signed(lease.unwrap_or(0))));
    }
    Ok(())
}

fn has_repeats(keys: &[&[u8]]) -> bool {
    let mut sorted: Vec<&[u8]> = keys.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// Returns units to a limiter or counter. Units that no longer count cannot be returned.
pub(super) fn refund(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let options = Options::parse(&args[2..], Accepts { amounts: 1, ..Accepts::default() })?;
    let (key, amount, now) = (args[1], options.amount_of(0), now(ctx.keys));
    if quotas::is_counter(ctx.keys, key) {
        let refunded = quotas::refund(ctx.keys, key, amount)?;
        ctx.reply.integer(signed(refunded));
        return Ok(());
    }
    ctx.keys.check_admitted()?;
    let Some(limit) = ctx.keys.read::<Limit>(key)? else {
        ctx.reply.integer(0);
        return Ok(());
    };
    let policy = limit.policy();
    without_leases(policy.algorithm())?;
    let Decision { remaining: before, limit: all, .. } = limit.peek(policy, now, 0, NO_BOUND);
    let mut refunded = limit.clone();
    refunded.refund(now, amount);
    if amount == 0 || before == all || refunded == *limit {
        ctx.reply.integer(0);
        return Ok(());
    }
    let given = refunded.peek(policy, now, 0, NO_BOUND).remaining.saturating_sub(before).min(amount);
    match refunded.deadline() {
        // The limiter is unused.
        Some(at) if at <= ctx.keys.now_ms() => {
            ctx.keys.remove(key);
            ctx.keys.changed(key, "del");
        }
        deadline => {
            ctx.keys.update(key, |limit: &mut Limit| *limit = refunded)?;
            if deadline.is_some() {
                ctx.keys.set_deadline(key, deadline);
            }
            ctx.keys.changed(key, "limit_refund");
        }
    }
    ctx.reply.integer(signed(given));
    Ok(())
}
