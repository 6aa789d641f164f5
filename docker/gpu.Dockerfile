# A GPU worker: CUDA's compilers, PyTorch, Triton and CUTLASS, and `podium worker` on top of them.
# Its stage `harness` has everything that kernels are built with and nothing of Podium. For a cloud
# runner that brings `runners/` itself, build only that stage (--target harness).

FROM python:3.13.14-slim-bookworm@sha256:9d7f287598e1a5a978c015ee176d8216435aaf335ed69ac3c38dd1bbb10e8d64 AS wheel
WORKDIR /src
COPY docker/packages.lock docker/packages.lock
COPY pyproject.toml README.md LICENSE ./
COPY bot bot
COPY migrations migrations
COPY runners runners
COPY tasks/examples tasks/examples
RUN pip install --no-cache-dir --constraint docker/packages.lock hatchling \
    && pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels .

FROM python:3.13.14-slim-bookworm@sha256:9d7f287598e1a5a978c015ee176d8216435aaf335ed69ac3c38dd1bbb10e8d64 AS cutlass
RUN pip install --no-cache-dir --no-deps --target /cutlass nvidia-cutlass==4.2.0.0

# CUDA's major version must be that of the PyTorch wheel. test_docker.py checks that PyTorch's version
# is the one in pyproject.toml.
FROM nvidia/cuda:13.0.2-devel-ubuntu24.04@sha256:5dc1bca23d05bd37b011be68ec470c03b403a5da07ec3a86e41af9470e9d0cc6 AS harness
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        bubblewrap g++ python3 python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/podium
ENV PATH=/opt/podium/bin:$PATH \
    CUDA_HOME=/usr/local/cuda \
    PYTHONUNBUFFERED=1
# Triton comes with PyTorch; ninja builds inline CUDA. Every package has the version and the hash in
# packages.lock.
COPY docker/packages.lock /opt/podium/packages.lock
RUN pip install --no-cache-dir --constraint /opt/podium/packages.lock \
        torch==2.13.0 "numpy>=2,<3" "ninja>=1.13,<2" "pydantic>=2.12,<3"
# Every compiler searches this folder by default, and every sandbox shows it.
COPY --from=cutlass /cutlass/cutlass_library/source/include /usr/local/include

FROM harness AS worker
RUN useradd --uid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin podium \
    && install --directory --owner=podium --group=podium --mode=0700 /data
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-deps /wheels/*.whl \
    && pip install --no-cache-dir --constraint /opt/podium/packages.lock "kernel-podium[local]"
ENV PODIUM_DATA_DIR=/data
ARG REVISION=
LABEL org.opencontainers.image.title="Podium, a GPU worker" \
      org.opencontainers.image.description="Judges GPU kernels for a leaderboard" \
      org.opencontainers.image.licenses=MIT \
      org.opencontainers.image.version=0.1.0 \
      org.opencontainers.image.revision=$REVISION
USER 10001
WORKDIR /data
VOLUME /data
# Healthy while a process holds this lock. `podium worker` takes it once its runners have answered,
# and the system frees it when that process ends. The check starts no Python, which would disturb what
# is timed.
HEALTHCHECK --interval=30s --timeout=5s --start-period=2m --start-interval=2s \
    CMD ["sh", "-c", "! flock --shared --nonblock \"$PODIUM_DATA_DIR/ready.lock\" true"]
CMD ["podium", "worker", "--log-to-stderr"]
