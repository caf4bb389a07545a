//! The header of a GGUF file: magic, metadata, tensor table.

use super::tensors::Tensor;

const ALIGNMENT: u64 = 32;

pub(super) fn padding_after(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGNMENT) - bytes
}

pub(super) fn encode_header(metadata: &Metadata, tensors: &[Tensor]) -> Vec<u8> {
    let mut header = b"GGUF".to_vec();
    header.extend(3u32.to_le_bytes());
    header.extend((tensors.len() as u64).to_le_bytes());
    header.extend(metadata.count.to_le_bytes());
    header.extend(&metadata.bytes);
    encode_tensor_table(&mut header, tensors);
    let padding = padding_after(header.len() as u64);
    header.resize(header.len() + padding as usize, 0);
    header
}

fn encode_tensor_table(header: &mut Vec<u8>, tensors: &[Tensor]) {
    let mut offset = 0u64;
    for tensor in tensors {
        encode_string(header, &tensor.name);
        header.extend((tensor.dims.len() as u32).to_le_bytes());
        tensor.dims.iter().for_each(|dim| header.extend(dim.to_le_bytes()));
        header.extend(tensor.weights.ggml_number().to_le_bytes());
        header.extend(offset.to_le_bytes());
        offset += tensor.bytes() + padding_after(tensor.bytes());
    }
}

fn encode_string(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

/// Encoded key-value pairs, and their count.
#[derive(Default)]
pub(super) struct Metadata {
    architecture: &'static str,
    count: u64,
    bytes: Vec<u8>,
}

impl Metadata {
    /// Metadata that begins with the architecture.
    pub(super) fn new(architecture: &'static str) -> Metadata {
        let mut metadata = Metadata { architecture, ..Metadata::default() };
        metadata.text("general.architecture", architecture);
        metadata
    }

    /// The full name of a key that belongs to the architecture.
    pub(super) fn own_key(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    pub(super) fn dimension(&mut self, key: &str, value: u64) {
        let key = self.own_key(key);
        self.number(&key, value);
    }

    pub(super) fn number(&mut self, key: &str, value: u64) {
        self.pair(key, 4, &(value as u32).to_le_bytes());
    }

    pub(super) fn float(&mut self, key: &str, value: f32) {
        self.pair(key, 6, &value.to_le_bytes());
    }

    pub(super) fn boolean(&mut self, key: &str, value: bool) {
        self.pair(key, 7, &[value.into()]);
    }

    pub(super) fn text(&mut self, key: &str, value: &str) {
        let mut bytes = Vec::new();
        encode_string(&mut bytes, value);
        self.pair(key, 8, &bytes);
    }

    pub(super) fn integers(&mut self, key: &str, values: &[i32]) {
        let items: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.array(key, 5, values.len(), &items);
    }

    pub(super) fn floats(&mut self, key: &str, values: &[f32]) {
        let items: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.array(key, 6, values.len(), &items);
    }

    pub(super) fn texts(&mut self, key: &str, values: &[String]) {
        let mut items = Vec::new();
        values.iter().for_each(|value| encode_string(&mut items, value));
        self.array(key, 8, values.len(), &items);
    }

    fn array(&mut self, key: &str, item_type: u32, count: usize, items: &[u8]) {
        let head = [&item_type.to_le_bytes()[..], &(count as u64).to_le_bytes()[..]].concat();
        self.pair(key, 9, &[&head[..], items].concat());
    }

    fn pair(&mut self, key: &str, value_type: u32, value: &[u8]) {
        self.count += 1;
        encode_string(&mut self.bytes, key);
        self.bytes.extend(value_type.to_le_bytes());
        self.bytes.extend(value);
    }
}

#[cfg(test)]
impl Metadata {
    /// Whether the pairs that `push` adds are a part of these, beside each other.
    pub(super) fn has(&self, push: impl FnOnce(&mut Metadata)) -> bool {
        let mut wanted = Metadata { architecture: self.architecture, ..Metadata::default() };
        push(&mut wanted);
        self.bytes.windows(wanted.bytes.len()).any(|part| part == wanted.bytes)
    }

    /// Whether there is a pair with this key of the architecture.
    pub(super) fn has_key(&self, key: &str) -> bool {
        let mut wanted = Vec::new();
        encode_string(&mut wanted, &self.own_key(key));
        self.bytes.windows(wanted.len()).any(|part| part == wanted)
    }
}
