//! The target `dumps` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (tidemark_fuzz::targets::find("dumps").run)(data);
});
