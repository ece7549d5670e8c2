//! The texts of errors, which are those of Redis's time series where it has them.

use crate::command::parse::shown;
use crate::error::CommandError;
use tidemark_series::{AppendError, ViewError, take_refusing_block};

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)+) => {
        $($(#[$doc])* pub(super) const $name: CommandError = CommandError::text($text);)+
    };
}

texts! {
    NO_SERIES = "ERR TSDB: the key does not exist";
    NOT_A_SERIES = "ERR TSDB: the key is not a TSDB key";
    KEY_EXISTS = "ERR TSDB: key already exists";
    INVALID_VALUE = "ERR TSDB: invalid value";
    INVALID_TIMESTAMP = "ERR TSDB: invalid timestamp";
    NEGATIVE_TIMESTAMP = "ERR TSDB: invalid timestamp, must be a nonnegative integer";
    RETENTION = "ERR TSDB: Couldn't parse RETENTION";
    CHUNK_SIZE = "ERR TSDB: Couldn't parse CHUNK_SIZE";
    CHUNK_SIZE_RANGE = "ERR TSDB: CHUNK_SIZE value must be a multiple of 8 in the range [48 .. 1048576]";
    ENCODING = "ERR TSDB: unknown ENCODING parameter";
    POLICY_MISSING = "ERR TSDB: Couldn't parse DUPLICATE_POLICY";
    POLICY_UNKNOWN = "ERR TSDB: Unknown DUPLICATE_POLICY";
    IGNORE = "ERR TSDB: Couldn't parse IGNORE";
    IGNORE_NEGATIVE = "ERR TSDB: IGNORE arguments cannot be negative";
    LABELS = "ERR TSDB: Couldn't parse LABELS";
    UNIT = "ERR UNIT must be ns, us, ms or s";
    UNIT_FIXED = "ERR the UNIT of a series is fixed when it is created";
    TOO_OLD = "ERR TSDB: Timestamp is older than retention";
    DUPLICATE = "ERR TSDB: Error at upsert, update is not supported when DUPLICATE_POLICY is set to BLOCK mode, or either current or new value is NaN and DUPLICATE_POLICY is MAX/MIN/SUM";
    SUM_TOO_LARGE = "ERR TSDB: the sum of the two values is out of range";
    INCREMENT = "ERR TSDB: invalid increase/decrease value";
    INCREMENT_OF_NAN = "ERR TSDB: cannot increment/decrement NaN value";
    INCREMENT_TOO_OLD = "ERR TSDB: timestamp must be equal to or higher than the maximum existing timestamp";
    BATCH_BYTES = "ERR times and values must each have 8 bytes for a point, and as many points, at least one";
    /// The number is the most points of a batch.
    BATCH_LENGTH = "ERR a batch has at most 65536 points; send several";
    BATCH_TIMES = "ERR times must rise and be nonnegative";
    FROM = "ERR TSDB: wrong fromTimestamp";
    TO = "ERR TSDB: wrong toTimestamp";
    RULE_ALIGN = "ERR TSDB: Couldn't parse alignTimestamp";
    RULE_TO_ITSELF = "ERR TSDB: the source key and destination key should be different";
    RULE_SECOND_SOURCE = "ERR TSDB: the destination key already has a src rule";
    RULE_UNITS = "ERR the source and the destination of a rule must have the same UNIT";
    RULE_CIRCLE = "ERR the rule would close a circle: the source is compacted from the destination";
    /// The number is [`super::ruling`]'s.
    RULE_CHAIN = "ERR more than 16 rules would follow one another";
    /// The number is [`super::ruling`]'s.
    RULE_CONNECTED = "ERR rules would connect more than 1024 series";
    NO_RULE = "ERR TSDB: compaction rule does not exist";
    BEYOND_RETENTION = "ERR TSDB: When a series has compactions, deleting samples or compaction buckets beyond the series retention period is not possible";
    MAX_COUNT = "ERR TSDB: MAX_COUNT must be a positive integer";
    BLOCK_DURATION = "ERR TSDB: BLOCK milliseconds must be a non-negative integer";
    BLOCK_COUNT = "ERR TSDB: BLOCK min_count must be a positive integer";
    BLOCK_COUNT_RANGE = "ERR TSDB: BLOCK min_count must be <= MAX_COUNT";
    BLOCK_FORBIDDEN = "ERR TSDB: blocking TS.READ (with BLOCK) is not allowed inside MULTI, EVAL, or a deny-blocking context";
    RELATIVE_UNIT = "ERR TSDB: a time relative to now needs series of several keys to have the unit ms; give a number";
    NOT_LATEST = "ERR TSDB: wrong 3rd argument";
    COUNT_MISSING = "ERR TSDB: COUNT argument is missing";
    COUNT = "ERR TSDB: Couldn't parse COUNT";
    COUNT_RANGE = "ERR TSDB: Invalid COUNT value";
    TIMES_MISSING = "ERR TSDB: FILTER_BY_TS one or more arguments are missing";
    VALUES_MISSING = "ERR TSDB: FILTER_BY_VALUE one or more arguments are missing";
    LOWEST = "ERR TSDB: Couldn't parse MIN";
    HIGHEST = "ERR TSDB: Couldn't parse MAX";
    AGGREGATION = "ERR TSDB: Couldn't parse AGGREGATION";
    AGGREGATION_UNKNOWN = "ERR TSDB: Unknown aggregation type";
    QUANTILE = "ERR TSDB: a quantile needs its share, from 0 to 1, such as quantile:0.99";
    BUCKET = "ERR TSDB: bucketDuration must be greater than zero";
    ALIGN_ALONE = "ERR TSDB: ALIGN parameter can only be used with AGGREGATION";
    ALIGN = "ERR TSDB: unknown ALIGN parameter";
    ALIGN_START = "ERR TSDB: start alignment can only be used with explicit start timestamp";
    ALIGN_END = "ERR TSDB: end alignment can only be used with explicit end timestamp";
    STAMP = "ERR TSDB: unknown BUCKETTIMESTAMP parameter";
    STAMP_PLACE = "ERR TSDB: BUCKETTIMESTAMP flag should be the 3rd or 4th flag after AGGREGATION flag";
    EMPTY_PLACE = "ERR TSDB: EMPTY flag should be the 3rd or 5th flag after AGGREGATION flag";
    BOTH_LABELS = "ERR TSDB: cannot accept WITHLABELS and SELECT_LABELS together";
    NO_SELECTED = "ERR TSDB: SELECT_LABELS should have at least 1 parameter";
    NO_FILTER = "ERR TSDB: missing FILTER argument";
    NO_FILTERS = "ERR TSDB: missing labels for filter argument";
    FILTER = "ERR TSDB: failed parsing labels";
    /// The number is [`super::pattern::PATTERNS_MAX`].
    TOO_MANY_PATTERNS = "ERR TSDB: a command has at most 16 regular expressions in its filters";
    NO_MATCHER = "ERR TSDB: please provide at least one matcher";
    GROUP_PLACE = "ERR TSDB: GROUPBY should always come after filter";
    REDUCER = "ERR TSDB: Invalid reducer type";
    GROUP_OF_SEVERAL = "ERR TSDB: GROUPBY is not allowed with several aggregators";
    EXCLUDE_OF_GROUPS = "ERR TSDB: EXCLUDEEMPTY is not allowed with GROUPBY";
    NUMKEYS = "ERR TSDB: numkeys must be a positive integer";
    AGGREGATIONS_OF_KEYS = "ERR TSDB: the number of AGGREGATION arguments must be equal to numkeys";
    SUBTYPE = "ERR TSDB: unknown subtype, must be one of LABELS|VALUES";
    NOT_FILTER = "ERR TSDB: unknown argument, expected FILTER";
    FILTER_EMPTY = "ERR TSDB: FILTER given with no filter expressions";
    /// The number is [`super::range::VALUES_MAX`].
    TOO_MANY_ROWS =
        "ERR the answer has more than 4194304 values; give a longer bucket or a shorter range";
}

/// Error for a word that is no option of the command.
pub(super) fn unknown_option(word: &[u8]) -> CommandError {
    CommandError::Text(format!("ERR syntax error: {} is no option of the command", shown(word)).into())
}

/// Error for a regular expression of a filter.
pub(super) fn pattern(reason: &str) -> CommandError {
    CommandError::Text(format!("ERR TSDB: wrong regular expression in a filter: {reason}").into())
}

/// Error for a point that a series refuses.
pub(super) fn refused(error: AppendError) -> CommandError {
    match error {
        AppendError::TooOld { .. } => TOO_OLD,
        AppendError::Overflow(_) => SUM_TOO_LARGE,
        AppendError::Unreadable(_) => {
            let block = take_refusing_block().expect("the block is kept with the error");
            CommandError::unreadable(block)
        }
        AppendError::Duplicate(_) | AppendError::NotRising => DUPLICATE,
    }
}

/// Error for a point of a batch that a series refuses.
pub(super) fn refused_at(at: usize, time: i64, error: AppendError) -> CommandError {
    let error = refused(error);
    if matches!(error, CommandError::UnreadableBlock(_)) {
        return error;
    }
    let why = error.to_string();
    let why = why.strip_prefix("ERR TSDB: ").unwrap_or(&why);
    CommandError::Text(format!("ERR TSDB: point {} at {time}: {why}", at + 1).into())
}

/// Error for a number of arguments that the row's arity allows and the command does not.
pub(super) fn arity(args: &[&[u8]]) -> CommandError {
    CommandError::Arity(String::from_utf8_lossy(args[0]).to_ascii_lowercase().into())
}

/// A read through a lens that is beyond the limits of its transforms.
pub(super) fn not_seen(error: ViewError) -> CommandError {
    CommandError::Text(format!("ERR LENS: {error}; read a shorter range").into())
}
