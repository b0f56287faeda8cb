//! Dead letters that come around.
//!
//! The strongly connected components of the graph are found in one walk, so the time is linear in its size. Each
//! component is reported once, with its shortest way around from its first queue.

use std::collections::VecDeque;

use super::routes::{Certainty, Graph};
use super::{Finding, Problem};
use crate::text::ShortString;

/// Looks for ways on which messages come back to a queue by themselves. `names` are those of the first nodes.
pub(super) fn check(graph: &Graph, names: &[ShortString], found: &mut Vec<Finding>) {
    let mut reported = vec![false; names.len()];
    for least in [Certainty::Certain, Certainty::Possible] {
        let mut ways = Ways::new(graph, least);
        for component in components(graph, least) {
            let mut queues: Vec<usize> =
                component.iter().copied().filter(|node| *node < names.len()).collect();
            queues.sort_unstable();
            let Some(first) = queues.first().copied() else { continue };
            if queues.iter().any(|queue| reported[*queue]) {
                continue;
            }
            for queue in &queues {
                reported[*queue] = true;
            }
            let queues = ways
                .around(&component, first)
                .into_iter()
                .filter_map(|node| names.get(node).cloned())
                .collect();
            let certain = least == Certainty::Certain;
            found.push(Finding::of_queue(names[first].clone(), Problem::DeadLetterCycle { queues, certain }));
        }
    }
}

/// The components with more than one node, by Tarjan's algorithm with a stack of its own: a chain of thousands of
/// queues is no deep recursion. A queue never leads to itself without an exchange in between.
fn components(graph: &Graph, least: Certainty) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    let nodes = graph.edges.len();
    let (mut number, mut low) = (vec![UNSEEN; nodes], vec![0; nodes]);
    let mut on_stack = vec![false; nodes];
    let (mut stack, mut components, mut count) = (Vec::new(), Vec::new(), 0);
    for start in 0..nodes {
        if number[start] != UNSEEN {
            continue;
        }
        // A node on the way down, and how many of its edges have been followed.
        let mut path = vec![(start, 0)];
        while let Some((node, edge)) = path.last_mut() {
            let node = *node;
            if *edge == 0 && number[node] == UNSEEN {
                (number[node], low[node]) = (count, count);
                count += 1;
                on_stack[node] = true;
                stack.push(node);
            }
            if let Some((to, certainty)) = graph.edges[node].get(*edge).copied() {
                *edge += 1;
                if certainty < least {
                    continue;
                }
                if number[to] == UNSEEN {
                    path.push((to, 0));
                } else if on_stack[to] {
                    low[node] = low[node].min(number[to]);
                }
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                low[*parent] = low[*parent].min(low[node]);
            }
            if low[node] == number[node] {
                let begin = stack.iter().rposition(|member| *member == node).unwrap_or(0);
                let component = stack.split_off(begin);
                for member in &component {
                    on_stack[*member] = false;
                }
                if component.len() > 1 {
                    components.push(component);
                }
            }
        }
    }
    components
}

/// Shortest ways within components.
struct Ways<'a> {
    graph: &'a Graph,
    least: Certainty,
    /// The component that is looked at.
    inside: Vec<bool>,
    came_from: Vec<Option<usize>>,
}

impl<'a> Ways<'a> {
    fn new(graph: &'a Graph, least: Certainty) -> Self {
        let nodes = graph.edges.len();
        Self { graph, least, inside: vec![false; nodes], came_from: vec![None; nodes] }
    }

    /// The shortest way from a node of a component back to itself, without its end.
    fn around(&mut self, component: &[usize], start: usize) -> Vec<usize> {
        self.mark(component, true);
        let last = self.last_before(start);
        self.mark(component, false);
        let mut way: Vec<usize> = std::iter::successors(last, |node| self.came_from[*node]).collect();
        way.reverse();
        way
    }

    fn last_before(&mut self, start: usize) -> Option<usize> {
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for (to, certainty) in &self.graph.edges[node] {
                if *certainty < self.least || !self.inside[*to] {
                    continue;
                }
                if *to == start {
                    return Some(node);
                }
                if self.came_from[*to].is_none() {
                    self.came_from[*to] = Some(node);
                    queue.push_back(*to);
                }
            }
        }
        debug_assert!(false, "every node of a component leads back to itself");
        None
    }

    fn mark(&mut self, component: &[usize], inside: bool) {
        for node in component {
            self.inside[*node] = inside;
        }
    }
}
