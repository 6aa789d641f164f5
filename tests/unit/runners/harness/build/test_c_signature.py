import struct

import pytest

from runners.harness.build.c_signature import (
    ArgumentError,
    KernelDeclaration,
    Parameter,
    find_kernels,
    pack_scalar,
)

SOURCE = """
// __global__ void not_this(int a)
/* __global__ void nor_this(int a) */
#define BODY { }
__device__ float helper(float a) { return a; }
extern "C" __global__ void __launch_bounds__(256, 2)
scale(const float* __restrict__ x, float *y, const float factor, int n = 3, \\
      unsigned long long m, bool deep, size_t, unsigned, const __half h,
      std::uint32_t w, float (*f)[2])
BODY
template <typename T, int N> __global__ void of(T* x, T factor, Pair<int, float> both) { }
__global__ void none(void) { }
__global__ void scale(int other);
"""


def test_every_kernel_is_found_once_and_in_order() -> None:
    assert [kernel.name for kernel in find_kernels(SOURCE)] == ["scale", "of", "none"]
    assert find_kernels("int main() { return 0; }") == []
    assert find_kernels("__global__") == []


def test_parameters_have_their_types_without_qualifiers() -> None:
    scale, of, none = find_kernels(SOURCE)
    assert none == KernelDeclaration("none", ())
    assert scale.parameters[:3] == (
        Parameter("x", "float", pointer=True),
        Parameter("y", "float", pointer=True),
        Parameter("factor", "float"),
    )
    kinds = [each.type for each in scale.parameters[3:10]]
    assert kinds == [
        "int", "unsigned long long", "bool", "size_t", "unsigned", "__half", "uint32_t",
    ]  # fmt: skip
    assert scale.parameters[10].pointer
    assert of.parameters[1] == Parameter("factor", "T")
    assert len(of.parameters) == 3


@pytest.mark.parametrize(
    ("kind", "size", "value", "layout"),
    [
        ("float", 4, 2.5, "<f"),
        ("float", 4, 2, "<f"),
        ("double", 8, 2.5, "<d"),
        ("int", 4, -7, "<i"),
        ("unsigned", 4, 7, "<I"),
        ("unsigned long long int", 8, 1 << 63, "<Q"),
        ("long", 8, -7, "<q"),
        ("short int", 2, -7, "<h"),
        ("unsigned char", 1, 200, "<B"),
        ("uint32_t", 4, 7, "<I"),
        ("__half", 2, 0.5, "<e"),
        ("bool", 1, True, "<?"),
        ("T", 4, 2.5, "<f"),
        ("T", 8, 2.5, "<d"),
        ("T", 8, 7, "<q"),
        ("T", 4, True, "<i"),
        ("index_t", None, 7, "<i"),
    ],
)
def test_a_number_is_passed_as_the_signature_says(
    kind: str,
    size: int | None,
    value: float,
    layout: str,
) -> None:
    assert pack_scalar(Parameter("p", kind), size, value) == struct.pack(layout, value)


def test_a_parameter_that_the_source_does_not_show_goes_by_its_size() -> None:
    assert pack_scalar(None, 4, 2.5) == struct.pack("<f", 2.5)
    assert pack_scalar(None, 8, 2.5) == struct.pack("<d", 2.5)
    assert pack_scalar(Parameter("p", "float"), 8, 2.5) == struct.pack(
        "<d", 2.5
    )  # `float` is a macro


def test_a_bfloat_is_rounded_to_the_nearest() -> None:
    b16 = Parameter("p", "__nv_bfloat16")
    assert pack_scalar(b16, 2, 1.0) == b"\x80\x3f"
    assert pack_scalar(b16, 2, -2.5) == b"\x20\xc0"
    assert pack_scalar(b16, 2, 1.00390625) == b"\x80\x3f"  # a tie goes to even
    assert pack_scalar(b16, 2, 1.01171875) == b"\x82\x3f"
    assert pack_scalar(b16, 2, float("nan")) == b"\xc0\x7f"


@pytest.mark.parametrize(
    ("parameter", "size", "value"),
    [
        (Parameter("p", "int"), 4, 2.5),
        (Parameter("p", "int"), 4, 1 << 40),
        (Parameter("p", "unsigned"), 4, -1),
        (Parameter("p", "float"), 4, 1e300),
        (Parameter("p", "__nv_bfloat16"), 2, 1e300),
        (Parameter("p", "T"), 2, 2.5),
        (Parameter("p", "float"), 4, "text"),
        (Parameter("p", "Big"), 24, 1),
        (Parameter("p", "float", pointer=True), 8, 2.5),
    ],
)
def test_a_number_that_does_not_fit_is_refused(
    parameter: Parameter, size: int, value: object
) -> None:
    with pytest.raises(ArgumentError, match=r"p|whole"):
        pack_scalar(parameter, size, value)


def test_no_pointer_can_be_given_where_one_is_wanted() -> None:
    assert pack_scalar(Parameter("p", "float", pointer=True), 8, 0) == bytes(8)


def test_a_whole_number_is_one_however_it_is_written() -> None:
    assert pack_scalar(Parameter("n", "int"), 4, 7.0) == pack_scalar(Parameter("n", "int"), 4, 7)


@pytest.mark.parametrize(
    ("source", "expression", "kind"),
    [
        ("template <typename T> __global__ void f(T n) {}", "f<__nv_bfloat16>", "__nv_bfloat16"),
        (
            "template <int N = (1 > 0), class T>\n__launch_bounds__(N) __global__ void f(T n);",
            "f<4, __half>", "__half",
        ),
        (
            "template <class A, template <class> class B, class T> __global__ void f(const T n) {}",
            "ours::f<int, B<int, 2>, unsigned int>", "unsigned int",
        ),
        ("using T = __nv_bfloat16;\n__global__ void f(T n) {}", "f", "__nv_bfloat16"),
        ("typedef unsigned int T;\n__global__ void f(const T n) {}", "f", "unsigned int"),
        ("#define T __half\n__global__ void f(T n) {}", "f", "__half"),
        ("#define A B\n#define B A\n__global__ void f(A n) {}", "f", "A"),
        ("template <typename T> struct S { T t; };\n__global__ void f(T n) {}", "f<int>", "T"),
        ("using T = int;\ntemplate <class T> __global__ void f(T n) {}", "f<__half>", "__half"),
    ],
)  # fmt: skip
def test_a_name_is_the_type_that_it_stands_for(source: str, expression: str, kind: str) -> None:
    """A bfloat16 went into a template's parameter in the bytes of a half."""
    (found,) = find_kernels(source)
    assert found.instance(expression).parameters == (Parameter("n", kind),)
