//! Questions that wait for brokers, several at once.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The result of `work` for each item, in the order of the items, by that many threads.
pub(crate) fn map<T: Sync, R: Send>(threads: usize, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return done };
            done.push((index, work(item)));
        }
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.min(items.len())).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        let slower_at_first = |item: &u64| {
            std::thread::sleep(std::time::Duration::from_micros(100 - item));
            item * 2
        };
        assert_eq!(map(7, &items, slower_at_first), items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert_eq!(map(7, &[], slower_at_first), Vec::<u64>::new());
    }
}
