//! Columns for people: as wide as they need to be, `-` for what is missing.

/// Lays out rows under a header, each column as wide as its widest cell.
pub(crate) fn table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = header.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    let mut line = |cells: [&str; N]| {
        let mut row = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            row.push_str(cell);
            row.push_str(&" ".repeat(width.saturating_sub(cell.chars().count()) + 2));
        }
        text.push_str(row.trim_end());
        text.push('\n');
    };
    line(header);
    for row in rows {
        line(std::array::from_fn(|column| row[column].as_str()));
    }
    text
}

/// A cell for something that may be missing.
pub(crate) fn cell<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".into(), |value| value.to_string())
}

/// `1 partition`, `2 partitions`.
pub(crate) fn count(number: impl TryInto<u64>, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["orders".into(), cell(Some(7))], ["ä".into(), cell::<i64>(None)]];
        assert_eq!(table(["TOPIC", "LAG"], &rows), "TOPIC   LAG\norders  7\nä       -\n");
    }
}
