//! Without its cfg madsim is a thin layer over tokio, and nothing here would be simulated.

#[test]
#[expect(clippy::assertions_on_constants, reason = "the constant is whether the flag was given")]
fn the_simulation_is_compiled_in() {
    assert!(
        cfg!(madsim),
        "this crate was built without `--cfg madsim`. The workspace sets it in .cargo/config.toml; an \
         environment variable RUSTFLAGS or CARGO_ENCODED_RUSTFLAGS, or `target.<triple>.rustflags` in a cargo \
         configuration of your own, replaces that. Unset it, or add `--cfg madsim` to it."
    );
}
