//! The order of requests: the only code that compares two of them. The server asks for it through
//! [`espalier_schedule_order`](crate::ffi::scheduler::espalier_schedule_order).

use super::Request;

/// The position of a request in the queue, compared field by field in this order: the smallest goes first. The layout
/// is `struct espalier_schedule_place`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub struct QueuePosition {
    /// Priority.
    pub priority: i32,
    /// Arrival time.
    pub arrival: u64,
    /// Id of its sequence in the pool; 0 if it has none yet.
    pub sequence: i32,
}

impl From<&Request> for QueuePosition {
    fn from(request: &Request) -> QueuePosition {
        QueuePosition { priority: request.priority, arrival: request.arrival, sequence: request.sequence }
    }
}

/// Returns the indexes of the positions in the order of the queue. Equal positions keep their order.
pub fn order(places: &[QueuePosition]) -> Vec<usize> {
    let mut indexes: Vec<usize> = (0..places.len()).collect();
    indexes.sort_by_key(|index| places[*index]);
    indexes
}
