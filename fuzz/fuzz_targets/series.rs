//! The target `series` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (tidemark_fuzz::targets::find("series").run)(data);
});
