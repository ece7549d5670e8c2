//! The target `resp_request` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (tidemark_fuzz::targets::find("resp_request").run)(data);
});
