//! The command line.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use crate::peers::Peer;

pub const USAGE: &str = "\
usage: peers [OPTIONS]

  --records N        records in the topic                      [2000000]
  --bytes N          bytes of a record's value                 [1000]
  --partitions N     partitions of the topic                   [8]
  --rounds N         rounds, each mirror once a round          [5]
  --only NAME,...    of: verbatim, mm1, mm2, mm2-eos           [all]
  --mm1-streams N    consumer threads of MirrorMaker 1         [2]
  --mm2-tasks N      tasks.max of MirrorMaker 2                [2]
  --set KEY=VALUE    for verbatim, in TOML: delivery.lanes=4   (may be repeated)
  --other BINARY     races against another build of verbatim, as `other`
  --other-set KEY=VALUE  for that one; without --other, for this build a second time
  --json FILE        where the raw figures go                  [peers.json]
  --markdown         print the tables as Markdown
  --help";

/// Section, key and value in TOML's own notation.
pub type Setting = (String, String, String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    pub records: u64,
    pub bytes: usize,
    pub partitions: i32,
    pub rounds: usize,
    pub only: Vec<Peer>,
    pub mm1_streams: u32,
    pub mm2_tasks: u32,
    pub set: Vec<Setting>,
    /// Another build of this mirror, and what is set for it.
    pub other: Option<PathBuf>,
    pub other_set: Vec<Setting>,
    pub json: PathBuf,
    pub markdown: bool,
}

impl Default for Arguments {
    fn default() -> Arguments {
        Arguments {
            records: 2_000_000,
            bytes: 1000,
            partitions: 8,
            rounds: 5,
            only: Peer::ALL.into_iter().filter(|peer| *peer != Peer::Other).collect(),
            mm1_streams: 2,
            mm2_tasks: 2,
            set: Vec::new(),
            other: None,
            other_set: Vec::new(),
            json: "peers.json".into(),
            markdown: false,
        }
    }
}

impl Arguments {
    /// `None` when help was asked for.
    pub fn parse(words: impl Iterator<Item = String>) -> Result<Option<Arguments>> {
        let mut arguments = Arguments::default();
        // The name of the race may be said, so that `cargo run -p bench -- peers` works too.
        let mut words = words.enumerate().filter(|(place, word)| *place != 0 || word != "peers");
        while let Some((_, word)) = words.next() {
            let mut value = || words.next().map(|(_, value)| value).with_context(|| format!("{word} what?"));
            match word.as_str() {
                "--records" => arguments.records = number(&value()?)?,
                "--bytes" => arguments.bytes = number(&value()?)?,
                "--partitions" => arguments.partitions = number(&value()?)?,
                "--rounds" => arguments.rounds = number(&value()?)?,
                "--mm1-streams" => arguments.mm1_streams = number(&value()?)?,
                "--mm2-tasks" => arguments.mm2_tasks = number(&value()?)?,
                "--only" => arguments.only = peers(&value()?)?,
                "--set" => arguments.set.push(setting(&value()?)?),
                "--other" => arguments.other = Some(value()?.into()),
                "--other-set" => arguments.other_set.push(setting(&value()?)?),
                "--json" => arguments.json = value()?.into(),
                "--markdown" => arguments.markdown = true,
                "--help" | "-h" => return Ok(None),
                _ => bail!("{word} is not an option"),
            }
        }
        let is_other = arguments.other.is_some() || !arguments.other_set.is_empty();
        if is_other && !arguments.only.contains(&Peer::Other) {
            arguments.only.push(Peer::Other);
        }
        let partitions = u64::try_from(arguments.partitions).unwrap_or(0);
        ensure!(0 < partitions && 0 < arguments.rounds && 0 < arguments.bytes, "nothing to race over");
        ensure!(partitions <= arguments.records, "each partition needs a record");
        Ok(Some(arguments))
    }

    /// What is to be copied, in bytes: the values alone.
    pub fn volume(&self) -> f64 {
        self.records as f64 * self.bytes as f64
    }
}

fn number<N: std::str::FromStr>(word: &str) -> Result<N> {
    word.replace('_', "").parse().ok().with_context(|| format!("{word} is not a number that fits"))
}

fn peers(words: &str) -> Result<Vec<Peer>> {
    words.split(',').map(|name| Peer::named(name).with_context(|| format!("{name} does not race"))).collect()
}

fn setting(word: &str) -> Result<Setting> {
    let (name, value) = word.split_once('=').with_context(|| format!("{word} is not KEY=VALUE"))?;
    let (section, key) = name.split_once('.').unwrap_or(("", name));
    Ok((section.to_owned(), key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Option<Arguments>> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn what_is_not_given_is_the_race_of_the_issue() {
        assert_eq!(parse("").unwrap().unwrap(), Arguments::default());
        assert_eq!(parse("peers").unwrap().unwrap(), Arguments::default());
    }

    #[test]
    fn all_is_taken() {
        let line = "peers --records 500_000 --only mm1,verbatim --set delivery.lanes=4 \
                    --set target.linger.ms=\"9\" --markdown";
        let found = parse(line).unwrap().unwrap();
        let set = |section: &str, key: &str, value: &str| (section.into(), key.into(), value.into());
        let expected = Arguments {
            records: 500_000,
            only: vec![Peer::MirrorMaker1, Peer::Verbatim],
            set: vec![set("delivery", "lanes", "4"), set("target", "linger.ms", "\"9\"")],
            markdown: true,
            ..Arguments::default()
        };
        assert_eq!(found, expected);
        assert_eq!(parse("--help").unwrap(), None);
        let found = parse("--only verbatim --other-set delivery.lanes=4").unwrap().unwrap();
        assert_eq!(found.only, [Peer::Verbatim, Peer::Other]);
    }

    #[test]
    fn the_rest_is_refused() {
        for line in ["--record 5", "--records", "--records x", "--only mm3", "--set x", "--partitions 0"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
