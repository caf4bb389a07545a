// Predictions of a model with two KV caches, and how they differ.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

inline int most_likely(const float * logits, int n_vocab) {
    return int(std::max_element(logits, logits + n_vocab) - logits);
}

// Natural logarithm of the softmax denominator (log-sum-exp of the logits).
inline double log_of_sum(const float * logits, int n_vocab) {
    const double largest = *std::max_element(logits, logits + n_vocab);
    double sum = 0.0;
    for (int i = 0; i < n_vocab; i++) {
        sum += std::exp(logits[i] - largest);
    }
    return largest + std::log(sum);
}

inline double divergence(const float * from, double from_sum, const float * to, double to_sum, int n_vocab) {
    double sum = 0.0;
    for (int i = 0; i < n_vocab; i++) {
        const double log_from = from[i] - from_sum;
        sum += std::exp(log_from) * (log_from - (to[i] - to_sum));
    }
    // Rounding can make the divergence of equal distributions slightly negative.
    return std::max(0.0, sum);
}

struct side {
    double seconds_of_prompts = 0.0;
    double seconds_of_decode  = 0.0;
    double surprise = 0.0; // sum of -log(probability of the next token)
    int    needles  = 0;
    size_t bytes    = 0;   // of one token in all layers
};

struct comparison {
    side base;
    side asked;
    std::vector<double> divergences;
    int same = 0; // number of equal most likely tokens
    int prompt_tokens = 0; // that both caches have decoded
    int decode_tokens = 0;
};

// A prediction: its logits, and the logarithm of their softmax denominator.
struct prediction {
    const float * logits;
    double sum;
};

inline double mean_of(const std::vector<double> & values) {
    double sum = 0.0;
    for (double value : values) {
        sum += value;
    }
    return values.empty() ? 0.0 : sum / double(values.size());
}

inline double part_of(std::vector<double> values, double part) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0.0 : values[std::min(values.size() - 1, size_t(part * double(values.size())))];
}
