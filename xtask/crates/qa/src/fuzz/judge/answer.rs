//! Oracle for complete answers: the reference's tokens, or its text if the API reports no tokens.

use super::completion::{Choice, Completion};
use super::{Finding, Played, Reference, finding};
use crate::fuzz::plan::actions::Generate;
use crate::serving::verdict::{self, Answer, AnswerVerdict};

/// Tolerance of an embedding: of the difference of its cosine similarity from 1, and of any element.
const VECTOR_TOLERANCE: f64 = 2e-3;

/// Checks that each choice matches the reference.
pub fn judge(
    played: &Played,
    generate: &Generate,
    completion: &Completion,
    reference: &Reference,
    tolerance: f64,
) -> Vec<Finding> {
    let Some(answer) = &reference.answer else { return Vec::new() };
    let expected = Expected { answer: answer.first(generate.predict), pieces: &reference.pieces, tolerance };
    if completion.choices.len() != generate.choices {
        let came = format!("{} answers", completion.choices.len());
        return vec![finding("answer", played, format!("{} answers", generate.choices), came)];
    }
    let wrong = completion.choices.iter().filter_map(|choice| expected.difference_to(choice));
    wrong
        .map(|came| finding("answer", played, "the tokens of the same server unpaged, asked alone", came))
        .collect()
}

struct Expected<'a> {
    answer: Answer,
    pieces: &'a [Vec<u8>],
    tolerance: f64,
}

impl Expected<'_> {
    fn difference_to(&self, choice: &Choice) -> Option<String> {
        match &choice.tokens {
            Some(tokens) => {
                self.wrong_token(tokens).or_else(|| self.wrong_likeliest(choice.answer.as_ref()?))
            }
            None => self.wrong_text(&choice.text),
        }
    }

    fn wrong_token(&self, tokens: &[i64]) -> Option<String> {
        match verdict::judge(&self.answer, tokens, self.tolerance) {
            AnswerVerdict::Same | AnswerVerdict::Tie(_) => None,
            AnswerVerdict::Wrong(place) => Some(format!(
                "token {place} of {} is {:?} instead of {:?}, less likely by {:.3} ({:.3} is explained by rounding)",
                tokens.len(),
                tokens.get(place),
                self.answer.tokens.get(place),
                verdict::gap(&self.answer, place, tokens),
                self.tolerance
            )),
        }
    }

    fn wrong_likeliest(&self, answer: &Answer) -> Option<String> {
        let moved = verdict::moved(&self.answer, answer);
        (moved > self.tolerance * verdict::MAX_MOVED).then(|| {
            format!(
                "the likeliest tokens are {moved:.3} away ({:.3} is explained by rounding)",
                self.tolerance * verdict::MAX_MOVED
            )
        })
    }

    /// Returns what is wrong with a text. A different text is a tie within tolerance if another token was as likely at
    /// the place where the two diverge.
    fn wrong_text(&self, text: &str) -> Option<String> {
        let pieces = &self.pieces[..self.answer.tokens.len().min(self.pieces.len())];
        let whole = pieces.concat();
        let common = text.bytes().zip(&whole).take_while(|(one, other)| one == *other).count();
        // An incomplete UTF-8 character at the end is not sent.
        let is_cut_character = whole.len() - common < 4 && whole[common..].iter().all(|byte| *byte >= 0x80);
        if text.len() == common && (whole.len() == common || is_cut_character) {
            return None;
        }
        let mut end = 0;
        let place = pieces.iter().position(|piece| {
            end += piece.len();
            end > common
        });
        if place.is_some_and(|place| self.may_go_another_way(place)) {
            return None;
        }
        let (text, whole) = (super::shorten(text), espalier_series::lossy(&whole).into_owned());
        Some(format!("the text differs from byte {common} on: {text:?} instead of {whole:?}"))
    }

    fn may_go_another_way(&self, place: usize) -> bool {
        let Some(likeliest) = self.answer.likeliest.get(place) else { return false };
        let chosen = likeliest.iter().find(|(id, _)| *id == self.answer.tokens[place]);
        let mut others = likeliest.iter().filter(|(id, _)| *id != self.answer.tokens[place]);
        match (chosen, others.next()) {
            (Some((_, chosen)), Some((_, other))) => chosen - other <= self.tolerance,
            _ => false,
        }
    }
}

/// Checks that an embedding matches the reference.
pub fn judge_vector(played: &Played, reference: &Reference) -> Option<Finding> {
    let expected = reference.vector.as_ref().filter(|_| played.response.status == Some(200))?;
    let body = played.response.json();
    let vector: Vec<f64> = serde_json::from_value(body["data"][0]["embedding"].clone()).unwrap_or_default();
    let came = wrong_vector(expected, &vector)?;
    Some(finding("answer", played, "the vector of the same server unpaged", came))
}

fn wrong_vector(expected: &[f64], vector: &[f64]) -> Option<String> {
    if expected.len() != vector.len() {
        return Some(format!("{} elements instead of {}", vector.len(), expected.len()));
    }
    let dot = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>();
    let cosine = dot(expected, vector) / (dot(expected, expected) * dot(vector, vector)).sqrt();
    let farthest = expected.iter().zip(vector).map(|(one, other)| (one - other).abs()).fold(0.0, f64::max);
    let is_right = 1.0 - cosine <= VECTOR_TOLERANCE && farthest <= VECTOR_TOLERANCE * 2.0;
    (!is_right).then(|| format!("cosine {cosine:.5}, an element is {farthest:.5} away"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(pieces: &[Vec<u8>]) -> Expected<'_> {
        let likeliest =
            vec![vec![(1, -0.1), (9, -3.0)], vec![(2, -0.5), (8, -0.52)], vec![(3, -0.1), (7, -4.0)]];
        Expected { answer: Answer { tokens: vec![1, 2, 3], likeliest }, pieces, tolerance: 0.06 }
    }

    fn pieces() -> Vec<Vec<u8>> {
        ["ab", "cd", "ef"].map(|piece| piece.as_bytes().to_vec()).to_vec()
    }

    #[test]
    fn tokens_are_held_against_the_references() {
        let pieces = pieces();
        let expected = expected(&pieces);
        assert_eq!(expected.wrong_token(&[1, 2, 3]), None);
        assert_eq!(expected.wrong_token(&[1, 8, 5]), None, "a tie within tolerance");
        assert!(expected.wrong_token(&[1, 2, 7]).unwrap().contains("token 2 of 3"));
        assert!(expected.wrong_token(&[1, 2]).is_some(), "a short answer");
    }

    #[test]
    fn a_text_is_held_against_the_references() {
        let pieces = pieces();
        let expected = expected(&pieces);
        assert_eq!(expected.wrong_text("abcdef"), None);
        assert_eq!(expected.wrong_text("abxy"), None, "a tie within tolerance at the second token");
        assert!(expected.wrong_text("abcdxf").unwrap().contains("from byte 4 on"));
        assert!(expected.wrong_text("xb").is_some() && expected.wrong_text("abcdefg").is_some());
        assert!(expected.wrong_text("abcd").is_some(), "a short answer");
    }

    #[test]
    fn a_character_that_is_cut_at_the_end_is_not_missed() {
        let pieces = vec![b"ab".to_vec(), vec![0xe2, 0x82]];
        assert_eq!(expected(&pieces).wrong_text("ab"), None);
    }

    #[test]
    fn a_vector_may_move_a_little() {
        assert_eq!(wrong_vector(&[0.6, 0.8], &[0.601, 0.799]), None);
        assert!(wrong_vector(&[0.6, 0.8], &[0.8, 0.6]).is_some());
        assert!(wrong_vector(&[0.6, 0.8], &[0.6]).is_some());
    }

    #[test]
    fn likeliest_tokens_may_not_move_far() {
        let pieces = pieces();
        let expected = expected(&pieces);
        let mut moved = expected.answer.clone();
        assert_eq!(expected.wrong_likeliest(&moved), None);
        moved.likeliest[0][0].1 -= 0.5;
        assert!(expected.wrong_likeliest(&moved).is_some());
    }
}
