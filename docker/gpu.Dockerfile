# syntax=docker/dockerfile:1
# A GPU worker: CUDA's compilers, PyTorch, Triton and CUTLASS, and `podium worker` on top of them.
# Its stage `harness` has all that kernels are built with and nothing of Podium's: a cloud runner
# that ships `runners/` by itself builds that one (--target harness).

FROM python:3.13.14-slim-bookworm AS wheel
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY bot bot
COPY migrations migrations
COPY runners runners
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13.14-slim-bookworm AS cutlass
RUN pip install --no-cache-dir --no-deps --target /cutlass nvidia-cutlass==4.2.0.0

# CUDA's major version must be that of the PyTorch wheel; test_docker.py holds PyTorch's own version
# to pyproject.toml.
FROM nvidia/cuda:13.0.2-devel-ubuntu24.04 AS harness
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        bubblewrap g++ python3 python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/podium
ENV PATH=/opt/podium/bin:$PATH \
    CUDA_HOME=/usr/local/cuda \
    PYTHONUNBUFFERED=1
# Triton comes with PyTorch; ninja builds inline CUDA.
RUN pip install --no-cache-dir \
        torch==2.13.0 "numpy>=2,<3" "ninja>=1.13,<2" "pydantic>=2.12,<3"
# Every compiler looks here unasked, and every sandbox shows it.
COPY --from=cutlass /cutlass/cutlass_library/source/include /usr/local/include

FROM harness AS worker
RUN useradd --uid 10001 --home-dir /data --create-home --shell /usr/sbin/nologin podium
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip install --no-cache-dir "$(echo /wheels/*.whl)[local]"
ENV PODIUM_DATA_DIR=/data
USER 10001
WORKDIR /data
VOLUME /data
# Healthy while a process holds the judge's lock: `podium worker` takes it once all else is ready,
# and the system frees it when that process dies. It costs no Python, which would disturb what is
# timed.
HEALTHCHECK --interval=30s --timeout=5s --start-period=2m --start-interval=2s \
    CMD ["sh", "-c", "! flock --shared --nonblock \"$PODIUM_DATA_DIR/judge.lock\" true"]
CMD ["podium", "worker"]
