//! Kafka's own mirrors: their jars come from Maven once, and run as Kafka's start scripts run them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// What `kafka-run-class.sh` gives every program.
const JVM_OPTIONS: &[&str] = &[
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
];

/// A set of jars, as one of the files in `jars/` names it.
#[derive(Debug, Clone, Copy)]
pub struct Jars {
    pub name: &'static str,
    project: &'static str,
}

pub const MIRROR_MAKER_1: Jars =
    Jars { name: "mirror-maker-1", project: include_str!("../jars/mirror-maker-1.xml") };
pub const MIRROR_MAKER_2: Jars =
    Jars { name: "mirror-maker-2", project: include_str!("../jars/mirror-maker-2.xml") };

impl Jars {
    /// Fetches them unless they are there; the directory that holds them.
    pub fn fetch(self) -> Result<PathBuf> {
        let directory = cache().join(self.name);
        let (libs, project, complete) =
            (directory.join("libs"), directory.join("pom.xml"), directory.join("complete"));
        // What is there was fetched by this very project file.
        if std::fs::read_to_string(&complete).is_ok_and(|text| text == self.project) {
            return Ok(libs);
        }
        eprintln!("fetching the jars of {}", self.name);
        std::fs::remove_dir_all(&directory).ok();
        std::fs::create_dir_all(&directory)?;
        std::fs::write(&project, self.project)?;
        let output = Command::new("mvn")
            .args(["-q", "-B", "-f"])
            .arg(&project)
            .arg("dependency:copy-dependencies")
            .arg(format!("-DoutputDirectory={}", libs.display()))
            .output()
            .context("Maven (mvn) is needed to fetch Kafka's jars")?;
        let said = [output.stdout, output.stderr].concat();
        ensure!(output.status.success(), "Maven failed:\n{}", String::from_utf8_lossy(&said));
        std::fs::write(&complete, self.project)?;
        Ok(libs)
    }

    /// `java` with the heap that this program's start script gives it.
    pub fn command(self, heap: &[&str], class: &str) -> Result<Command> {
        let libs = self.fetch()?;
        let mut command = Command::new("java");
        command.args(heap).args(JVM_OPTIONS);
        command.args([
            "-Dlog4j.configuration=file:log4j.properties",
            "-Dlog4j2.configurationFile=log4j2.properties",
            "-cp",
        ]);
        command.arg(format!("{}/*", libs.display())).arg(class);
        Ok(command)
    }
}

/// The configuration of both loggers, for a mirror's directory.
pub const LOGGING: [(&str, &str); 2] = [
    ("log4j.properties", include_str!("../jars/log4j.properties")),
    ("log4j2.properties", include_str!("../jars/log4j2.properties")),
];

fn cache() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace above this crate");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from);
    target.join("peers")
}
