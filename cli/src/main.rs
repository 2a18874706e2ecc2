use std::process::ExitCode;

fn main() -> ExitCode {
    verbatim::main()
}
