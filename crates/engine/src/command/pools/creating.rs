//! Creation and removal of pools.

use super::{answer, options, rules, schedule, tables};
use crate::command::parse::is;
use crate::context::Context;
use crate::context::pools::refused;
use crate::error::CommandError;
use crate::value::pool::PoolDurability;
use crate::value::{Pool, Value};
use tidemark_pool::file::{CatalogueFile, FileFormat};
use tidemark_pool::selector::SelectorKind;
use tidemark_pool::{Catalogue, Mode, NestingError, Rules, SECRET_BYTES, Schedule, Secret, SoldOut};

/// Arguments of `POOL.CREATE`.
struct Wish {
    catalogue: Catalogue,
    selector: SelectorKind,
    durability: PoolDurability,
    first_draw: u64,
}

pub(super) fn create(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let key = args[1];
    if ctx.keys.exists(key) {
        return Err(match ctx.keys.read::<Pool>(key)? {
            Some(_) => {
                CommandError::text("ERR the pool exists: POOL.UPDATE changes it, and POOL.DROP removes it")
            }
            None => CommandError::WrongType,
        });
    }
    let Wish { catalogue, selector, durability, first_draw } = Wish::parse(&args[2..])?;
    let (secret, next_secret) = (random_secret(ctx)?, random_secret(ctx)?);
    let pool = Pool::new(&catalogue, selector, durability, first_draw, secret, next_secret);
    let pool = pool.map_err(|refusal| refused(&refusal))?;
    let mut image = Vec::new();
    pool.encode(&mut image);
    if !ctx.keys.may_log_instead(key.len() + image.len()) {
        return Err(CommandError::TooLong);
    }
    ctx.reply.map(3);
    answer::number(ctx.reply, "items", pool.len() as u64);
    answer::text(ctx.reply, "commitment", &pool.inner().commitment().to_string());
    answer::text(ctx.reply, "next-commitment", &pool.inner().next_commitment().to_string());
    // Log the image, which has the secrets; the command as sent does not.
    ctx.keys.log_instead("pool.load", &[key, &image]);
    ctx.keys.put(key, pool);
    if durability == PoolDurability::Always {
        ctx.keys.make_durable();
    }
    ctx.keys.list_pool(key);
    ctx.keys.changed(key, "pool_create");
    Ok(())
}

/// Returns an unpredictable secret.
pub(super) fn random_secret(ctx: &mut Context<'_, '_>) -> Result<Secret, CommandError> {
    let bytes: [u8; SECRET_BYTES] = ctx.keys.secret().map_err(|error| {
        CommandError::Text(format!("ERR the system gives no random bytes for a secret: {error}").into())
    })?;
    Ok(Secret::new(bytes))
}

pub(super) fn remove(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let durability = ctx.keys.read::<Pool>(args[1])?.map(Pool::durability);
    let is_there = durability.is_some() && ctx.keys.remove(args[1]);
    if is_there {
        ctx.keys.changed(args[1], "del");
    }
    if durability == Some(PoolDurability::Always) {
        ctx.keys.make_durable();
    }
    ctx.reply.integer(i64::from(is_there));
    Ok(())
}

impl Wish {
    /// Parses the arguments of `POOL.CREATE` after the key.
    fn parse(args: &[&[u8]]) -> Result<Self, CommandError> {
        let (mut mode, mut sold_out, mut selector) = (None, None, SelectorKind::default());
        let mut durability = PoolDurability::default();
        let (mut limits, mut guarantees, mut releases) = (Vec::new(), Vec::new(), Vec::new());
        let (mut others, mut leads) = (Vec::new(), Vec::new());
        let (mut first_draw, mut rest) = (0, args);
        while let [word, value, tail @ ..] = rest {
            rest = tail;
            if is(word, "SELECTOR") {
                selector = selector_of(value)?;
            } else if is(word, "DURABILITY") {
                durability = durability_of(value)?;
            } else if is(word, "FROM") {
                first_draw = options::number(value)?;
            } else if is(word, "MODE") {
                mode = Some(mode_of(value)?);
            } else if is(word, "SOLDOUT") && is(value, "FALLBACK") {
                let [id, tail @ ..] = rest else { return Err(CommandError::Syntax) };
                rest = tail;
                sold_out = Some(SoldOut::Fallback(options::id(id)?.into()));
            } else if is(word, "SOLDOUT") {
                sold_out = Some(sold_out_of(value)?);
            } else if is(word, "LIMIT") {
                let (limit, tail) = rules::limit(&args[args.len() - rest.len() - 1..])?;
                limits.push(limit);
                rest = tail;
            } else if is(word, "GUARANTEE") {
                let (guarantee, tail) = rules::guarantee(&args[args.len() - rest.len() - 1..])?;
                guarantees.push(guarantee);
                rest = tail;
            } else if is(word, "SCHEDULE") {
                let (release, tail) = schedule::release(&args[args.len() - rest.len() - 1..])?;
                releases.push(release);
                rest = tail;
            } else if is(word, "TABLE") {
                let (table, tail) = tables::table(&args[args.len() - rest.len() - 1..], &mut leads)?;
                others.push(table);
                rest = tail;
            } else if is(word, "ITEMS") {
                let items = tables::items(&args[args.len() - rest.len() - 1..], &mut leads)?;
                let (mode, sold_out) = (mode.unwrap_or_default(), sold_out.unwrap_or_default());
                if mode == Mode::PerUnit && !others.is_empty() {
                    return Err(wrong(&NestingError::PerUnit));
                }
                let rules = Rules::new(limits, guarantees).map_err(|error| wrong(&error))?;
                let schedule = Schedule::new(releases).map_err(|error| wrong(&error))?;
                let catalogue = Catalogue::with(items, mode, sold_out)
                    .and_then(|made| made.nested(others, &leads)?.ruled(rules)?.scheduled(schedule));
                let catalogue = catalogue.map_err(|error| wrong(&error))?;
                return Ok(Self { catalogue, selector, durability, first_draw });
            } else if let Some(format) = format_of(word) {
                let has_rules = !limits.is_empty()
                    || !guarantees.is_empty()
                    || !releases.is_empty()
                    || !others.is_empty();
                if mode.is_some() || sold_out.is_some() || has_rules || !rest.is_empty() {
                    return Err(CommandError::text(
                        "ERR a catalogue as text says its mode, rules, schedule and tables itself, and stands at the end",
                    ));
                }
                let file = CatalogueFile::parse_served(value, format).map_err(|error| wrong(&error))?;
                return Ok(Self { catalogue: file.catalogue, selector, durability, first_draw });
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Err(CommandError::Syntax)
    }
}

/// Returns the error of a catalogue on one line, as the protocol requires.
fn wrong(error: &dyn std::error::Error) -> CommandError {
    CommandError::Text(format!("ERR {error}").replace(['\r', '\n'], " ").into())
}

fn format_of(word: &[u8]) -> Option<FileFormat> {
    [("JSON", FileFormat::Json), ("YAML", FileFormat::Yaml), ("TOML", FileFormat::Toml)]
        .into_iter()
        .find_map(|(name, format)| is(word, name).then_some(format))
}

fn mode_of(word: &[u8]) -> Result<Mode, CommandError> {
    if is(word, "FIXED") {
        Ok(Mode::FixedOdds)
    } else if is(word, "UNIT") {
        Ok(Mode::PerUnit)
    } else {
        Err(CommandError::text("ERR the mode must be FIXED or UNIT"))
    }
}

fn sold_out_of(word: &[u8]) -> Result<SoldOut, CommandError> {
    if is(word, "RENORMALISE") {
        Ok(SoldOut::Renormalise)
    } else if is(word, "NOPRIZE") {
        Ok(SoldOut::NoPrize)
    } else {
        Err(CommandError::text("ERR SOLDOUT must be RENORMALISE, NOPRIZE or FALLBACK and an item's id"))
    }
}

fn selector_of(word: &[u8]) -> Result<SelectorKind, CommandError> {
    SelectorKind::ALL
        .into_iter()
        .find(|kind| is(word, kind.name()))
        .ok_or_else(|| CommandError::text("ERR the selector must be TREE, ALIAS, FENWICK or PREFIX-SUM"))
}

fn durability_of(word: &[u8]) -> Result<PoolDurability, CommandError> {
    PoolDurability::ALL
        .into_iter()
        .find(|durability| is(word, durability.name()))
        .ok_or_else(|| CommandError::text("ERR the durability must be ALWAYS or SERVER"))
}
