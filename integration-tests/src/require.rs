//! Says aloud when tests that need Docker do not run, and fails where they must run.

use std::io::Write;
use std::sync::Mutex;

use crate::docker::docker;
use crate::kafka::{IMAGE_3_9, default_image};

/// First line of every test on real brokers: returns from it when there is no Docker or no Kafka image,
/// having said so past the test harness's capture. With `CI` or `VERBATIM_REQUIRE_KAFKA=1` set it fails instead.
/// From here to its end the test is watched: one that hangs ends the process and shows its stacks.
#[macro_export]
macro_rules! require_kafka {
    () => {
        $crate::require_kafka!($crate::kafka::default_image())
    };
    ($image:expr) => {
        let test = ::std::thread::current().name().unwrap_or("a test").to_owned();
        if !$crate::require::kafka(&$image, &test) {
            return;
        }
        let _watched = $crate::watchdog::watch(&test);
    };
}

/// True when brokers of this image can be started.
///
/// # Panics
/// When they cannot and the environment says that they must.
pub fn kafka(image: &str, test: &str) -> bool {
    let Err(reason) = available(image) else {
        return true;
    };
    let notice = format!("test {test} DID NOT RUN: {reason}");
    assert!(!is_required(), "{notice}");
    // Written directly: what goes through the print macros is shown only for tests that fail.
    writeln!(std::io::stderr(), "{notice}").ok();
    false
}

fn is_required() -> bool {
    let is_set =
        |name: &str| std::env::var(name).is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
    is_set("CI") || is_set("VERBATIM_REQUIRE_KAFKA")
}

fn available(image: &str) -> Result<(), String> {
    // Once an image a process: a pull that fails is slow. The lock also keeps two tests from pulling at once.
    static KNOWN: Mutex<Vec<(String, Result<(), String>)>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((_, answer)) = known.iter().find(|(name, _)| name == image) {
        return answer.clone();
    }
    let answer = look(image);
    known.push((image.to_owned(), answer.clone()));
    answer
}

fn look(image: &str) -> Result<(), String> {
    docker(&["version", "--format", "{{.Server.Version}}"])
        .map_err(|error| format!("Docker does not answer ({error:#})"))?;
    if docker(&["image", "inspect", image]).is_ok() || docker(&["pull", "-q", image]).is_ok() {
        return Ok(());
    }
    let script = if image == default_image() || image == IMAGE_3_9 {
        "; integration-tests/image/build makes it"
    } else {
        ""
    };
    Err(format!("the image {image} is not here and cannot be pulled{script}"))
}
