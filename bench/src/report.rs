//! The tables, for a terminal or as Markdown, and the raw figures.

use anyhow::Result;
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::figures::{Measure, Run, Spread, goals, ratio, spread};
use crate::peers::Peer;
use crate::watch::Moment;

const MEASURES: [(Measure, &str, usize); 6] = [
    (Measure::Throughput, "MB/s", 1),
    (Measure::Records, "records/s", 0),
    (Measure::Cpu, "CPU s/GB", 2),
    (Measure::CpuCopying, "while copying", 2),
    (Measure::Memory, "peak MB", 0),
    (Measure::Startup, "first record, s", 1),
];

pub fn tables(arguments: &Arguments, runs: &[Run]) -> String {
    let print = if arguments.markdown { markdown } else { plain };
    let mut text = format!(
        "{} records of {} bytes over {} partitions, {} rounds: median (least to most)\n\n",
        arguments.records, arguments.bytes, arguments.partitions, arguments.rounds
    );
    for table in [figures(arguments, runs), ratios(arguments, runs), goal_table(arguments, runs)] {
        // The head alone says nothing.
        if 1 < table.len() {
            text.push_str(&print(&table));
            text.push('\n');
        }
    }
    text
}

type Table = Vec<Vec<String>>;

fn racers(runs: &[Run]) -> Vec<Peer> {
    Peer::ALL.into_iter().filter(|peer| runs.iter().any(|run| run.peer == *peer)).collect()
}

fn figures(arguments: &Arguments, runs: &[Run]) -> Table {
    let mut table = vec![head("mirror", MEASURES.iter().map(|(_, name, _)| *name))];
    for peer in racers(runs) {
        let mut row = vec![peer.title().to_owned()];
        for (measure, _, digits) in MEASURES {
            let Some(Spread { least, median, most }) = spread(runs, peer, measure, arguments) else {
                continue;
            };
            row.push(format!("{median:.digits$} ({least:.digits$} to {most:.digits$})"));
        }
        table.push(row);
    }
    table
}

fn ratios(arguments: &Arguments, runs: &[Run]) -> Table {
    let shown = [Measure::Throughput, Measure::Cpu, Measure::CpuCopying, Measure::Memory];
    let names = ["throughput", "CPU", "CPU while copying", "memory"];
    let mut table = vec![head("verbatim for one of", names.into_iter())];
    for peer in racers(runs).into_iter().filter(|peer| *peer != Peer::Verbatim) {
        let found: Option<Vec<f64>> =
            shown.into_iter().map(|measure| ratio(runs, peer, measure, arguments)).collect();
        if let Some(found) = found {
            let cells = found.into_iter().map(|ratio| format!("{ratio:.2}"));
            table.push(std::iter::once(peer.title().to_owned()).chain(cells).collect());
        }
    }
    table
}

fn goal_table(arguments: &Arguments, runs: &[Run]) -> Table {
    let mut table = vec![head("goal", ["found", "holds"].into_iter())];
    for goal in goals(runs, arguments) {
        let digits = if goal.found < 100.0 { 2 } else { 0 };
        let holds = if goal.holds { "yes" } else { "NO" };
        table.push(vec![goal.what, format!("{:.digits$}", goal.found), holds.to_owned()]);
    }
    table
}

fn head<'a>(first: &'a str, rest: impl Iterator<Item = &'a str>) -> Vec<String> {
    std::iter::once(first).chain(rest).map(str::to_owned).collect()
}

fn plain(table: &Table) -> String {
    let columns = table.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| table.iter().filter_map(|row| row.get(column)).map(String::len).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    table.iter().map(line).collect()
}

fn markdown(table: &Table) -> String {
    let mut lines: Vec<String> = table.iter().map(|row| format!("| {} |\n", row.join(" | "))).collect();
    let columns = table.first().map_or(0, Vec::len);
    lines.insert(1, format!("|{}\n", "---|".repeat(columns)));
    lines.concat()
}

pub fn json(arguments: &Arguments, runs: &[Run]) -> Result<String> {
    let moment = |moment: Moment| json!({ "seconds": moment.seconds, "cpu_seconds": moment.cpu });
    let run = |run: &Run| -> Value {
        json!({
            "mirror": run.peer.name(),
            "round": run.round + 1,
            "first_record": moment(run.arrival.first),
            "all_written": moment(run.arrival.written),
            "all_visible": moment(run.arrival.visible),
            "peak_memory_kib": run.peak_memory_kib,
        })
    };
    let text = serde_json::to_string_pretty(&json!({
        "records": arguments.records,
        "bytes": arguments.bytes,
        "partitions": arguments.partitions,
        "rounds": arguments.rounds,
        "mm1_streams": arguments.mm1_streams,
        "mm2_tasks": arguments.mm2_tasks,
        "verbatim_settings": arguments.set,
        "runs": runs.iter().map(run).collect::<Vec<_>>(),
    }))?;
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::run;

    #[test]
    fn tables_tell_of_those_who_raced() {
        let arguments = Arguments { rounds: 1, markdown: true, ..Arguments::default() };
        let runs =
            [run(Peer::Verbatim, 0, 20.0, 10.0, 400_000), run(Peer::MirrorMaker1, 0, 50.0, 40.0, 300_000)];
        let text = tables(&arguments, &runs);
        for line in [
            "| verbatim, exactly once | 100.0 (100.0 to 100.0) | 100000 (100000 to 100000) | 5.00 (5.00 to 5.00) |",
            "| MirrorMaker 1 (3.9.1) | 2.50 | 0.25 | 0.23 | 1.33 |",
            "| at least 2.0 times the throughput of MirrorMaker 1 (3.9.1) | 2.50 | yes |",
            "| less than 450 MB of memory in every round | 410 | yes |",
        ] {
            assert!(text.contains(line), "{line} in:\n{text}");
        }
        assert!(!text.contains("MirrorMaker 2"), "{text}");
    }

    #[test]
    fn alone_there_is_nothing_to_compare() {
        let runs = [run(Peer::Verbatim, 0, 20.0, 10.0, 400_000)];
        let text = tables(&Arguments::default(), &runs);
        assert!(!text.contains("verbatim for one of"), "{text}");
        assert!(text.contains("less than 450 MB of memory in every round  410"), "{text}");
    }

    #[test]
    fn the_raw_figures_are_all_there() {
        let text = json(&Arguments::default(), &[run(Peer::Verbatim, 0, 20.0, 10.0, 7)]).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["runs"][0]["all_visible"]["seconds"], 22.0);
        assert_eq!(value["runs"][0]["peak_memory_kib"], 7);
    }
}
