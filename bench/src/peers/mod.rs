//! Those who race. Each is given the same topic and the same two brokers, and a number that no other run has.

mod mirror_maker_1;
mod mirror_maker_2;
mod verbatim;

use anyhow::Result;
use integration_tests::admin::Admin;
use integration_tests::mirror::binary;

use crate::arguments::Arguments;
use crate::process::Process;
use crate::watch::Ending;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    Verbatim,
    MirrorMaker1,
    MirrorMaker2,
    /// With `exactly.once.source.support`.
    MirrorMaker2ExactlyOnce,
    /// Another build of this mirror, or the same with other settings.
    Other,
}

/// What is to be copied, between what.
#[derive(Debug, Clone)]
pub struct Course {
    pub source: String,
    pub target: String,
    pub topic: String,
}

/// A mirror on its way.
pub struct Runner {
    pub process: Process,
    /// Where its copies go.
    pub target_topic: String,
}

impl Peer {
    pub const ALL: [Peer; 5] =
        [Peer::Verbatim, Peer::MirrorMaker1, Peer::MirrorMaker2, Peer::MirrorMaker2ExactlyOnce, Peer::Other];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Peer::Verbatim => "verbatim",
            Peer::MirrorMaker1 => "mm1",
            Peer::MirrorMaker2 => "mm2",
            Peer::MirrorMaker2ExactlyOnce => "mm2-eos",
            Peer::Other => "other",
        }
    }

    /// The name in a table.
    pub fn title(self) -> &'static str {
        match self {
            Peer::Verbatim => "verbatim, exactly once",
            Peer::MirrorMaker1 => "MirrorMaker 1 (3.9.1)",
            Peer::MirrorMaker2 => "MirrorMaker 2 (4.1.0)",
            Peer::MirrorMaker2ExactlyOnce => "MirrorMaker 2, exactly once",
            Peer::Other => "the other verbatim",
        }
    }

    pub fn named(name: &str) -> Option<Peer> {
        Peer::ALL.into_iter().find(|peer| peer.name() == name)
    }

    /// Fetches or builds what it needs, so that no run has to.
    pub fn prepare(self) -> Result<()> {
        match self {
            Peer::Verbatim | Peer::Other => {
                binary();
            }
            Peer::MirrorMaker1 => drop(crate::java::MIRROR_MAKER_1.fetch()?),
            Peer::MirrorMaker2 | Peer::MirrorMaker2ExactlyOnce => {
                drop(crate::java::MIRROR_MAKER_2.fetch()?);
            }
        }
        Ok(())
    }

    /// How its copy ends. MirrorMaker 1 deals records out anew, by their keys.
    pub fn ending(self) -> Ending {
        match self {
            Peer::MirrorMaker1 | Peer::MirrorMaker2 => Ending::Count,
            Peer::Verbatim | Peer::Other | Peer::MirrorMaker2ExactlyOnce => Ending::LastRecords,
        }
    }

    pub fn start(self, arguments: &Arguments, course: &Course, run: usize) -> Result<Runner> {
        match self {
            Peer::Verbatim => verbatim::start(binary(), &arguments.set, course, run),
            Peer::Other => {
                let other = arguments.other.as_deref().unwrap_or(binary());
                verbatim::start(other, &arguments.other_set, course, run)
            }
            Peer::MirrorMaker1 => mirror_maker_1::start(arguments, course, run),
            Peer::MirrorMaker2 => mirror_maker_2::start(arguments, course, run, false),
            Peer::MirrorMaker2ExactlyOnce => mirror_maker_2::start(arguments, course, run, true),
        }
    }
}

/// Removes what a run has left on both brokers, its bookkeeping too.
pub fn clean_up(course: &Course) -> Result<()> {
    for (bootstrap, keep) in [(&course.source, Some(course.topic.as_str())), (&course.target, None)] {
        let admin = Admin::connect(bootstrap)?;
        for topic in admin.topics()? {
            if keep != Some(topic.as_str()) && !topic.starts_with("__") {
                admin.delete_topic(&topic)?;
            }
        }
    }
    Ok(())
}
