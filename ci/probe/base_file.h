// The results of the f16 cache, which other runs read instead of computing them again.
#pragma once

#include "decoding.h"

#include <cerrno>
#include <cstring>

// The end of a file of the f16 cache's results.
struct base_end {
    uint64_t needles;
    uint64_t bytes;
    uint64_t bytes_of_a_cell;
};

// The f16 cache's results in a file: one line that names its inputs, then each prediction in the order of the chunks,
// then the end. In native byte order: the next runs on this machine read it.
class base_file {
  public:
    base_file(const std::string & name, const std::string & inputs, bool writes)
        : name(name), writes(writes), file(fopen(name.c_str(), writes ? "wb" : "rb")) {
        if (!file) {
            fail(errno);
        }
        if (writes) {
            write(inputs.c_str(), inputs.size());
            write("\n", 1);
        } else {
            expect(inputs);
        }
    }

    void write(const void * from, size_t size) {
        if (fwrite(from, 1, size, file.get()) != size) {
            fail(errno);
        }
    }

    void read(void * to, size_t size) {
        if (fread(to, 1, size, file.get()) != size) {
            throw std::runtime_error(name + " ends too early: the run that wrote it did not finish");
        }
    }

    // Writes what is buffered.
    void finish() {
        if (fflush(file.get()) != 0) {
            fail(errno);
        }
    }

    const std::string name;
    const bool writes;

  private:
    [[noreturn]] void fail(int error) const {
        const std::string what = writes ? "cannot write " : "cannot read ";
        throw std::runtime_error(what + name + ": " + strerror(error));
    }

    void expect(const std::string & inputs) {
        std::string found;
        for (int c = fgetc(file.get()); c != EOF && c != '\n' && found.size() <= inputs.size(); c = fgetc(file.get())) {
            found.push_back(char(c));
        }
        if (found != inputs) {
            throw std::runtime_error(name + " has other inputs: '" + found + "', expected '" + inputs + "'");
        }
    }

    file_ptr file;
};
