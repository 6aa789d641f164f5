// Runs a task's cases and reports the results: `eval.out MODE CASES`, with POPCORN_FD and POPCORN_SEED.
//
// A reference.cuh defines `class Problem`. It is constructed from a case's arguments. Its
// `generate(seed)` returns the kernel's input, and its `check(output)` says what is wrong with the output.
//
// A call is timed by two events, one before it and one after it. The cache is flushed first, and the
// flush still runs while the call is queued, so the time of the launch is not between the events.
// Events only measure one stream. So some more calls are timed by the host's clock, on an idle device,
// and the time of an empty kernel is subtracted; if this time is longer, it counts. Every call has a
// new input, and every output is checked.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <vector>

#include <cuda_profiler_api.h>

#include "podium.cuh"
#include "reference.cuh"

namespace {

constexpr int kLeastRuns = 10;
constexpr int kMostRuns = 200;
constexpr double kMostSeconds = 10;
constexpr double kEnough = 0.002;  // timing ends at a standard error below this part of the mean

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Writes the results, `key: value` on each line, to the judge.
class Line {
public:
    explicit Line(FILE* file) : file_(file) {}

    void say(const std::string& key, const std::string& value) const {
        std::string one_line;
        for (const char each : value) one_line += each == '\n' ? std::string("\\n") : std::string(1, each);
        std::fprintf(file_, "%s: %s\n", key.c_str(), one_line.c_str());
        std::fflush(file_);
    }

    void say(const std::string& key, double value) const {
        char text[40];
        std::snprintf(text, sizeof text, "%.17g", value);
        say(key, std::string(text));
    }

private:
    FILE* file_;
};

struct Case {
    std::string spec;
    Arguments arguments;
};

std::string trimmed(const std::string& text) {
    const auto begin = text.find_first_not_of(" \t\r");
    if (begin == std::string::npos) return "";
    return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

Case read_case(const std::string& spec) {
    std::map<std::string, long long> values;
    std::stringstream parts(spec);
    for (std::string part; std::getline(parts, part, ';');) {
        const auto colon = part.find(':');
        if (colon == std::string::npos) leave(kBadCase, "`" + spec + "` is not `name: number; ...`");
        const std::string number = trimmed(part.substr(colon + 1));
        char* end = nullptr;
        const long long value = std::strtoll(number.c_str(), &end, 10);
        if (number.empty() || *end != '\0') leave(kBadCase, number + " is not an integer in " + spec);
        values[trimmed(part.substr(0, colon))] = value;
    }
    return {spec, Arguments(values)};
}

std::vector<Case> read_cases(const char* path) {
    std::ifstream file(path);
    if (!file) leave(kBadCase, std::string("there is no file ") + path);
    std::vector<Case> cases;
    for (std::string spec; std::getline(file, spec);)
        if (!trimmed(spec).empty()) cases.push_back(read_case(trimmed(spec)));
    return cases;
}

// Writes over more memory than the cache holds.
class Flush {
public:
    Flush() : buffer_(size()) {}

    void begin() const { require(cudaMemsetAsync(buffer_.data(), 0, buffer_.count()), "flushing"); }

private:
    static std::size_t size() {
        int cache = 0;
        require(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, 0), "the device");
        return std::max<std::size_t>(2 * std::size_t(cache), 64 << 20);
    }

    Buffer<char> buffer_;
};

__global__ void nothing() {}

// The shortest time, in nanoseconds, from a launch to the end of a kernel that does nothing.
double least_launch() {
    double least = INFINITY;
    for (int i = 0; i < 50; ++i) {
        require(cudaDeviceSynchronize(), "the device");
        const auto begin = Clock::now();
        nothing<<<1, 1>>>();
        require(cudaDeviceSynchronize(), "the device");
        least = std::min(least, seconds_since(begin) * 1e9);
    }
    return least;
}

// The shortest time, in nanoseconds, between two events around a kernel that does nothing.
double least_between_events() {
    cudaEvent_t begin = nullptr, end = nullptr;
    require(cudaEventCreate(&begin), "an event");
    require(cudaEventCreate(&end), "an event");
    double least = INFINITY;
    for (int i = 0; i < 50; ++i) {
        float milliseconds = 0;
        require(cudaEventRecord(begin), "an event");
        nothing<<<1, 1>>>();
        require(cudaEventRecord(end), "an event");
        require(cudaDeviceSynchronize(), "the device");
        require(cudaEventElapsedTime(&milliseconds, begin, end), "an event");
        least = std::min(least, milliseconds * 1e6);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return least;
}

// Runs calls one after another, each on a new input.
class Bench {
public:
    explicit Bench(const Case& the_case, long long run_seed)
        : problem_(the_case.arguments), seed_(mixed(the_case.arguments.at("seed"), run_seed)) {
        require(cudaEventCreate(&begin_), "an event");
        require(cudaEventCreate(&end_), "an event");
    }
    ~Bench() {
        cudaEventDestroy(begin_);
        cudaEventDestroy(end_);
    }
    Bench(const Bench&) = delete;
    Bench& operator=(const Bench&) = delete;

    // The time of a call in nanoseconds, by two events; `fault` says what is wrong with its output.
    double call(std::string& fault, const Flush* flush) {
        const input_t input = fresh(flush);
        require(cudaEventRecord(begin_), "an event");
        const output_t output = custom_kernel(input);
        require(cudaGetLastError(), "custom_kernel");
        require(cudaEventRecord(end_), "custom_kernel");
        require(cudaDeviceSynchronize(), "custom_kernel");
        float milliseconds = 0;
        require(cudaEventElapsedTime(&milliseconds, begin_, end_), "an event");
        fault = problem_.check(output);
        return milliseconds * 1e6;
    }

    // The time of a call in nanoseconds, by the host's clock, until every stream is idle.
    double call_from_host(std::string& fault, const Flush* flush) {
        const input_t input = fresh(flush);
        require(cudaDeviceSynchronize(), "flushing");
        const auto begin = Clock::now();
        const output_t output = custom_kernel(input);
        require(cudaGetLastError(), "custom_kernel");
        require(cudaDeviceSynchronize(), "custom_kernel");
        const double nanoseconds = seconds_since(begin) * 1e9;
        fault = problem_.check(output);
        return nanoseconds;
    }

    // One call between the marks that start and stop NVIDIA's profiler.
    void call_marked(std::string& fault) {
        const input_t input = fresh(nullptr);
        require(cudaProfilerStart(), "the profiler");
        const output_t output = custom_kernel(input);
        require(cudaGetLastError(), "custom_kernel");
        require(cudaDeviceSynchronize(), "custom_kernel");
        require(cudaProfilerStop(), "the profiler");
        fault = problem_.check(output);
    }

private:
    input_t fresh(const Flush* flush) {
        const input_t input = problem_.generate(mixed(seed_, calls_++));
        require(cudaDeviceSynchronize(), "inputs");
        if (flush) flush->begin();
        return input;
    }

    Problem problem_;
    std::uint64_t seed_;
    std::uint64_t calls_ = 0;
    cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

struct Times {
    std::vector<double> all;

    double mean() const {
        double sum = 0;
        for (const double each : all) sum += each;
        return sum / all.size();
    }
    double deviation() const {
        if (all.size() < 2) return 0;
        double sum = 0;
        for (const double each : all) sum += (each - mean()) * (each - mean());
        return std::sqrt(sum / (all.size() - 1));
    }
    double error() const { return deviation() / std::sqrt(double(all.size())); }
    void add(double nanoseconds) {
        for (double& each : all) each += nanoseconds;
    }
    double best() const { return *std::min_element(all.begin(), all.end()); }
    double worst() const { return *std::max_element(all.begin(), all.end()); }
};

// Times by the host's clock, without the time of an empty kernel.
Times timed_from_host(Bench& bench, const Flush* flush, std::string& fault) {
    static const double launch = least_launch();
    Times times;
    while (fault.empty() && int(times.all.size()) < kLeastRuns)
        times.all.push_back(std::max(1.0, bench.call_from_host(fault, flush) - launch));
    return times;
}

// Times one case until the mean is precise enough, or an output is wrong (`fault`).
Times timed(Bench& bench, const Flush* flush, std::string& fault) {
    Times times;
    bench.call(fault, nullptr);  // the first call loads the kernel
    const auto begin = Clock::now();
    while (fault.empty() && int(times.all.size()) < kMostRuns) {
        times.all.push_back(bench.call(fault, flush));
        const bool enough = times.error() < kEnough * times.mean() || seconds_since(begin) > kMostSeconds;
        if (int(times.all.size()) >= kLeastRuns && enough) break;
    }
    Times host = timed_from_host(bench, flush, fault);
    if (!fault.empty() || host.best() <= times.mean()) return times;
    host.add(least_between_events());  // every time by events includes it as well
    return host;
}

bool tell_fault(const Line& line, const std::string& name, const std::string& fault) {
    if (!fault.empty()) {
        line.say(name + ".status", std::string("fail"));
        line.say(name + ".error", fault);
    }
    return fault.empty();
}

bool test(const Line& line, const std::string& name, Bench& bench) {
    std::string fault;
    bench.call(fault, nullptr);
    if (!tell_fault(line, name, fault)) return false;
    line.say(name + ".status", std::string("pass"));
    return true;
}

bool benchmark(const Line& line, const std::string& name, Bench& bench, const Flush& flush) {
    std::string fault;
    const Times times = timed(bench, &flush, fault);
    if (!tell_fault(line, name, fault)) return false;
    line.say(name + ".runs", double(times.all.size()));
    line.say(name + ".mean", times.mean());
    line.say(name + ".std", times.deviation());
    line.say(name + ".err", times.error());
    line.say(name + ".best", times.best());
    line.say(name + ".worst", times.worst());
    return true;
}

std::string base64(const std::string& text) {
    const char* letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string coded;
    for (std::size_t at = 0; at < text.size(); at += 3) {
        unsigned word = 0;
        for (std::size_t i = 0; i < 3; ++i)
            word = word << 8 | (at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u);
        for (std::size_t i = 0; i < 4; ++i)
            coded += at + i > text.size() ? '=' : letters[word >> (18 - 6 * i) & 63];
    }
    return coded;
}

// The cost of a cold cache: the same calls with and without a flush before each.
bool profile(const Line& line, const std::string& name, const std::string& spec, Bench& bench,
             const Flush& flush) {
    std::string report = spec + "\n";
    for (const Flush* used : {&flush, static_cast<const Flush*>(nullptr)}) {
        std::string fault;
        const Times times = timed(bench, used, fault);
        if (!tell_fault(line, name, fault)) return false;
        char row[160];
        std::snprintf(row, sizeof row, "%s cache: mean %.2f us, best %.2f, worst %.2f, of %zu calls\n",
                      used ? "cold" : "warm", times.mean() / 1e3, times.best() / 1e3,
                      times.worst() / 1e3, times.all.size());
        report += row;
    }
    std::string fault;
    bench.call_marked(fault);
    if (!tell_fault(line, name, fault)) return false;
    line.say(name + ".report", base64(report));
    return true;
}

bool run(const Line& line, const std::string& mode, const std::vector<Case>& cases, long long seed) {
    const std::string kind = mode == "test" ? "test" : "benchmark";
    line.say(kind + "-count", double(cases.size()));
    const Flush flush;
    bool passed = true;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const std::string name = kind + "." + std::to_string(i);
        line.say(name + ".spec", cases[i].spec);
        Bench bench(cases[i], seed);
        const bool right = mode == "test"      ? test(line, name, bench)
                           : mode == "profile" ? profile(line, name, cases[i].spec, bench, flush)
                                               : benchmark(line, name, bench, flush);
        passed = passed && right;
        if (!right && mode != "test") break;
    }
    line.say("check", std::string(passed ? "pass" : "fail"));
    return passed;
}

long long secret_seed() {
    const char* text = std::getenv("POPCORN_SEED");
    const long long seed = text ? std::strtoll(text, nullptr, 10) : 0;
    unsetenv("POPCORN_SEED");
    return seed;
}

}  // namespace

int main(int count, char** arguments) {
    const char* descriptor = std::getenv("POPCORN_FD");
    FILE* file = descriptor ? fdopen(std::atoi(descriptor), "w") : nullptr;
    if (file == nullptr) leave(kNoLine, "POPCORN_FD is not a file descriptor that can be written");
    if (count != 3) leave(kUsage, "usage: eval.out test|benchmark|leaderboard|profile CASES");
    const std::string mode = arguments[1];
    const long long seed = secret_seed();
    return run(Line(file), mode, read_cases(arguments[2]), seed) ? kPassed : kFailed;
}
