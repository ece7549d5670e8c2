//! Epochs: the change from one secret to the next, and revealed secrets.

use super::creating::random_secret;
use super::{answer, no_pool, options};
use crate::command::parse::is;
use crate::context::Context;
use crate::error::CommandError;
use crate::value::Pool;
use crate::wire::reply::Reply;
use std::fmt::Write as _;
use tidemark_pool::Revealed;

/// `POOL.EPOCH key [SEED seed]`: ends the epoch, reveals its secret, and begins the epoch that was
/// committed to.
pub(super) fn begin(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let seed = match &args[2..] {
        [] => &[],
        [word, seed] if is(word, "SEED") => *seed,
        _ => return Err(CommandError::Syntax),
    };
    let after = random_secret(ctx)?;
    // After a crash, a revealed secret must not be used for draws again.
    ctx.keys.make_durable();
    let changed = ctx.keys.change_pool(args[1], "pool_epoch", seed.len() + 64, |pool| {
        let revealed = pool.begin_epoch(seed, after)?;
        Ok((revealed, pool.epoch().index, pool.commitment(), pool.next_commitment()))
    })?;
    let (revealed, epoch, commitment, next_commitment) = changed.ok_or_else(no_pool)?;
    ctx.reply.map(4);
    ctx.reply.bulk(b"revealed");
    show(ctx.reply, &revealed);
    answer::number(ctx.reply, "epoch", epoch);
    answer::text(ctx.reply, "commitment", &commitment.to_string());
    answer::text(ctx.reply, "next-commitment", &next_commitment.to_string());
    Ok(())
}

/// `POOL.REVEAL key [epoch]`: answers an ended epoch, by default the last one.
pub(super) fn reveal(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let named = args.get(2).map(|epoch| options::number(epoch)).transpose()?;
    let pool = ctx.keys.read::<Pool>(args[1])?.map(Pool::inner);
    let revealed = pool.and_then(|pool| pool.revealed(named.or(pool.epoch().index.checked_sub(1))?));
    match revealed {
        Some(revealed) => {
            // The record that ends the epoch may not be durable yet.
            ctx.keys.reveal_durable();
            show(ctx.reply, &revealed);
        }
        None => ctx.reply.null(),
    }
    Ok(())
}

/// Writes everything needed to repeat an epoch's draws.
fn show(reply: &mut Reply, revealed: &Revealed) {
    let Revealed { epoch, end } = revealed;
    reply.map(6);
    answer::number(reply, "epoch", epoch.index);
    answer::number(reply, "first-draw", epoch.first_draw);
    answer::number(reply, "end", *end);
    answer::text(reply, "secret", &hexadecimal(epoch.secret.reveal()));
    reply.bulk(b"client-seed");
    reply.bulk(&epoch.client_seed);
    answer::text(reply, "commitment", &epoch.secret.commitment().to_string());
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}
