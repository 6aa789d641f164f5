# The bot: it has every secret and never runs a submission, so it needs no PyTorch.

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

FROM python:3.13.14-slim-bookworm@sha256:9d7f287598e1a5a978c015ee176d8216435aaf335ed69ac3c38dd1bbb10e8d64
RUN useradd --uid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin podium \
    && install --directory --owner=podium --group=podium --mode=0700 /data
# Every package has the version and the hash in packages.lock.
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    --mount=type=bind,from=wheel,source=/src/docker,target=/locks \
    pip install --no-cache-dir --no-deps /wheels/*.whl \
    && pip install --no-cache-dir --constraint /locks/packages.lock "kernel-podium[export]"
ENV PYTHONUNBUFFERED=1 \
    MPLCONFIGDIR=/tmp \
    PODIUM_DATA_DIR=/data \
    PODIUM_RUNNERS=none
ARG REVISION=
LABEL org.opencontainers.image.title="Podium, the bot" \
      org.opencontainers.image.description="Leaderboards for GPU kernels: front ends, queue and ranking" \
      org.opencontainers.image.licenses=MIT \
      org.opencontainers.image.version=0.1.0 \
      org.opencontainers.image.revision=$REVISION
USER 10001
WORKDIR /data
VOLUME /data
# Healthy while a process holds this lock. `podium up` takes it once its database, runners, Discord and
# HTTP have answered, and the system frees it when that process ends. The check starts no Python, which
# would disturb what is timed.
HEALTHCHECK --interval=30s --timeout=5s --start-period=2m --start-interval=2s \
    CMD ["sh", "-c", "! flock --shared --nonblock \"$PODIUM_DATA_DIR/ready.lock\" true"]
CMD ["podium", "up", "--log-to-stderr"]
