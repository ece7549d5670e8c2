//! The target `log_recovery` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (tidemark_fuzz::targets::find("log_recovery").run)(data);
});
