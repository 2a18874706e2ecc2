//! The simulator exists only under `--cfg madsim`, which `.cargo/config.toml` sets for the whole workspace.

#[test]
fn the_simulator_is_compiled_in() {
    if !cfg!(madsim) {
        panic!(
            "nothing was simulated: this build lacks `--cfg madsim`. The RUSTFLAGS variable, or rustflags of your own \
             Cargo configuration, replaced those of this workspace's .cargo/config.toml. Unset RUSTFLAGS, or add \
             `--cfg madsim` to it, and run again."
        );
    }
}
