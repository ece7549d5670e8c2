//! The target `circuit_journal` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (tidemark_fuzz::targets::find("circuit_journal").run)(data);
});
