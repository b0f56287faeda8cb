//! Lists that share one block of memory: each is in order of arrival, and together they hold a fixed number of items.

/// The block. A slot is in one list, or free.
#[derive(Debug)]
pub(super) struct Slots<T> {
    slots: Box<[Slot<T>]>,
    free: List,
    used: usize,
    /// What arrives next is that much younger than all before.
    arrivals: u64,
}

#[derive(Debug)]
struct Slot<T> {
    next: Option<u16>,
    arrival: u64,
    /// Empty while the slot is free.
    item: Option<T>,
}

/// One list: the indices of its first and its last slot.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct List {
    first: Option<u16>,
    last: Option<u16>,
}

impl<T> Slots<T> {
    /// A block for `count` items; all memory it will ever have.
    pub(super) fn new(count: u16) -> Self {
        let mut slots = Self {
            slots: (0..count).map(|_| Slot { next: None, arrival: 0, item: None }).collect(),
            free: List::default(),
            used: 0,
            arrivals: 0,
        };
        let mut free = List::default();
        (0..count).for_each(|index| slots.append(&mut free, index));
        slots.free = free;
        slots
    }

    /// How many items all lists have.
    pub(super) const fn used(&self) -> usize {
        self.used
    }

    /// Puts an item at the end of a list; gives it back when every slot is taken.
    pub(super) fn push(&mut self, list: &mut List, item: T) -> Result<(), T> {
        let mut free = self.free;
        let Some(index) = self.detach_first(&mut free) else { return Err(item) };
        self.free = free;
        let slot = &mut self.slots[usize::from(index)];
        slot.item = Some(item);
        slot.arrival = self.arrivals;
        self.arrivals += 1;
        self.used += 1;
        self.append(list, index);
        Ok(())
    }

    /// Takes the oldest item of a list out.
    pub(super) fn pop(&mut self, list: &mut List) -> Option<T> {
        let index = self.detach_first(list)?;
        Some(self.release(index))
    }

    /// When the oldest item of a list arrived; a smaller number is earlier.
    pub(super) fn oldest(&self, list: List) -> Option<u64> {
        list.first.map(|index| self.slots[usize::from(index)].arrival)
    }

    /// The items of a list with their arrivals, the oldest first.
    pub(super) fn iter(&self, list: List) -> impl Iterator<Item = (u64, &T)> {
        let slot = |index: u16| &self.slots[usize::from(index)];
        let indices = std::iter::successors(list.first, move |index| slot(*index).next);
        indices.filter_map(move |index| Some((slot(index).arrival, slot(index).item.as_ref()?)))
    }

    /// Takes out of a list what is wanted by its arrival, into `taken`. The rest keeps its order.
    pub(super) fn take(&mut self, list: &mut List, wanted: impl Fn(u64) -> bool, taken: &mut Vec<(u64, T)>) {
        let mut kept = List::default();
        while let Some(index) = self.detach_first(list) {
            let arrival = self.slots[usize::from(index)].arrival;
            if wanted(arrival) {
                taken.push((arrival, self.release(index)));
            } else {
                self.append(&mut kept, index);
            }
        }
        *list = kept;
    }

    fn append(&mut self, list: &mut List, index: u16) {
        match list.last {
            Some(last) => self.slots[usize::from(last)].next = Some(index),
            None => list.first = Some(index),
        }
        list.last = Some(index);
    }

    fn detach_first(&mut self, list: &mut List) -> Option<u16> {
        let index = list.first?;
        list.first = self.slots[usize::from(index)].next.take();
        if list.first.is_none() {
            list.last = None;
        }
        Some(index)
    }

    /// Frees a slot that is in no list.
    fn release(&mut self, index: u16) -> T {
        let item = self.slots[usize::from(index)].item.take().expect("a slot of a list holds an item");
        let mut free = self.free;
        self.append(&mut free, index);
        self.free = free;
        self.used -= 1;
        item
    }
}
