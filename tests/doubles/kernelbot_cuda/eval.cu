#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "reference.cuh"

namespace {

struct Case {
    std::string spec;
    int size, seed;
};

std::string escaped(const std::string& text) {
    std::string out;
    for (char each : text) out += each == '\n' ? std::string("\\n") : std::string(1, each);
    return out;
}

bool read(const char* path, std::vector<Case>& cases) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::map<std::string, int> values;
        std::stringstream parts(line);
        for (std::string part; std::getline(parts, part, ';');) {
            const auto colon = part.find(':');
            if (colon == std::string::npos) return false;
            const auto begin = part.find_first_not_of(' ');
            values[part.substr(begin, colon - begin)] = std::atoi(part.c_str() + colon + 1);
        }
        for (const char* name : ArgumentNames)
            if (values.count(name) == 0) return false;
        cases.push_back({line, values["size"], values["seed"]});
    }
    return true;
}

TestReporter tried(const Case& each, double* nanoseconds) {
    TestReporter reporter;
    const input_t data = generate_input(each.size, each.seed);
    const auto begin = std::chrono::steady_clock::now();
    const output_t output = custom_kernel(data);
    *nanoseconds = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
    check_implementation(reporter, data, output);
    return reporter;
}

}  // namespace

int main(int argc, const char* argv[]) {
    const char* fd = std::getenv("POPCORN_FD");
    FILE* out = fd ? fdopen(std::atoi(fd), "w") : nullptr;
    if (!out) return 111;
    if (argc < 3) return 2;
    std::vector<Case> cases;
    if (!read(argv[2], cases)) return 113;
    const std::string mode = argv[1];
    const std::string kind = mode == "test" ? "test" : "benchmark";
    bool passed = true;
    std::fprintf(out, "%s-count: %zu\n", kind.c_str(), cases.size());
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const std::string key = kind + "." + std::to_string(i);
        std::fprintf(out, "%s.spec: %s\n", key.c_str(), cases[i].spec.c_str());
        double sum = 0, squares = 0, best = INFINITY, worst = 0;
        const int runs = mode == "test" ? 1 : 20;
        TestReporter reporter;
        for (int run = 0; run < runs && reporter.passed(); ++run) {
            double time = 0;
            reporter = tried(cases[i], &time);
            sum += time;
            squares += time * time;
            best = std::fmin(best, time);
            worst = std::fmax(worst, time);
        }
        passed = passed && reporter.passed();
        std::fprintf(out, "%s.status: %s\n", key.c_str(), reporter.passed() ? "pass" : "fail");
        if (!reporter.passed()) {
            std::fprintf(out, "%s.error: %s\n", key.c_str(), escaped(reporter.why()).c_str());
        } else if (mode != "test") {
            const double mean = sum / runs;
            const double std = std::sqrt(std::fmax(0, squares / runs - mean * mean));
            std::fprintf(out, "%s.runs: %d\n%s.mean: %f\n%s.std: %f\n%s.err: %f\n%s.best: %f\n%s.worst: %f\n",
                         key.c_str(), runs, key.c_str(), mean, key.c_str(), std, key.c_str(),
                         std / std::sqrt(runs), key.c_str(), best, key.c_str(), worst);
        }
    }
    std::fprintf(out, "check: %s\n", passed ? "pass" : "fail");
    std::fclose(out);
    return passed ? 0 : 112;
}
