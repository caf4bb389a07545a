//! vLLM's tests of a block and of the list of free blocks.

use espalier_kernels::pool::block::BlockId;
use espalier_kernels::pool::block_pool::Block;
use espalier_kernels::pool::free_queue::FreeQueue;

fn queue(blocks: u32) -> FreeQueue {
    FreeQueue::full(blocks).expect("there is enough memory")
}

fn order(queue: &FreeQueue) -> Vec<u32> {
    queue.iter().map(|block| block.0).collect()
}

#[test]
fn test_kv_cache_block() {
    let block = Block::default();
    assert_eq!((block.holders, block.content), (0, None));
    assert_eq!(BlockId(1).first_cell(16), 0);
    assert_eq!(BlockId(3).first_cell(16), 32);
}

#[test]
fn test_free_kv_cache_block_queue_initialization() {
    assert_eq!(order(&queue(3)), [1, 2, 3]);
    assert_eq!(queue(3).len(), 3);
    let empty = FreeQueue::empty(3).expect("there is enough memory");
    assert!(empty.is_empty());
    assert_eq!(order(&empty), []);
}

#[test]
fn test_free_kv_cache_block_queue_operations() {
    let mut queue = queue(5);
    assert_eq!(queue.pop_front(), Some(BlockId(1)));
    // From the middle, from the tail, from the front.
    assert!(queue.remove(BlockId(3)));
    assert_eq!(order(&queue), [2, 4, 5]);
    assert!(queue.remove(BlockId(5)));
    assert!(queue.remove(BlockId(2)));
    assert_eq!(order(&queue), [4]);
    // A block that is not in the list cannot be removed, and one that is in it is not added again.
    assert!(!queue.remove(BlockId(2)));
    assert!(!queue.remove(BlockId(0)));
    queue.push_back(BlockId(4));
    assert_eq!((order(&queue), queue.len()), (vec![4], 1));
    queue.push_back(BlockId(2));
    queue.push_front(BlockId(5));
    assert_eq!((order(&queue), queue.len()), (vec![5, 4, 2], 3));
    assert_eq!([5, 4, 2].map(|block| queue.contains(BlockId(block))), [true; 3]);
    assert_eq!([1, 3].map(|block| queue.contains(BlockId(block))), [false; 2]);
    let rest = std::iter::from_fn(|| queue.pop_front()).map(|block| block.0);
    assert_eq!(rest.collect::<Vec<_>>(), [5, 4, 2]);
    assert_eq!((queue.pop_front(), queue.len()), (None, 0));
}

#[test]
fn test_free_kv_cache_block_queue_append_n() {
    let mut queue = FreeQueue::empty(6).expect("there is enough memory");
    [1, 4].map(BlockId).into_iter().for_each(|block| queue.push_back(block));
    assert_eq!(order(&queue), [1, 4]);
    [3, 5, 2].map(BlockId).into_iter().for_each(|block| queue.push_back(block));
    assert_eq!((order(&queue), queue.len()), (vec![1, 4, 3, 5, 2], 5));
}

#[test]
fn test_free_kv_cache_block_queue_prepend_n() {
    let mut queue = FreeQueue::empty(6).expect("there is enough memory");
    queue.push_front_all(&[]);
    assert!(queue.is_empty());
    queue.push_front_all(&[BlockId(1), BlockId(2)]);
    queue.push_front_all(&[BlockId(5), BlockId(3)]);
    assert_eq!((order(&queue), queue.len()), (vec![5, 3, 1, 2], 4));
}

#[test]
fn test_free_kv_cache_block_queue_popleft_n() {
    let mut queue = queue(6);
    let taken: Vec<BlockId> = std::iter::from_fn(|| queue.pop_front()).take(4).collect();
    assert_eq!(taken, [1, 2, 3, 4].map(BlockId));
    assert_eq!((order(&queue), queue.len()), (vec![5, 6], 2));
}

#[test]
fn test_free_kv_cache_block_queue_get_all_free_blocks() {
    let mut queue = queue(5);
    assert_eq!(order(&queue), [1, 2, 3, 4, 5]);
    queue.pop_front();
    assert_eq!(order(&queue), [2, 3, 4, 5]);
    queue.remove(BlockId(3));
    assert_eq!(order(&queue), [2, 4, 5]);
    queue.push_back(BlockId(3));
    assert_eq!(order(&queue), [2, 4, 5, 3]);
    queue.refill();
    assert_eq!(order(&queue), [1, 2, 3, 4, 5]);
}
