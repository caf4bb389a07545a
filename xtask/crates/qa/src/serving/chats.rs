//! PURE: a fixed set of chats and long prompts in natural language, for checks on real weights.

use serde_json::{Value, json};

/// System prompts of one to two blocks: chats with the same one share its KV.
const SYSTEMS: [&str; 5] = [
    "You are the assistant of a small plant nursery. You answer questions about trees, soil, pruning and the seasons \
     for people who have never gardened before. Use short sentences and everyday words. If a question is about \
     something else, answer it anyway, politely and in one or two sentences, and then ask whether you can help with \
     the garden. Never recommend chemicals where a pair of scissors or some patience does the same job.",
    "You are a careful reference librarian. You answer with facts that can be looked up, give a year or a place \
     where there is one, and say so plainly when you are not sure. You do not make up titles of books. Answers are \
     one paragraph long, without lists, and end with the name of a subject under which the reader will find more on \
     the shelf. You are friendly, brief, and never in a hurry.",
    "You are a tutor for children of ten years. You explain one idea at a time, with an example from the kitchen, \
     the playground or the weather. You never say that something is easy. When a question has a number in it, you \
     show each step of the calculation on a line of its own. When it has none, you begin with a picture that the \
     child can imagine, and only then give the proper word for it.",
    "You are the support agent of a company that sells bicycles. Orders arrive within five working days, a return is \
     free within thirty days, and brakes are checked without charge in every shop. You greet the customer once, answer \
     the question that was asked, and offer one next step. You do not promise refunds. If you cannot help, you say \
     which colleague can, and that this takes no longer than one day.",
    "You are an experienced programmer who reviews the work of others. You read the question twice, name the most \
     likely cause first, and show the smallest piece of code that proves it. You prefer a plain loop to a clever \
     expression and a clear name to a comment. You warn about data that may be lost, about input that nobody checks, \
     and about time that is measured on a busy machine. You never apologize.",
];

/// Questions; each is combined with each system prompt.
const QUESTIONS: [&str; 40] = [
    "What is an espalier?",
    "Why do leaves fall in autumn?",
    "How do I keep a small tree alive on a balcony?",
    "What is the difference between a lake and a sea?",
    "Who wrote the first dictionary of the English language?",
    "Explain how a rainbow is made.",
    "How many seconds are in a day and a half?",
    "My new bicycle makes a noise when I brake. What should I do?",
    "Can I return a helmet that does not fit?",
    "Why is the sky blue at noon and red in the evening?",
    "Write one sentence about the moon.",
    "What does a compiler do?",
    "Why does my loop never end?",
    "How is paper made from wood?",
    "What should I pack for a weekend in the mountains?",
    "Name three rivers in Europe.",
    "How do bees find their way home?",
    "What is the capital of Australia, and why is it not Sydney?",
    "Is it better to water plants in the morning or in the evening?",
    "How does a refrigerator stay cold?",
    "What is the use of a hash table?",
    "Tell me something about the history of the bicycle.",
    "How can I remember names better?",
    "What is a prime number?",
    "Why do cats purr?",
    "How long does it take to learn to swim?",
    "What happens to water when it freezes?",
    "Suggest a name for a boat.",
    "Why is bread soft inside and hard outside?",
    "How do I sharpen a kitchen knife?",
    "What is the largest animal that ever lived?",
    "Should I use tabs or spaces?",
    "How far away is the sun?",
    "What do earthworms do for the soil?",
    "My chain keeps falling off. Is that dangerous?",
    "How does a library sort its books?",
    "What is a quarter of three hundred and twenty?",
    "Why do we have leap years?",
    "How do I write a letter to thank someone?",
    "What makes a good question?",
];

/// Questions at the end of long prompts.
const TASKS: [&str; 4] = [
    "Summarize the text above in one sentence.",
    "What is the text above about?",
    "List three words that are important in the text above.",
    "Who would want to read the text above, and why?",
];

/// Characters of a long prompt: up to 1,200 tokens, which fit into the smallest pool together with their answer.
const LONG: usize = 3400;

/// Total number of chats.
pub const CHATS: usize = SYSTEMS.len() * QUESTIONS.len();

/// Total number of long prompts.
pub const LONG_PROMPTS: usize = TASKS.len();

/// Returns `count` of the chats, spread over all system prompts and questions.
pub fn chats(count: usize) -> Vec<String> {
    let count = count.min(CHATS);
    let chat = |index: usize| {
        // Chats with the same system prompt are adjacent, so that a server with one slot also benefits from its
        // cache.
        let (system, question) = (index / QUESTIONS.len(), index % QUESTIONS.len());
        in_template(SYSTEMS[system], QUESTIONS[(question + system * 7) % QUESTIONS.len()])
    };
    (0..count).map(|at| chat(at * CHATS / count)).collect()
}

/// Returns `count` long prompts made from `text`.
pub fn long_prompts(text: &str, count: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let part = |at: usize| {
        let start = at * LONG % letters.len().saturating_sub(LONG).max(1);
        let part: String = letters.iter().skip(start).take(LONG).collect();
        in_template("You are a helpful assistant.", &format!("{part}\n\n{}", TASKS[at]))
    };
    (0..count.min(LONG_PROMPTS)).map(part).collect()
}

/// Applies ChatML, the template that SmolLM2 was trained with.
fn in_template(system: &str, question: &str) -> String {
    format!(
        "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    )
}

/// Number of top tokens requested for each token of an answer: enough to include the other server's token.
const LIKELIEST: usize = 16;

/// Returns a request for a greedy answer of exactly `predict` tokens, with log probabilities.
pub fn request(prompt: &str, predict: usize) -> Value {
    json!({ "prompt": prompt, "n_predict": predict, "temperature": 0, "n_probs": LIKELIEST, "return_tokens": true,
            "ignore_eos": true })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_part_of_the_chats_has_every_system_prompt_and_many_questions() {
        assert_eq!(CHATS, 200);
        assert_eq!(chats(CHATS).iter().collect::<BTreeSet<_>>().len(), CHATS);
        let some = chats(48);
        assert_eq!(some.iter().collect::<BTreeSet<_>>().len(), 48);
        assert!(SYSTEMS.iter().all(|system| some.iter().any(|chat| chat.contains(system))));
        let asked = QUESTIONS.iter().filter(|question| some.iter().any(|chat| chat.contains(*question)));
        assert!(asked.count() > 20);
    }

    #[test]
    fn long_prompts_differ_and_end_with_a_task() {
        let text: String = (0..4000).map(|word| format!("word{word} ")).collect();
        let prompts = long_prompts(&text, LONG_PROMPTS);
        assert_eq!(prompts.iter().collect::<BTreeSet<_>>().len(), LONG_PROMPTS);
        assert!(prompts.iter().all(|prompt| prompt.chars().count() > LONG));
        assert!(prompts[1].contains(TASKS[1]) && long_prompts("short", 9).len() == LONG_PROMPTS);
    }
}
