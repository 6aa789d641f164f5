#ifndef UTILS_H
#define UTILS_H

#include <cstdio>
#include <string>

// Collects what a check finds.
class TestReporter {
public:
    void fail(const std::string& why) {
        if (passed_) why_ = why;
        passed_ = false;
    }
    bool passed() const { return passed_; }
    const std::string& why() const { return why_; }

private:
    bool passed_ = true;
    std::string why_;
};

#endif
