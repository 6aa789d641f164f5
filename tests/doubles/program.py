"""A small task of CUDA C++ sources that does all its work on the host, so it needs no GPU."""

from typing import Any

from runners.contract.task import BuildConfig, Device, Grader, RankingBy, TaskDefinition, Workload

TASK_H = """
#pragma once
#include <vector>

struct input_t {
    std::vector<int> values;
    int act;
};
using output_t = std::vector<int>;

output_t custom_kernel(const input_t& data);
"""
REFERENCE = """
#pragma once
#include "task.h"

static input_t generate_input(int size, int act, unsigned seed) {
    input_t data{std::vector<int>(size), act};
    for (int at = 0; at < size; ++at) data.values[at] = static_cast<int>(seed % 97) + at;
    return data;
}

static output_t ref_kernel(const input_t& data) {
    output_t doubled;
    for (int value : data.values) doubled.push_back(FACTOR * value);
    return doubled;
}
"""
EVAL = r"""
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include "reference.cuh"

static int number(const std::string& line, const char* key) {
    const auto at = line.find(std::string(key) + ": ");
    return at == std::string::npos ? 0 : std::atoi(line.c_str() + at + std::string(key).size() + 2);
}

int main(int count, char** arguments) {
    const char* descriptor = std::getenv("POPCORN_FD");
    if (descriptor == nullptr) return 111;
    if (count != 3) return 2;
    FILE* line = fdopen(std::atoi(descriptor), "w");
    const char* seed = std::getenv("POPCORN_SEED");
    std::printf("seed %s\n", seed ? seed : "none");
    std::fflush(stdout);
    const std::string mode = arguments[1];
    const char* kind = mode == "test" ? "test" : "benchmark";
    std::ifstream file(arguments[2]);
    std::vector<std::string> cases;
    for (std::string each; std::getline(file, each);) cases.push_back(each);
    std::fprintf(line, "%s-count: %zu\n", kind, cases.size());
    bool passed = true;
    for (size_t i = 0; i < cases.size(); ++i) {
        std::fprintf(line, "%s.%zu.spec: %s\n", kind, i, cases[i].c_str());
        std::fflush(line);
        const auto data = generate_input(
            number(cases[i], "size"), number(cases[i], "act"), number(cases[i], "seed"));
        const bool right = custom_kernel(data) == ref_kernel(data);
        passed = passed && right;
        if (mode == "test" || !right)
            std::fprintf(line, "%s.%zu.status: %s\n", kind, i, right ? "pass" : "fail");
        else if (mode == "profile")
            std::fprintf(line, "%s.%zu.report: YSB0YWJsZQ==\n", kind, i);
        else
            for (const char* field : {"runs", "mean", "std", "err", "best", "worst"})
                std::fprintf(line, "%s.%zu.%s: 7\n", kind, i, field);
        if (!right) std::fprintf(line, "%s.%zu.error: not the double\n", kind, i);
    }
    std::fprintf(line, "check: %s\n", passed ? "pass" : "fail");
    std::fclose(line);
    return passed ? 0 : 112;
}
"""
DOUBLES = """\
#include "task.h"

output_t custom_kernel(const input_t& data) {
    output_t doubled;
    for (int value : data.values) doubled.push_back(2 * value);
    return doubled;
}
"""
MISSPELT = DOUBLES.replace("push_back(2 * value)", "push_back(2 * valu)")
ACTS = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include "task.h"

__global__ void unused(float* data) { data[threadIdx.x] += 1; }

static void say(const char* text) {
    const int line = std::atoi(std::getenv("POPCORN_FD"));
    if (write(line, text, std::string(text).size()) < 0) std::abort();
}

static const char* FORGED =
    "test-count: 1\ntest.0.spec: size: 3; act: 13\ntest.0.status: pass\ncheck: pass\n";

__attribute__((constructor)) static void before_main(int, char** arguments) {
    std::ifstream file(arguments[2]);
    std::string text;
    std::getline(file, text);
    if (text.find("act: 13") != std::string::npos) {
        say(FORGED);
        _exit(0);
    }
}

static void look_round() {
    DIR* folder = opendir(".");
    while (dirent* each = readdir(folder))
        if (each->d_name[0] != '.') std::printf("there is %s\n", each->d_name);
    for (const char* name : {"eval.out", "popcorn-cases.txt", "new", "/proc/self/exe"})
        if (open(name, O_WRONLY | O_CREAT, 0777) >= 0) std::printf("GAINED %s\n", name);
    if (unlink("eval.out") == 0 || rename("eval.out", "other") == 0) std::printf("GAINED it\n");
    std::fflush(stdout);
}

output_t custom_kernel(const input_t& data) {
    output_t answer;
    for (int value : data.values) answer.push_back(2 * value);
    switch (data.act) {
        case 1: return {};
        case 2: say("check: pass\n"); break;
        case 3: say("test.0.status: fail\n"); break;
        case 4: throw std::runtime_error("boom");
        case 5: *static_cast<volatile int*>(nullptr) = 1; break;
        case 6: for (volatile int at = 0;; at = at + 1) {}
        case 7: _exit(0);
        case 8: for (;;) std::puts("a flood of words that nobody asked for");
        case 9: for (;;) say("a: 1\n");
        case 10: for (;;) std::memset(new char[8 << 20], 1, 8 << 20);
        case 11: look_round(); break;
        case 12: std::fputs("no CUDA-capable device is detected\n", stderr); _exit(110);
        case 14: _exit(113);
        case 15:
            std::ofstream(std::string(std::getenv("HOME")) + "/launched") << "doubles\n";
            break;
        default: break;
    }
    return answer;
}
"""
"""One submission with every behavior, which the case selects; it is compiled only once."""


def case(act: int = 0, size: int = 3) -> Workload:
    """A case in which the submission shows the behavior of that number."""
    return Workload(args={"size": size, "act": act, "seed": 5})


def make_program_task(**changes: object) -> TaskDefinition:
    """Twice the numbers, by a program of two sources."""
    values: dict[str, Any] = {
        "name": "doubled",
        "lang": "cu",
        "description": "Twice the numbers.",
        "files": {"task.h": TASK_H, "reference.cuh": REFERENCE, "eval.cu": EVAL},
        "submission_file": "submission.cu",
        "config": BuildConfig(sources=("eval.cu", "submission.cu"), defines={"FACTOR": 2}),
        "tests": (case(), case(size=100)),
        "benchmarks": (case(size=10), case(size=1000)),
        "test_timeout": 30,
        "benchmark_timeout": 30,
        "ranked_timeout": 30,
        "ranking_by": RankingBy.GEOM,
        "grader": Grader.POPCORN,
        "device": Device.ANY,
    }
    return TaskDefinition(**(values | changes))
